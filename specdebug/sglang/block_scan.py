"""Finds the lines of a piece of log that matter, at memory speed; reads none of them.

A serving log is nearly all access, prefill and decode lines behind equal prefixes: those are told
by eight bytes at the place where their message starts. What is left is searched line by line if it
is little, by a few fixed strings if it is much.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from specdebug.sglang.eights import Ints, as_array
from specdebug.sglang.log_events import GATES, NEEDLES
from specdebug.sglang.log_scan import (
    ACCESS,
    DECODE,
    PREFILL,
    Marked,
    Taken,
    also_event,
    matters,
)
from specdebug.sglang.request_log import own

_FEW = 2_000
_MAX_OFFSETS = 12
_GUESSES = 4


def _word(text: bytes) -> int:
    return int.from_bytes(text, "little")


# How a message begins, with the bracket of its prefix in front or without one, and what follows
# three bytes on: "Decode out of memory" is no decode line.
_WORDS = {
    2: (_word(b"] Decode"), _word(b"] Prefil"), _word(b"] INFO: ")),
    0: (_word(b"Decode b"), _word(b"Prefill "), _word(b"INFO:   ")),
}
_SECOND = 3
_DECODE_WORD, _PREFILL_WORD = _word(b"ode batc"), _word(b"fill bat")
_REACH = 16
_EIGHT = 8


@dataclass(slots=True)
class BlockScan:
    """Line bounds (`ends` excludes the newline) and indices of the lines of each kind."""

    data: bytes
    starts: Ints
    ends: Ints
    decode: Ints
    prefill: Ints
    marks: list[int]
    access: int

    @property
    def lines(self) -> int:
        """How many lines the piece has."""
        return len(self.starts)

    @property
    def decodes(self) -> int:
        """Decode lines."""
        return len(self.decode)

    @property
    def prefills(self) -> int:
        """Prefill lines."""
        return len(self.prefill)

    def marked(self) -> Iterator[Marked]:
        """The lines that may be events, in order."""
        if not self.marks:
            return
        at = np.array(self.marks, np.int64)
        parts = [at, self.starts[at], self.ends[at]]
        parts += [np.searchsorted(kind, at) for kind in (self.decode, self.prefill)]
        yield from map(Marked, *(part.tolist() for part in parts))

    def take(self, begin: int, end: int, first: int, offsets: Sequence[int] | None) -> Taken:
        """Decode lines begin to end, numbered from `first` on (see `log_scan.Scan`)."""
        rows = self.decode[begin:end]
        starts, ends = self.starts[rows], self.ends[rows]
        if len(rows) == len(self.starts):
            texts = [self.data]
        else:
            bounds = zip(starts.tolist(), (ends + 1).tolist(), strict=True)
            texts = [self.data[s:e] for s, e in bounds]
        if offsets is None:
            numbers = as_array("q", rows + first)
        else:
            numbers = array("q", (first + offsets[row] for row in rows.tolist()))
        return Taken(texts, numbers, int((ends - starts).sum()))


class BlockScanner:
    """Remembers where messages start behind the prefixes it has met."""

    def __init__(self) -> None:
        self._offsets: list[int] = []

    def scan(self, data: bytes, starting: bool, signs: tuple[bytes, ...] = NEEDLES) -> BlockScan:
        """See `log_scan.Scanner`."""
        ends = _newlines(data)
        starts = np.empty(len(ends), np.int64)
        starts[:1] = 0
        starts[1:] = ends[:-1] + 1
        decode, prefill, access, rest = self._by_prefix(data, starts, ends)
        hits: set[int] = set()
        loose: list[int] = []
        prefills: list[int] = []
        if len(rest) <= _FEW:
            for at in rest.tolist():
                line = own(data[starts[at] : ends[at]])
                if PREFILL in line:
                    prefills.append(at)
                elif ACCESS in line:
                    access += 1
                if matters(line):
                    if DECODE in line:
                        loose.append(at)
                    hits.add(at)
        else:
            offsets = starts.tolist()
            loose = _saying(DECODE, data, offsets)
            prefills = _saying(PREFILL, data, offsets)
            if starting or any(gate in data for gate in GATES):
                for needle in signs:
                    hits.update(_saying(needle, data, offsets))
        if prefills:
            prefill = _joined(prefill, prefills)
        if loose:
            decode = _joined(decode, loose)
            both = hits.intersection(loose)
            hits -= {at for at in both if not also_event(own(data[starts[at] : ends[at]]))}
        return BlockScan(data, starts, ends, decode, prefill, sorted(hits), access)

    def _by_prefix(self, data: bytes, starts: Ints, ends: Ints) -> tuple[Ints, Ints, int, Ints]:
        """Indices of decode and prefill lines, the number of access lines, all other indices."""
        rest = np.arange(len(starts))
        if len(data) < _REACH:
            return np.empty(0, np.int64), np.empty(0, np.int64), 0, rest
        # Few places, near each other: the shifts of `Eights` would cost more than they spare.
        words: npt.NDArray[np.uint64] = np.ndarray(
            (len(data) - 7,), np.dtype("<u8"), data, strides=(1,)
        )
        decode: list[Ints] = []
        prefill: list[Ints] = []
        access = 0

        def take(offset: int, rest: Ints) -> Ints:
            """Tell the lines whose message starts at `offset`; returns the others."""
            nonlocal access
            lead = 2 if offset >= 2 else 0
            # No word may reach over the end; a line too short for it cannot be one of these.
            at = np.minimum(starts[rest] + (offset - lead), len(data) - _REACH)
            word = words[at]
            first = _WORDS[lead]
            told = word == first[2]
            access += int(np.count_nonzero(told))
            for kind, wanted, found in (
                (first[0], _DECODE_WORD, decode),
                (first[1], _PREFILL_WORD, prefill),
            ):
                rows = np.flatnonzero(word == kind)
                if len(rows):
                    rows = rows[words[at[rows] + (lead + _SECOND)] == wanted]
                    found.append(rest[rows])
                    told[rows] = True
            others: Ints = rest[~told]
            return others

        for offset in self._offsets:
            rest = take(offset, rest)
        for sample in range(_GUESSES):
            if len(rest) <= _FEW // 20:
                break
            begin, end = (
                int(bound[rest[len(rest) * sample // _GUESSES]]) for bound in (starts, ends)
            )
            bracket = data.find(b"] ", begin, min(begin + 200, end))
            offset = bracket + 2 - begin if bracket >= 0 else 0
            if offset in self._offsets:
                continue
            before = len(rest)
            rest = take(offset, rest)
            if len(rest) < before:
                self._offsets = [offset, *self._offsets[: _MAX_OFFSETS - 1]]
        return _sorted(decode), _sorted(prefill), access, rest


def _newlines(data: bytes) -> Ints:
    """Where the newlines are, looked for eight bytes at a time: most eights hold none."""
    is_end = np.frombuffer(data, np.uint8) == 10
    eights = len(data) // _EIGHT
    words = is_end[: eights * _EIGHT].view("<u8")
    hits = np.flatnonzero(words != 0)
    word = words[hits]
    below = word - np.uint64(1)  # has all bits set under the first newline's own
    if (word & below).any():
        return np.flatnonzero(is_end)  # two in one eight: lines that short are rare
    found: Ints = hits * _EIGHT + (np.bitwise_count(below) >> 3)
    tail = np.flatnonzero(is_end[eights * _EIGHT :])
    return np.concatenate([found, tail + eights * _EIGHT]) if len(tail) else found


def _sorted(parts: list[Ints]) -> Ints:
    if len(parts) == 1:
        return parts[0]
    joined: Ints = np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
    return joined


def _joined(found: Ints, others: list[int]) -> Ints:
    """Both in ascending order, each once (numpy's own unions load all of `numpy.ma`)."""
    both: Ints = np.sort(np.concatenate([found, np.array(others, np.int64)]))
    return both[np.flatnonzero(np.diff(both, prepend=-1))]


def _saying(needle: bytes, data: bytes, offsets: list[int]) -> list[int]:
    """Indices of the lines that contain `needle` in front of a request's record."""
    found = _lines_with(needle, data, offsets)
    if b": obj=" not in data and b"request." not in data:
        return found
    bounds = [*offsets, len(data)]
    return [at for at in found if needle in own(data[bounds[at] : bounds[at + 1]])]


def _lines_with(needle: bytes, data: bytes, offsets: list[int]) -> list[int]:
    """Indices of the lines that contain `needle`."""
    found: list[int] = []
    at = data.find(needle)
    while at >= 0:
        index = bisect_right(offsets, at) - 1
        found.append(index)
        if index + 1 >= len(offsets):
            break
        at = data.find(needle, offsets[index + 1])
    return found
