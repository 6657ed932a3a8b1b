"""Scalars of a TensorBoard event file; TensorFlow is not needed.

The file is a row of records (length, its checksum, data, its checksum), each an Event message:
wall_time = 1 (double), step = 2 (varint), summary = 5; in it value = 1 with tag = 1,
simple_value = 2 (float) and tensor = 8 (dtype = 1, content = 4, float_val = 5, double_val = 6).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path

from specdebug.client.neighbours import ForeignRun, Found
from specdebug.client.neighbours.mlflow import metric_name

LARGEST_RECORD = 64 << 20
_Field = tuple[int, int, int, bytes]


def read(path: Path) -> Found:
    """A run from an event file, or one from each below a folder. Raises ValueError where there is
    no scalar."""
    files = sorted(path.rglob("events.out.tfevents.*")) if path.is_dir() else [path]
    runs: list[ForeignRun] = []
    problems: list[str] = []
    for file in files:
        cut: list[str] = []
        # Read to the end, so that a cut is met here and not half way through the sending.
        if sum(1 for _ in _points(file, cut)):
            runs.append(_run(file))
            problems += cut
        else:
            problems.append(f"{file} is no TensorBoard event file with scalars")
    if not runs:
        what = f"{path} is no TensorBoard event file with scalars"
        raise ValueError(what if files == [path] else f"no event file below {path} has scalars")
    return Found(tuple(runs), tuple(problems))


def _run(path: Path) -> ForeignRun:
    title = path.parent.name or path.name
    key = f"tensorboard:{path.parent.name}/{path.name}"
    return ForeignRun(key=key, title=title, points=lambda: _points(path))


def _points(
    path: Path, problems: list[str] | None = None
) -> Iterator[tuple[int, float, dict[str, float]]]:
    """The rows up to the end, or to where the file is cut, which goes into `problems`."""
    with path.open("rb") as file:
        while head := file.read(12):
            start = file.tell() - len(head)
            (length,) = struct.unpack("<Q", head[:8]) if len(head) == 12 else (LARGEST_RECORD + 1,)
            # Too long: not the file it seems to be. Too short: cut, or still being written.
            data = file.read(length) if length <= LARGEST_RECORD else b""
            if length > LARGEST_RECORD or len(data) < length or len(file.read(4)) < 4:
                if problems is not None:
                    problems.append(f"{path} is cut or damaged at byte {start}; taken up to there")
                return
            yield from _event(data)


def _event(data: bytes) -> Iterator[tuple[int, float, dict[str, float]]]:
    step, moment = 0, 0.0
    summaries: list[bytes] = []
    for number, kind, value, raw in _fields(data):
        if number == 1 and kind == 1:
            (moment,) = struct.unpack("<d", raw)
        elif number == 2 and kind == 0:
            step = value if value < 1 << 63 else value - (1 << 64)
        elif number == 5 and kind == 2:
            summaries.append(raw)
    values: dict[str, float] = {}
    for summary in summaries:
        for number, kind, _, raw in _fields(summary):
            if number == 1 and kind == 2:
                values |= _scalar(raw)
    if values and math.isfinite(moment):
        yield step, moment, values


def _scalar(data: bytes) -> dict[str, float]:
    tag, value = "", None
    for number, kind, _, raw in _fields(data):
        if number == 1 and kind == 2:
            tag = raw.decode("utf-8", "replace")
        elif number == 2 and kind == 5:
            (value,) = struct.unpack("<f", raw)
        elif number == 8 and kind == 2:
            value = _tensor(raw)
    if not tag or value is None or not math.isfinite(value):
        return {}
    return {metric_name(tag): float(value)}


def _tensor(data: bytes) -> float | None:
    """The one number of a scalar tensor; None for any other."""
    dtype = 0
    for number, kind, value, raw in _fields(data):
        if number == 1 and kind == 0:
            dtype = value
        elif number == 4 and kind == 2:
            if dtype == 1 and len(raw) == 4:
                return float(struct.unpack("<f", raw)[0])
            if dtype == 2 and len(raw) == 8:
                return float(struct.unpack("<d", raw)[0])
        elif number == 5 and kind in (2, 5) and len(raw) == 4:
            return float(struct.unpack("<f", raw)[0])
        elif number == 6 and kind in (1, 2) and len(raw) == 8:
            return float(struct.unpack("<d", raw)[0])
    return None


def _fields(data: bytes) -> Iterator[_Field]:
    """(number, wire type, varint, bytes) of a protobuf message; ends at the first fault."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        value, raw = 0, b""
        if kind == 0:
            value, place = _varint(data, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            raw, place = data[place : place + size], place + size
        elif kind == 2:
            size, place = _varint(data, place)
            raw, place = data[place : place + size], place + size
        else:
            return
        if place > len(data):
            return
        yield number, kind, value, raw


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    return value, len(data) + 1
