"""Killing processes that may already be on their way out."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable


def kill(pids: Iterable[int]) -> None:
    """SIGKILL each. One that has gone meanwhile is no error: killing the first of a tree often ends
    the others (a parent-death signal, a leash), between the look and the signal."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
