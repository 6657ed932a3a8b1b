"""The machine for one run at a time: a lock that the kernel lets go when its holder dies; it queues
nobody."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LOOK_SECONDS = 0.5


@contextlib.contextmanager
def hold(path: Path, *, patience: float, give_up: Callable[[], bool]) -> Iterator[bool]:
    """Yield whether the lock at `path` is ours, for as long as the block lasts.

    Waits up to `patience` seconds for another holder, less when `give_up` says so.
    Raises OSError where the file cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Not inherited by what we start: an engine that outlives us must not hold the machine.
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        until = time.monotonic() + patience
        while not (ours := _try(handle)) and time.monotonic() < until and not give_up():
            time.sleep(min(LOOK_SECONDS, patience))
        yield ours
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock at `path` now; False where there is no such file."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who look do not take each other for the holder.
        return not _try(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _try(handle: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
