"""Any eight neighbouring bytes of a block, and the numbers written in it, at many places."""

from __future__ import annotations

from array import array
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

EIGHT = 8
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
_ONE, _LAST = np.uint64(1), np.uint64(63)
_ZEROS = np.uint64(0x3030303030303030)
# One pass joins neighbouring digits, the next pairs, the last fours: (shift, factor, mask).
_JOINS = tuple(
    (np.uint64(shift), np.uint64(factor), np.uint64(mask))
    for shift, factor, mask in (
        (8, 10, 0x00FF00FF00FF00FF),
        (16, 100, 0x0000FFFF0000FFFF),
        (32, 10_000, 0x00000000FFFFFFFF),
    )
)


class Eights:
    """Reads from `data`; a number has its first byte lowest.

    Two reads at multiples of eight and two shifts: numpy's own reads at odd addresses take twice
    as long.
    """

    def __init__(self, data: bytes) -> None:
        self._words: Words = np.frombuffer(data, "<u8", len(data) // EIGHT)

    def at(self, places: Ints) -> Words:
        """The eight bytes from each place on; places of any shape, up to len(data) - 16."""
        whole = places >> 3
        shift = ((places & 7) << 3).astype(np.uint64)
        # Shifted by one and then by up to 63: by 64 at once is not defined.
        upper = (self._words.take(whole + 1) << _ONE) << (_LAST - shift)
        found: Words = (self._words.take(whole) >> shift) | upper
        return found

    def numbers(self, begin: Ints, width: Ints) -> Ints:
        """The numbers in runs of up to sixteen digits that begin at `begin`; any shape."""
        value = _number(self.at(begin), np.minimum(width, EIGHT))
        wide = width > EIGHT
        if wide.any():
            start, rest = begin[wide], width[wide] - EIGHT
            head, tail = self.at(start), self.at(start + rest)
            ends = _number(tail, np.full_like(rest, EIGHT))
            value[wide] = _number(head, rest) * 10**EIGHT + ends
        return value


def _number(word: Words, width: Ints) -> Ints:
    """The number in the first `width` (1 to 8) bytes of each word, all of them digits.

    They are shifted to the end of the word, zeros come in before them, and neighbours are joined.
    """
    number: Words = (word ^ _ZEROS) << ((EIGHT - width) * 8).astype(np.uint64)
    for shift, factor, mask in _JOINS:
        number = (number * factor + (number >> shift)) & mask
    return number.astype(np.int64)


def as_array(code: Literal["q", "d"], values: npt.NDArray[Any]) -> array[Any]:
    """The values (int64 for "q", float64 for "d") as an array of the standard library."""
    return array(code, values.tobytes())
