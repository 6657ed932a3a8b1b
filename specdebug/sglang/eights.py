"""Any eight neighbouring bytes of a block as one number, for thousands of places at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from specdebug.sglang.decode_table import Ints

EIGHT = 8
Words = npt.NDArray[np.uint64]
_ONE, _LAST = np.uint64(1), np.uint64(63)


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
