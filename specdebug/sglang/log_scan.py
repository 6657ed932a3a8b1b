"""What a piece of a log holds, told line by line; `block_scan` and `decode_block` tell the same of
many lines at memory speed, with numpy, which takes longer to import than few lines to read."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from specdebug.sglang.decode_line import DecodeLine
from specdebug.sglang.decode_table import Rows
from specdebug.sglang.log_events import LOOK, NEEDLES
from specdebug.sglang.log_line import clean, decode_lines
from specdebug.sglang.request_log import own

DECODE = b"Decode batch"
PREFILL = b"Prefill batch"
ACCESS = b"INFO:   "
_LONG = 4_000  # bytes of a line; a longer one is searched for one sign after the other
_SHOWN = 300


class Marked(NamedTuple):
    """A line that may be an event: its index and bounds in the piece (`end` excludes the newline),
    and how many decode and prefill lines stand above it."""

    at: int
    start: int
    end: int
    decodes: int
    prefills: int


class Taken(NamedTuple):
    """Some decode lines of a piece: their text with newlines, their numbers, bytes without."""

    texts: list[bytes]
    numbers: array[int]
    size: int


@dataclass(slots=True)
class Unread:
    """A line that says it is a decode line and could not be read."""

    line: int
    text: str


class Scan(Protocol):
    """What a scanner found in a piece: how many lines of each kind, and where those to read are."""

    @property
    def lines(self) -> int:
        """Lines of any kind."""

    @property
    def access(self) -> int:
        """Access lines."""

    @property
    def decodes(self) -> int:
        """Decode lines."""

    @property
    def prefills(self) -> int:
        """Prefill lines."""

    def marked(self) -> Iterable[Marked]:
        """The lines that may be events, in order."""

    def take(self, begin: int, end: int, first: int, offsets: Sequence[int] | None) -> Taken:
        """Decode lines begin to end of this piece, whose line at index i has the number first + i,
        or first + offsets[i]."""


class Scanner(Protocol):
    """Finds the lines of a piece that matter and reads none of them."""

    def scan(self, data: bytes, starting: bool, signs: tuple[bytes, ...] = NEEDLES) -> Scan:
        """Scan whole lines (`data` ends with a newline).

        `starting` asks for every line that matters; otherwise serving is assumed and a piece may be
        searched for rare lines only if it shows a sign of them. A line with one of `signs` matters
        (where little is searched, one with any of `NEEDLES`).
        """


class DecodeParser(Protocol):
    """Reads decode lines."""

    def parse(
        self, block: bytes, numbers: array[int], full: Collection[str] = ()
    ) -> tuple[list[tuple[str, Rows]], list[DecodeLine], list[Unread]]:
        """Read every line of `block`, each ended by a newline; `numbers` (ascending) are theirs.

        Returns one batch per rank, the lines that carry keys without a column (they are in a batch
        too; where they are many, those of the ranks in `full` may be left out), and the lines that
        could not be read.
        """


@dataclass(slots=True)
class _LineScan:
    data: bytes
    lines: int
    access: int
    found: list[tuple[int, int, int]]  # index and bounds of each decode line
    prefills: int
    marks: list[Marked]

    @property
    def decodes(self) -> int:
        return len(self.found)

    def marked(self) -> Iterable[Marked]:
        return self.marks

    def take(self, begin: int, end: int, first: int, offsets: Sequence[int] | None) -> Taken:
        some = self.found[begin:end]
        numbers = array("q", (first + (offsets[at] if offsets else at) for at, _, _ in some))
        texts = [self.data[start : end + 1] for _, start, end in some]
        return Taken(texts, numbers, sum(end - start for _, start, end in some))


class LineScanner:
    """Scans line by line, all that may matter."""

    def scan(self, data: bytes, starting: bool, signs: tuple[bytes, ...] = NEEDLES) -> _LineScan:
        """See `Scanner`; neither `starting` nor `signs` makes a difference."""
        found: list[tuple[int, int, int]] = []
        marks: list[Marked] = []
        access = prefills = start = 0
        lines = data.split(b"\n")[:-1]
        for at, line in enumerate(lines):
            end = start + len(line)
            said = own(line)
            if PREFILL in said:
                prefills += 1
            elif ACCESS in said:
                access += 1
            if matters(said):
                decode = DECODE in said
                if not decode or also_event(said):
                    before = prefills - (PREFILL in said)
                    marks.append(Marked(at, start, end, len(found), before))
                if decode:
                    found.append((at, start, end))
            start = end + 1
        return _LineScan(data, len(lines), access, found, prefills, marks)


class LineParser:
    """Reads decode lines one by one."""

    def parse(
        self, block: bytes, numbers: array[int], full: Collection[str] = ()
    ) -> tuple[list[tuple[str, Rows]], list[DecodeLine], list[Unread]]:
        """See `DecodeParser`."""
        lines: list[DecodeLine] = []
        unread: list[Unread] = []
        for text, number in zip(block.split(b"\n")[:-1], numbers, strict=True):
            read_one(text, number, lines, unread)
        batches = [(rank, Rows.of(of_rank)) for rank, of_rank in by_rank(lines).items()]
        return batches, [line for line in lines if line.extra], unread


def matters(line: bytes) -> bool:
    """Whether a line is a decode line or may be an event."""
    if len(line) < _LONG:
        return LOOK.search(line) is not None
    # One sign after the other: over a long line that is several times faster.
    return DECODE in line or also_event(line)


def also_event(line: bytes) -> bool:
    """Whether a decode line has something else glued to it that matters."""
    return any(needle in line for needle in NEEDLES)


def read_one(text: bytes, number: int, lines: list[DecodeLine], unread: list[Unread]) -> None:
    """Read the decode messages of one line into `lines`, or what of it cannot be read."""
    for found in decode_lines(clean(own(text).decode("utf-8", "replace")), number):
        if found is None:
            unread.append(Unread(number, text[:_SHOWN].decode("utf-8", "replace")))
        else:
            lines.append(found)


def by_rank(lines: Iterable[DecodeLine]) -> dict[str, list[DecodeLine]]:
    """The lines of each rank, in their order."""
    found: dict[str, list[DecodeLine]] = {}
    for line in lines:
        found.setdefault(line.rank, []).append(line)
    return found
