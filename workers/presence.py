"""What this worker is and can run, told every few seconds from a thread; where it goes is the
caller's."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from specdebug import __version__
from workers import engines, gpu_locks, gpus
from workers.gpus import NoGpus
from workers.plan import RunEnded

log = logging.getLogger(__name__)

NAME, COUNT = "SPECDEBUG_WORKER_NAME", "SPECDEBUG_GPUS"
EVERY_SECONDS = 5.0


@dataclass(frozen=True)
class Ability:
    """What this worker may claim. gpus: how many it may lease, None where nobody can say, which
    restricts nothing. lacks: engine -> why it cannot be run here."""

    worker: str
    gpus: int | None = None
    lacks: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """One look at the machine. gpus: as gpus.as_json, with "lease": who has it, "" when free."""

    ability: Ability
    gpus: tuple[dict[str, Any], ...] = ()
    problem: str = ""
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    version: str = __version__


def name() -> str:
    """This worker's name: $SPECDEBUG_WORKER_NAME, else the host's."""
    given = os.environ.get(NAME, "").strip()
    return (given or socket.gethostname())[:100]


def look() -> Seen:
    """What the machine has now; a driver that does not answer is told and no error."""
    stated, problem = _stated()
    rows: tuple[dict[str, Any], ...] = ()
    count = stated
    try:
        with gpus.nvml() as asked:
            allowed = gpus.pick(asked.gpus(), os.environ.get("CUDA_VISIBLE_DEVICES"))
        rows = tuple({**gpus.as_json(gpu), "lease": _lease(gpu)} for gpu in allowed)
        count = len(rows) if stated is None else min(stated, len(rows))
    except NoGpus as no:
        # Without a driver there is no telling: other makes of GPU are not counted here.
        problem = problem or no.reason
    except ValueError as no:
        problem = problem or str(no)
    return Seen(Ability(name(), count, lacking()), rows, problem)


def _stated() -> tuple[int | None, str]:
    given = os.environ.get(COUNT, "").strip()
    if not given:
        return None, ""
    if given.isascii() and given.isdigit():
        return int(given), ""
    return None, f"{COUNT}={given!r} is no number of GPUs and is not used"


def _lease(gpu: gpus.Gpu) -> str:
    try:
        return gpu_locks.holder(gpu)
    except OSError as problem:
        return f"not known ({problem})"


def lacking() -> dict[str, str]:
    """Engines that cannot be run here for want of an interpreter."""
    found = {}
    for engine in engines.ENGINES.values():
        if engine.launches:
            try:
                engine.python()
            except RunEnded as no:
                found[engine.name] = no.reason.rstrip(".")
    return found


class Presence:
    """Calls `tell` with a look at the machine, at once and then every few seconds, until `stop`."""

    def __init__(
        self,
        tell: Callable[[Seen], None],
        *,
        done: Callable[[], None],
        every: float = EVERY_SECONDS,
    ) -> None:
        self._tell, self._done, self._every = tell, done, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, name="presence", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; safe to call twice and before the start."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(self._every)

    def _live(self) -> None:
        try:
            while True:
                try:
                    self._tell(look())
                except Exception:
                    # Not to be seen on a page is no reason to stop measuring.
                    log.exception("the worker could not tell of itself")
                if self._stop.wait(self._every):
                    return
        finally:
            self._done()
