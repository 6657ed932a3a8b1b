"""What a program outside sends while it measures: rows of points and pieces of its log.

Both are numbered by the sender, so that sending again after a lost answer changes nothing: what was
taken already is skipped, a gap is refused with the number that is expected. Judges nothing.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from experiments import bulk, summaries
from experiments.models import PointChunk, PointStream, Run
from experiments.queries.prepared import Prepared
from experiments.refusal import Refused
from experiments.summaries import Column

POINT = struct.Struct("<qdd")
# A chunk is filled up to this many points before the next one is begun (48 KiB).
CHUNK_POINTS = 2048
MOST_ROWS = 10_000
MOST_POINTS = 20_000
MOST_METRICS = 200
LARGEST_LOG = 1 << 30
METRIC_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/@-]{0,79}")
WRITER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
_STEP_LIMIT = 1 << 62
_STATE = Prepared(
    lambda run: Run.objects.select_for_update().only("state", "by_script").filter(pk=run)
)
# Without their points, since a run may have many metrics; of those that are filled up, by key.
_ROOM = Prepared(
    lambda run: (
        PointChunk.objects.filter(run=run, count__lt=CHUNK_POINTS).defer("data").order_by("pk")
    )
)
_POINTS = Prepared(lambda chunk: PointChunk.objects.only("data").filter(pk=chunk))
_STREAM = Prepared(lambda run, writer: PointStream.objects.filter(run=run, writer=writer))


class Gap(Refused):
    """The sender is ahead of what was taken; `expected` is where it must go on."""

    def __init__(self, sentence: str, expected: int) -> None:
        super().__init__(sentence)
        self.expected = expected


@dataclass(frozen=True, slots=True)
class TakenRows:
    """next_row: the number of the first row not taken yet. points: how many were new."""

    next_row: int
    points: int


def take_rows(run: Run, *, writer: str, first_row: int, rows: Sequence[Any]) -> TakenRows:
    """Take `rows` of one sender, each `[step, time, {metric: value}]`, numbered from `first_row`.

    step: an integer; time: seconds since the epoch; values finite. In one transaction: either all
    new rows are kept or none. Raises Refused naming the row, Gap where rows are missing before.
    """
    if not WRITER_NAME.fullmatch(writer):
        raise Refused(f"the writer {writer[:80]!r} must be 1 to 64 letters, digits, '_', '.', '-'")
    if first_row < 0:
        raise Refused("first_row must be 0 or more")
    if len(rows) > MOST_ROWS:
        raise Refused(f"{len(rows)} rows in one call; at most {MOST_ROWS} are taken, send the rest")
    columns = _columns(rows, first_row)
    with transaction.atomic():
        _still_open(run)
        expected = next((s.next_row for s in _STREAM.all(run.pk, writer)), 0)
        if first_row > expected:
            raise Gap(
                f"row {first_row} came, row {expected} is expected; send from there on", expected
            )
        end = first_row + len(rows)
        if end <= expected:
            return TakenRows(expected, 0)
        if first_row < expected:
            columns = _columns(rows[expected - first_row :], expected)
        _append(run, columns)
        summaries.from_points(
            run, {name: Column(steps, values) for name, (steps, _, values) in columns.items()}
        )
        taken = PointStream(run=run, writer=writer, next_row=end)
        bulk.insert([taken], unique=("run", "writer"), replacing=("next_row",))
    return TakenRows(end, sum(len(steps) for steps, _, _ in columns.values()))


def _still_open(run: Run) -> None:
    """Hold the run's row until the transaction ends; refused once it has ended."""
    row = _STATE.get(run.pk)
    if row.state in Run.ENDED:
        raise Refused(f"{run.label} is {row.get_state_display()}; it takes nothing more")
    if not row.by_script:
        raise Refused(f"{run.label} is measured by a worker; create a run that a script measures")


_Columns = dict[str, tuple[list[int], list[float], list[float]]]


