"""Windows of lines out of files of any size: a log's end, or the place that a finding points at."""

from __future__ import annotations

import gzip
import lzma
import os
from collections import deque
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from django.conf import settings

from experiments.models import Run

WINDOW = 400  # lines shown at once
LONGEST = 2000  # characters of a line that are shown
TAIL_BYTES = 256 * 1024
# What a page reads of one line before it gives up on finding its end.
LINE_BYTES = 1024 * 1024
# Packed files can be small on disk and endless when opened.
MOST_LINES = 50_000_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line: 1-based number (None in a tail whose start is unknown) and its text."""

    number: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive lines; `before` and `after`: a line to ask for to see more, None at the ends."""

    lines: tuple[Line, ...]
    before: int | None
    after: int | None


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        magic = file.read(6)
    if magic[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if magic == b"\xfd7zXZ\x00":
        return cast(BinaryIO, lzma.open(path, "rb"))
    return path.open("rb")


def _text(raw: bytes) -> str:
    text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
    # A progress bar redraws itself with carriage returns; its last state is what a person saw.
    text = text.rsplit("\r", 1)[-1]
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def live_log(run: Run) -> Path:
    """Where the worker writes the run's log; it may not be there, or be on another machine."""
    # The name only: a plan that came from elsewhere must not lead out of the folder.
    return settings.RUN_DIR / Path(str(run.plan.get("run") or "none")).name / "server.log"


def window(path: Path, around: int = 1, size: int = WINDOW) -> Window:
    """Up to `size` lines with line `around` (1-based) a quarter from the top.

    Raises OSError or EOFError where the file cannot be read.
    """
    first = max(1, min(around, MOST_LINES) - size // 4)
    with _opened(path) as file:
        number, start = 1, first
        kept: list[Line] = []
        more = False
        while number < start and file.readline(LINE_BYTES):
            number += 1
        for raw in iter(lambda: file.readline(LINE_BYTES), b""):
            if len(kept) == size:
                more = True
                break
            kept.append(Line(number, _text(raw)))
            number += 1
    return Window(
        tuple(kept),
        max(1, first - size // 2) if first > 1 else None,
        number + size // 4 if more else None,
    )


def tail(path: Path, count: int = 200) -> tuple[Line, ...]:
    """The last `count` lines of a plain, perhaps growing file; none when it is not there yet."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = max(0, size - TAIL_BYTES)
            file.seek(start)
            raw = file.read(TAIL_BYTES)
    except OSError:
        return ()
    lines = raw.split(b"\n")
    if start and len(lines) > 1:
        lines = lines[1:]
    if lines and not lines[-1]:
        lines.pop()
    kept = deque(islice(lines, max(0, len(lines) - count), None))
    first = len(lines) - len(kept) + 1
    return tuple(Line(first + i if not start else None, _text(line)) for i, line in enumerate(kept))
