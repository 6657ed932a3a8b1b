"""How the record says no: one sentence for a person, and where it helps a list of what is left."""

from __future__ import annotations

from collections.abc import Iterable


class Refused(ValueError):
    """A write that the record's rules do not allow; nothing was changed.

    The message is one sentence that says what and what to do; `obstacles` lists what stands in the
    way, empty where the sentence says it all.
    """

    def __init__(self, sentence: str, obstacles: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.obstacles = tuple(obstacles)


class ClaimLost(Refused):
    """The caller no longer holds the run: it was reaped, cancelled or claimed by another worker."""
