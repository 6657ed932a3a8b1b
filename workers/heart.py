"""The heartbeat of a run in progress and every reason to stop it; where the beat goes is the
caller's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from workers.plan import Progress


class Beat(Protocol):
    """What the record answers to a heartbeat; see experiments.claims.Beat."""

    @property
    def alive(self) -> bool: ...
    @property
    def cancel(self) -> bool: ...


CANCELLED = "Cancelled on request."
LOST = "The record has given this run to another worker."


class Heart:
    """Beats from a thread of its own while the block lasts.

    `beat` gets the newest progress and answers None where the record could not be reached: then it
    is tried again, for nobody else can claim the run meanwhile. `done` is called once, in the
    thread, at its end. `leaving` says why the worker itself must stop, "" while it may go on.
    """

    def __init__(
        self,
        beat: Callable[[Progress], Beat | None],
        *,
        every: float,
        done: Callable[[], None],
        leaving: Callable[[], str],
    ) -> None:
        self._beat, self._every, self._done, self._leaving = beat, every, done, leaving
        self._progress = Progress("preparing")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, name="heart", daemon=True)
        self.lost = False
        self._cancelled = False

    def __enter__(self) -> Heart:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def tell(self, progress: Progress) -> None:
        """Note where the run stands; it goes out with the next beat."""
        self._progress = progress

    def should_stop(self) -> str:
        """Why the run must stop, "" while it may go on."""
        if self.lost:
            return LOST
        return CANCELLED if self._cancelled else self._leaving()

    def _live(self) -> None:
        try:
            while not self._stop.wait(self._every):
                answer = self._beat(self._progress)
                if answer is not None:
                    self.lost = self.lost or not answer.alive
                    self._cancelled = self._cancelled or answer.cancel
        finally:
            self._done()
