"""An investigation as one file that another installation takes in without loss: all its rows as
JSON, and its files by their hash. Not a backup of the installation; people, tokens and share links
stay behind."""

from __future__ import annotations

import base64
import binascii
import json
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import IO, Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from experiments import store
from experiments.lifecycle.investigations import _free_slug
from experiments.models import (
    AppliedCheck,
    Blob,
    ConfigChange,
    ConfigEntry,
    DecodeSample,
    Event,
    Evidence,
    Finding,
    FindingEvent,
    Hypothesis,
    HypothesisLink,
    Investigation,
    MetricSummary,
    PointChunk,
    PointStream,
    Prediction,
    Repeat,
    Report,
    ReportNote,
    Run,
    RunGroup,
    Verdict,
)
from experiments.refusal import Refused
from experiments.streams import POINT
from specdebug import __version__

FORM = 1  # raised when an older program could not read the file
LARGEST_RECORD = 512 << 20
MOST_FILES = 100_000

# Every table of an investigation, parents first, with the way from it to the investigation.
TABLES: tuple[tuple[type[models.Model], str], ...] = (
    (Investigation, "pk"),
    (Hypothesis, "investigation"),
    (RunGroup, "investigation"),
    (Run, "investigation"),
    (Prediction, "hypothesis__investigation"),
    (HypothesisLink, "origin__investigation"),
    (AppliedCheck, "hypothesis__investigation"),
    (Repeat, "run__investigation"),
    (DecodeSample, "run__investigation"),
    (ConfigEntry, "run__investigation"),
    (ConfigChange, "run__investigation"),
    (MetricSummary, "run__investigation"),
    (PointStream, "run__investigation"),
    (PointChunk, "run__investigation"),
    (Verdict, "hypothesis__investigation"),
    (Event, "investigation"),
    (Finding, "investigation"),
    (FindingEvent, "finding__investigation"),
    (Evidence, "investigation"),
    (Report, "investigation"),
    (ReportNote, "report__investigation"),
)


