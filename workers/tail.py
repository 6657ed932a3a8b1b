"""The server's log while it grows, line by line, and the line that says why it ended; it keeps no
figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

# A longer line is cut: no engine says anything in it that a person or the live page needs.
LONGEST_LINE = 16 * 1024
READ_AT_ONCE = 1024 * 1024
QUOTED = 300
_ENDS = re.compile(rb"[\r\n]+")


class Tail:
    """Follows one file from its beginning; `size` is what has been read of it, in bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._open = b""

    def lines(self) -> Iterator[str]:
        """The lines finished since the last call; a progress bar's carriage return ends one."""
        try:
            with self.path.open("rb") as log:
                # Only what is there now: a log that grows faster than we read must not hold us.
                end = log.seek(0, 2)
                log.seek(self.size)
                while data := log.read(min(READ_AT_ONCE, end - self.size)):
                    self.size += len(data)
                    *whole, rest = _ENDS.split(self._open + data)
                    self._open = rest[-LONGEST_LINE:]
                    for line in whole:
                        if line:
                            yield line[:LONGEST_LINE].decode(errors="replace")
        except OSError:
            return  # not there yet, or a failing disk: the server's own state decides

    def rest(self) -> str:
        """The unfinished last line of a server that has ended, taken once."""
        rest, self._open = self._open, b""
        return rest.decode(errors="replace")


def last_lines(path: Path, most: int = 256 * 1024) -> list[str]:
    """The end of a log, at most `most` bytes of it; empty where there is none."""
    try:
        with path.open("rb") as log:
            end = log.seek(0, 2)
            log.seek(max(0, end - most))
            data = log.read(most)
    except OSError:
        return []
    return [line.decode(errors="replace") for line in _ENDS.split(data) if line.strip()]


_PREFIX = re.compile(r"^\[\d{4}-\d\d-\d\d [\d:.]+[^\]]*\] ")
# `name.Error: text`, as Python prints the end of a traceback, or argparse and uvicorn their errors.
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b(?::|$)")
_SAID = re.compile(
    r"(?:\berror: |\bERROR\b|address already in use|No such file or directory|not enough memory"
    r"|out of memory|CUDA error|killed|unrecognized arguments|No space left on device"
    r"|does not exist|not found|refused|cannot )",
    re.IGNORECASE,
)
# What a parent prints because its child is gone; the child's own words are the cause.
_ECHO = re.compile(
    r"sigquit|one child failed|scheduler is dead|EOFError|KeyboardInterrupt|SystemExit"
    r"|BrokenPipeError|ConnectionResetError|resource_tracker|CancelledError|Warning\b"
    r"|Ignore import error",
    re.IGNORECASE,
)
_HIT = re.compile(r"hit an exception|Traceback \(most recent call last\)")


def why_it_ended(lines: Iterable[str]) -> str:
    """The one line of a dead server's log that tells most, verbatim without its time stamp.

    The first exception after the scheduler's own report of one; else the last exception or error;
    else the last line. Empty when the log is.
    """
    said = [_PREFIX.sub("", line).strip() for line in lines]
    said = [line for line in said if line]
    begin = next((n for n, line in enumerate(said) if "hit an exception" in line), None)
    if begin is not None:
        for line in said[begin:]:
            if _RAISED.match(line) and not _ECHO.search(line):
                return _cut(line)
    for pattern in (_RAISED.match, _SAID.search):
        for line in reversed(said):
            if pattern(line) and not _ECHO.search(line) and not _HIT.search(line):
                return _cut(line)
    return _cut(said[-1]) if said else ""


def _cut(line: str) -> str:
    return line if len(line) <= QUOTED else line[: QUOTED - 1] + "…"
