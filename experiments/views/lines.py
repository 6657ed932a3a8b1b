"""Windows of lines out of files of any size: a log's end, or the place that a finding points at."""

from __future__ import annotations

import gzip
import io
import lzma
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, cast

from django.conf import settings

from experiments import secrets
from experiments.models import Run

WINDOW = 400  # lines shown at once
LONGEST = 2000  # characters of a line that are shown
TAIL_BYTES = 256 * 1024
PIECE = 1024 * 1024
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


class _Transcoded(io.RawIOBase):
    """A UTF-16 file read as UTF-8."""

    def __init__(self, path: Path) -> None:
        self._text = path.open(encoding="utf-16", errors="replace", newline="")

    def read(self, size: int = -1) -> bytes:
        return self._text.read(size).encode()

    def close(self) -> None:
        self._text.close()
        super().close()


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        magic = file.read(6)
    if magic[:2] == b"\x1f\x8b":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if magic == b"\xfd7zXZ\x00":
        return cast("IO[bytes]", lzma.open(path, "rb"))
    if magic[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return cast("IO[bytes]", _Transcoded(path))
    return path.open("rb")


def _lines_from(file: IO[bytes], first: int) -> Iterator[bytes]:
    """Lines from line `first` on; what comes before is only counted, a gigabyte in a second."""
    skip, rest = first - 1, b""
    while chunk := file.read(PIECE):
        if skip:
            ends = chunk.count(b"\n")
            if ends < skip:
                skip -= ends
                continue
            at = -1
            while skip:
                at = chunk.index(b"\n", at + 1)
                skip -= 1
            chunk = chunk[at + 1 :]
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        # The rest of a line without end is read and forgotten.
        rest = rest[:PIECE]
    if rest:
        yield rest


def _text(raw: bytes, hide: Sequence[str] = ()) -> str:
    text = secrets.masked(raw.decode("utf-8", errors="replace").rstrip("\r\n"), hide)
    # A progress bar redraws itself with carriage returns; its last state is what a person saw.
    text = text.rsplit("\r", 1)[-1]
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def live_log(run: Run) -> Path:
    """Where the worker writes the run's log; it may not be there, or be on another machine."""
    # The name only: a plan that came from elsewhere must not lead out of the folder.
    name = Path(str(run.plan.get("run", ""))).name
    folder: Path = settings.RUN_DIR / (name if name not in ("", "..") else "none")
    return folder / "server.log"


def window(path: Path, around: int = 1, size: int = WINDOW, *, hide: Sequence[str] = ()) -> Window:
    """Up to `size` lines with line `around` (1-based) a quarter from the top, without the texts of
    `hide`: a growing log may still hold the run's keys.

    Raises OSError or EOFError where the file cannot be read.
    """
    first = max(1, min(around, MOST_LINES) - size // 4)
    with _opened(path) as file:
        raw = list(islice(_lines_from(file, first), size + 1))
    kept = tuple(Line(first + i, _text(line, hide)) for i, line in enumerate(raw[:size]))
    return Window(
        kept,
        max(1, first - size // 2) if first > 1 else None,
        first + size + size // 4 if len(raw) > size else None,
    )


def tail(path: Path, count: int = 200, *, hide: Sequence[str] = ()) -> tuple[Line, ...]:
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
    return tuple(
        Line(first + i if not start else None, _text(line, hide)) for i, line in enumerate(kept)
    )