def export(investigation: Investigation) -> IO[bytes]:
    """The archive as an open temporary file, from its beginning. Raises Refused where a file of
    the investigation is no longer in the data folder."""
    with transaction.atomic():
        tables = {
            model.__name__: [
                _row(row)
                for row in model._default_manager.filter(**{path: investigation.pk}).order_by("pk")
            ]
            for model, path in TABLES
        }
    hashes = sorted({row["blob_id"] for row in tables["Evidence"]} | _gpu_blobs(tables))
    record = {
        "form": FORM,
        "program": __version__,
        "slug": investigation.slug,
        "tables": tables,
    }
    file = tempfile.TemporaryFile()  # noqa: SIM115 (the caller reads and closes it)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            _entry("record.json"), json.dumps(record, sort_keys=True, ensure_ascii=False)
        )
        for sha256 in hashes:
            try:
                archive.write(store.path_of(sha256), f"files/{sha256}")
            except OSError:
                raise Refused(
                    f"the file {sha256[:12]} is no longer in the data folder; the archive would "
                    "not be whole"
                ) from None
    file.seek(0)
    return file


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=(2000, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _gpu_blobs(tables: Mapping[str, list[dict[str, Any]]]) -> set[str]:
    """Contents that other tables name by a foreign key to a blob."""
    found: set[str] = set()
    for model, _ in TABLES:
        names = [f.attname for f in _foreign(model) if f.related_model is Blob]
        for row in tables[model.__name__]:
            found |= {row[name] for name in names if row.get(name)}
    return found


def _foreign(model: type[models.Model]) -> list[models.ForeignKey[Any, Any]]:
    return [f for f in model._meta.concrete_fields if isinstance(f, models.ForeignKey)]


def _row(row: models.Model) -> dict[str, Any]:
    """One row as JSON; people by name, since their numbers mean nothing elsewhere."""
    values: dict[str, Any] = {}
    for field in row._meta.concrete_fields:
        value = getattr(row, field.attname)
        if isinstance(field, models.ForeignKey) and field.related_model is User:
            user = getattr(row, field.name)
            value = None if user is None else user.get_username()
        elif isinstance(value, datetime):
            value = value.isoformat()
        elif isinstance(field, models.BinaryField):
            value = base64.b64encode(bytes(value)).decode()
        values[field.attname] = value
    if isinstance(row, Run):
        # Where runs lie is this installation's business.
        values["plan"] = {k: v for k, v in row.plan.items() if k != "folder"}
    return values


# ---- taking one in -------------------------------------------------------------------------------


def take_in(stream: IO[bytes], *, by: User) -> Investigation:
    """Make a new investigation of an archive, in one transaction; Refused where it is none.

    Runs that waited or ran when it was written are lost here. An address that is taken gets a
    number behind it.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            record = _record(archive)
            _keep_files(archive, record)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise Refused(f"this is no archive of an investigation: {error}") from None
    except KeyError as error:
        raise Refused(f"this is no archive of an investigation: it lacks {error}") from None
    try:
        with transaction.atomic():
            return _TakingIn(record, by).run()
    except (IntegrityError, OverflowError) as error:
        raise Refused(f"the archive contradicts itself: {error}") from None


def _record(archive: zipfile.ZipFile) -> dict[str, Any]:
    if len(archive.infolist()) > MOST_FILES:
        raise Refused(f"the archive holds more than {MOST_FILES} files")
    with archive.open("record.json") as file:
        data = file.read(LARGEST_RECORD + 1)
    if len(data) > LARGEST_RECORD:
        raise Refused("the archive's record is too large")
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        raise Refused("the archive's record is no JSON") from None
    tables = record.get("tables") if isinstance(record, dict) else None
    if not isinstance(tables, dict):
        raise Refused("the archive's record has no tables")
    if record.get("form") != FORM:
        raise Refused(f"the archive has form {record.get('form')!r}; this program reads {FORM}")
    for name, rows in tables.items():
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise Refused(f"the archive's table {name[:80]} is no list of rows")
    if len(tables.get("Investigation", ())) != 1:
        raise Refused("the archive does not hold exactly one investigation")
    return dict(record)


def _keep_files(archive: zipfile.ZipFile, record: Mapping[str, Any]) -> None:
    """Store the files first: content by hash does no harm where the rows are then refused."""
    wanted = {row.get("blob_id") for row in record["tables"].get("Evidence", ())}
    for info in archive.infolist():
        folder, _, name = info.filename.partition("/")
        if folder != "files" or name not in wanted:
            continue
        with archive.open(info) as file:
            kept = store.put(file)
        if kept.pk != name:
            raise Refused(f"the file {name[:12]} of the archive is not what its hash says")


class _TakingIn:
    """Rows of one archive with the numbers that they get here."""

    def __init__(self, record: Mapping[str, Any], by: User) -> None:
        self.tables: Mapping[str, list[dict[str, Any]]] = record["tables"]
        self.by = by
        self.pks: dict[type[models.Model], dict[Any, Any]] = {}
        self.people = {u.get_username(): u.pk for u in User.objects.all()}

    def run(self) -> Investigation:
        made: dict[type[models.Model], list[tuple[models.Model, dict[str, Any]]]] = {}
        for model, _ in TABLES:
            rows = self.tables.get(model.__name__, [])
            pairs = [(self._build(model, n, values), values) for n, values in enumerate(rows)]
            model._default_manager.bulk_create([row for row, _ in pairs], batch_size=500)
            self.pks[model] = {values.get("id"): row.pk for row, values in pairs}
            made[model] = pairs
        for model, pairs in made.items():
            self._settle(model, pairs)
        investigation = made[Investigation][0][0]
        investigation.refresh_from_db()
        assert isinstance(investigation, Investigation)  # noqa: S101 (its own table)
        return investigation

    def _build(self, model: type[models.Model], n: int, values: dict[str, Any]) -> models.Model:
        """One unsaved row; references to rows that come later follow in `_settle`."""
        row = model()
        where = f"{model.__name__} {n + 1}"
        for field in model._meta.concrete_fields:
            if field.primary_key or field.attname not in values:
                continue
            setattr(row, field.attname, self._value(field, values[field.attname], where))
        self._fit(row)
        foreign = {f.name for f in _foreign(model)}
        try:
            row.clean_fields(exclude={*foreign, *_may_be_blank(row)})
        except ValidationError as error:
            raise Refused(f"the archive's {where}: {'; '.join(error.messages)[:300]}") from None
        return row

    def _value(self, field: models.Field[Any, Any], value: Any, where: str) -> Any:
        if isinstance(field, models.ForeignKey):
            return self._reference(field, value, where)
        try:
            if isinstance(field, models.BinaryField):
                return base64.b64decode(value, validate=True)
            if isinstance(field, models.JSONField) or value is None:
                return value
            return field.to_python(value)
        except (ValidationError, TypeError, ValueError, binascii.Error):
            raise Refused(f"the archive's {where}: {field.name} cannot be {value!r:.80}") from None

    def _reference(self, field: models.ForeignKey[Any, Any], value: Any, where: str) -> Any:
        if value is None:
            return None
        if field.related_model is User:
            return self.people.get(value) if isinstance(value, str) else None
        if field.related_model is Blob:
            if not isinstance(value, str) or not Blob.objects.filter(pk=value).exists():
                raise Refused(f"the archive's {where}: its file {str(value)[:12]} is missing")
            return value
        known = self.pks.get(field.related_model, {})
        if isinstance(value, int) and value in known:
            return known[value]
        if field.null:
            return None
        raise Refused(f"the archive's {where}: {field.name} {value!r:.40} is not in the archive")

    def _fit(self, row: models.Model) -> None:
        """What depends on this installation."""
        if isinstance(row, Investigation):
            row.slug = _free_slug(row.title or "investigation") if self._taken(row) else row.slug
            self.slug = row.slug
            if row.source and Investigation.objects.filter(source=row.source).exists():
                row.source = ""
        elif isinstance(row, Run):
            plan = row.plan if isinstance(row.plan, dict) else {}
            row.plan = plan | {"run": f"{self.slug}-r{row.number}"}
            if row.state in Run.ACTIVE:
                row.state, row.ended_at = Run.State.LOST, timezone.now()
                row.reason = "it was not finished when the archive was written"
            row.claim = ""
        elif isinstance(row, PointChunk) and len(row.data) != POINT.size * row.count:
            raise Refused("the archive's points are not whole")

    @staticmethod
    def _taken(row: Investigation) -> bool:
        return not row.slug or Investigation.objects.filter(slug=row.slug).exists()

    def _settle(
        self, model: type[models.Model], pairs: Iterable[tuple[models.Model, dict[str, Any]]]
    ) -> None:
        """References forward, and times that the database layer sets by itself."""
        later = [f for f in _foreign(model) if f.null and f.related_model in self.pks]
        stamped = [
            f
            for f in model._meta.concrete_fields
            if getattr(f, "auto_now", False) or getattr(f, "auto_now_add", False)
        ]
        if not later and not stamped:
            return
        for row, values in pairs:
            for field in (*later, *stamped):
                if field.attname in values:
                    where = f"{model.__name__} {values.get('id')}"
                    setattr(row, field.attname, self._value(field, values[field.attname], where))
        rows = [row for row, _ in pairs]
        names = [f.name for f in (*later, *stamped)]
        model._default_manager.bulk_update(rows, names, batch_size=200)


def _may_be_blank(row: models.Model) -> set[str]:
    """Fields that programs leave empty though a form would not."""
    return {
        f.name
        for f in row._meta.concrete_fields
        if not f.blank and getattr(row, f.attname) in ("", [], {}, None)
    }
