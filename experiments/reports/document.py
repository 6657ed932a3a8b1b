"""A report as one plain document: everything that its page, PDF, Markdown and JSON show.

Built from the rows for a draft, read from the record for a published version; redacted in both, and
the same bytes of canonical JSON for the same rows and choices. What is drawn is drawn from it.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from experiments.models import Report, ReportNote
from experiments.queries import Dossier, InvestigationPage
from experiments.reports.build import known_beside_runs as known_beside_runs
from experiments.reports.families import gaps_by_run
from experiments.reports.record import record_of
from experiments.reports.redaction import Redaction, Redactor
from experiments.reports.sections import SECTIONS, shown
from specdebug import __version__
from specdebug.diagnosis.post_mortem import build_post_mortem

FORM = 1  # of the document; raised when a reader of older ones would stumble


@dataclass(frozen=True, slots=True)
class Remark:
    """What a person adds to a section, in Markdown."""

    section: str
    author: str
    text: str


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person chose for a report. left_out: keys of sections; kept: keys of redactions."""

    template: str = "full"
    left_out: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class Document:
    """body: plain JSON data. digest: SHA-256 of its canonical bytes. redactions: what was found,
    for review; empty where the document was read back and not built."""

    body: Mapping[str, Any]
    digest: str
    redactions: tuple[Redaction, ...] = ()

    @property
    def told(self) -> Mapping[str, Any]:
        """The post-mortem within the document."""
        found: Mapping[str, Any] = self.body["post_mortem"]
        return found

    @property
    def unreplicated(self) -> bool:
        """Whether a figure that was taken from a write-up stands for itself alone."""
        return any(run["recorded"] and run["n"] == 1 for run in self.told["runs"])


def canonical(body: Mapping[str, Any]) -> bytes:
    """The bytes that the digest is of: sorted keys, no spaces, UTF-8, no infinities."""
    text = json.dumps(
        body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    # A lone surrogate, which JSON may carry, is no Unicode text.
    return text.encode("utf-8", errors="replace")


def read(body: Mapping[str, Any]) -> Document:
    """A document from what was kept of it."""
    return Document(body, hashlib.sha256(canonical(body)).hexdigest())


def choices_of(report: Report | None, remarks: Iterable[ReportNote] = ()) -> Choices:
    """The choices of a draft's row; the defaults without one."""
    if report is None:
        return Choices()
    return Choices(
        template=report.template,
        left_out=tuple(key for key in report.left_out if key in SECTIONS),
        kept=tuple(report.kept),
        remarks=tuple(Remark(r.section, r.author, r.text) for r in remarks),
    )


def document(
    page: InvestigationPage, choices: Choices | None = None, stamp: Mapping[str, Any] | None = None
) -> Document:
    """The investigation as a document; equal rows and choices give an equal one.

    stamp: number, published_by and published_at of the version that it is about to become.
    """
    chosen = choices or Choices()
    found = page.dossier
    told = build_post_mortem(
        record_of(found),
        known_beside_runs(found),
        appendix=_appendix(found),
        gaps=gaps_by_run(found),
    )
    redactor = Redactor(frozenset(chosen.kept))
    clean = redactor.document(
        {
            **told.as_dict(),
            "remarks": [
                {"section": r.section, "author": r.author, "text": r.text} for r in chosen.remarks
            ],
        }
    )
    body = {
        "form": FORM,
        "program": __version__,
        "slug": page.investigation.slug,
        "as_of": _as_of(page).astimezone(UTC).isoformat(timespec="seconds"),
        "recorded": any(facts.run.recorded for facts in found.runs),
        "reference_engine": any(facts.reference_engine for facts in found.runs),
        "template": chosen.template,
        "sections": shown(chosen.template, chosen.left_out),
        "remarks": clean.pop("remarks"),
        "redacted": [
            {"kind": r.kind, "placeholder": r.placeholder, "count": r.count}
            for r in redactor.found
            if not r.kept
        ],
        "stamp": dict(stamp) if stamp else None,
        "post_mortem": clean,
    }
    # Through JSON once, so that a document just built and one read back are the same.
    plain = json.loads(canonical(body))
    return Document(plain, hashlib.sha256(canonical(plain)).hexdigest(), redactions=redactor.found)


def _as_of(page: InvestigationPage) -> datetime:
    """The newest change of any row that the report shows."""
    row = page.investigation
    known = [row.updated_at, row.created_at]
    known += [f.run.ended_at for f in page.dossier.runs if f.run.ended_at]
    known += [f.finding.updated_at for f in page.dossier.findings]
    known += [event.created_at for event in page.dossier.events]
    known += [v.decided_at for h in page.dossier.hypotheses for v in h.verdicts]
    return max(known)


def _appendix(found: Dossier) -> dict[str, Any]:
    """What was run and what it rests on: commands, environment, files with their hashes.

    What all runs with anything of the kind share stands once, under "common".
    """
    runs: list[dict[str, Any]] = [
        {
            "label": facts.run.label,
            "title": facts.run.title,
            "engine": f"{facts.run.engine} {facts.run.engine_release}".strip(),
            "host": facts.run.host,
            "command": shlex.join(map(str, facts.run.argv)),
            "environment": dict(sorted(facts.run.env.items())),
            "versions": dict(sorted(facts.run.versions.items())),
            "workload": dict(sorted((facts.run.plan.get("workload") or {}).items())),
            "recorded": facts.run.recorded,
        }
        for facts in found.runs
    ]
    common: dict[str, Any] = {}
    for kind in ("environment", "versions", "workload"):
        known = [run[kind] for run in runs if run[kind]]
        shared = _shared_by(known) if len(known) > 1 else {}
        common[kind] = shared
        for run in runs:
            run[kind] = {k: v for k, v in run[kind].items() if k not in shared}
    where = {(run["engine"], run["host"], run["recorded"]) for run in runs}
    if len(runs) > 1 and len(where) == 1:
        common["where"] = dict(zip(("engine", "host", "recorded"), where.pop(), strict=True))
    return {"common": common, "runs": runs, "files": _files(found)}


def _shared_by(mappings: list[Any]) -> dict[str, Any]:
    """The entries that are the same in all."""
    first, *rest = mappings
    return {k: v for k, v in first.items() if all(k in m and m[k] == v for m in rest)}


def _files(found: Dossier) -> list[dict[str, Any]]:
    """Each content once, with the runs that it belongs to."""
    files: dict[tuple[str, str], dict[str, Any]] = {}
    for row in found.evidence:
        entry = files.setdefault(
            (row.blob_id, row.name),
            {
                "name": row.name,
                "runs": [],
                "kind": row.kind,
                "bytes": row.blob.size,
                "sha256": row.blob_id,
            },
        )
        if row.run is not None:
            entry["runs"].append(row.run.label)
    return list(files.values())