def _columns(rows: Sequence[Any], first_row: int) -> _Columns:
    """Points by metric; raises Refused with the number of the first bad row."""
    columns: _Columns = {}
    points = 0
    for number, row in enumerate(rows, start=first_row):
        try:
            step, time, values = row
            good = (
                type(step) is int
                and -_STEP_LIMIT < step < _STEP_LIMIT
                and type(time) in (int, float)
                and isfinite(time)
                and type(values) is dict
            )
        except (TypeError, ValueError, OverflowError):
            good = False
        if not good:
            raise Refused(f"row {number} is not [step, seconds since the epoch, {{metric: value}}]")
        points += len(values)
        for name, value in values.items():
            if not (isfinite(value) if type(value) is float else _whole(value)):
                raise Refused(f"row {number}: {name[:80]!r} is {value!r:.80}, no finite number")
            column = columns.get(name)
            if column is None:
                if not METRIC_NAME.fullmatch(name):
                    raise Refused(
                        f"row {number}: {name[:80]!r} is no name of a metric; it begins with a "
                        "letter and has up to 80 letters, digits and _ . : / @ -"
                    )
                column = columns[name] = ([], [], [])
            steps, times, known = column
            steps.append(step)
            times.append(time)
            known.append(value)
    if points > MOST_POINTS or len(columns) > MOST_METRICS:
        raise Refused(
            f"{points} points of {len(columns)} metrics in one call; at most {MOST_POINTS} points "
            f"of {MOST_METRICS} metrics are taken"
        )
    return columns


def _whole(value: Any) -> bool:
    """Whether it is an integer that a double holds."""
    try:
        return type(value) is int and isfinite(value)
    except OverflowError:
        return False


def _append(run: Run, columns: _Columns) -> None:
    """Fill up the last chunk of each metric, then begin new ones."""
    room = {chunk.name: chunk for chunk in _ROOM.all(run.pk)}
    filled: list[PointChunk] = []
    fresh: list[PointChunk] = []
    for name, packed in _packed(columns):
        chunk, free = room.get(name), 0
        if chunk is not None:
            free = (CHUNK_POINTS - chunk.count) * POINT.size
            chunk.data = bytes(_POINTS.get(chunk.pk).data) + packed[:free]
            chunk.count = len(chunk.data) // POINT.size
            filled.append(chunk)
        for start in range(free, len(packed), CHUNK_POINTS * POINT.size):
            data = packed[start : start + CHUNK_POINTS * POINT.size]
            fresh.append(PointChunk(run=run, name=name, count=len(data) // POINT.size, data=data))
    bulk.update(filled, "data", "count")
    bulk.insert(fresh)


def _packed(columns: _Columns) -> Iterator[tuple[str, bytes]]:
    for name, (steps, times, values) in columns.items():
        yield name, b"".join(map(POINT.pack, steps, times, values))


def points(run: Run, name: str) -> Iterator[tuple[int, float, float]]:
    """(step, time, value) of one metric of one run, in the order of arrival."""
    for data in PointChunk.objects.filter(run=run, name=name).values_list("data", flat=True):
        yield from POINT.iter_unpack(bytes(data))


def log_path(run: Run) -> Path:
    """Where the log of a run is written while it runs; workers write theirs to the same place."""
    # The name only: a plan that came from elsewhere must not lead out of the folder.
    name = Path(str(run.plan.get("run", ""))).name
    folder: Path = Path(settings.RUN_DIR) / (name if name not in ("", "..") else "none")
    return folder / "server.log"


def log_size(run: Run) -> int:
    """Bytes of the run's log taken so far."""
    try:
        return log_path(run).stat().st_size
    except OSError:
        return 0


def append_log(run: Run, *, offset: int, data: bytes) -> int:
    """Append bytes that begin at `offset` of the sender's log; returns the size afterwards.

    Bytes that were taken already must be the same and are skipped. Raises Gap where bytes are
    missing before, Refused where they differ, the log grows too large or the disk is full; a piece
    is kept whole or not at all.
    """
    _still_open_now(run)
    path = log_path(run)
    if offset < 0:
        raise Refused("the offset must be 0 or more")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("a+b", buffering=0) as file:
            # Two web processes may hold pieces of the same log.
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            if offset > size:
                raise Gap(f"byte {offset} came, byte {size} is expected; send from there on", size)
            if offset + len(data) > LARGEST_LOG:
                raise Refused(f"the log is larger than {LARGEST_LOG >> 20} MiB; send a part of it")
            known = min(size - offset, len(data))
            file.seek(offset)
            if known and file.read(known) != data[:known]:
                raise Refused(
                    f"the bytes from {offset} on differ from those that were sent before; a log "
                    "is only appended to, start a new run for another one"
                )
            rest = data[known:]
            try:
                _write_all(file.fileno(), rest)
            except OSError:
                os.ftruncate(file.fileno(), size)
                raise
            return max(size, offset + len(data))
    except OSError as error:
        raise Refused(f"the data folder cannot take the log: {error.strerror or error}") from error


def _still_open_now(run: Run) -> None:
    with transaction.atomic():
        _still_open(run)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
