"""The processes that make up a running specdebug, each started, watched and stopped in one way."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

# A service that dies more often than this has a cause that starting it again does not cure.
MOST_RESTARTS = 5
WITHIN_SECONDS = 120.0
# workers.leash ends everything on this signal, and needs up to its own sweep time for it.
LEASH_ENDS_ALL = (signal.SIGUSR1, 12.0)


@dataclass
class Service:
    """One process group with its log; not safe for use from several threads."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    log: Path | None  # None: our own output
    cwd: Path
    inherited: tuple[int, ...] = ()  # file descriptors the process keeps open, e.g. a bound socket
    # What ends it politely; a second, harder one follows after `patience` seconds, then SIGKILL.
    signals: tuple[signal.Signals, ...] = (signal.SIGTERM,)
    patience: float = 5.0
    process: subprocess.Popen[bytes] | None = None
    starts: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_RESTARTS + 1))

    def start(self) -> None:
        """Start the process in a session of its own, so that Ctrl-C reaches us alone.

        Raises OSError where the program cannot be started.
        """
        self.starts.append(time.monotonic())
        # The leash ends the whole group when this process dies, however it dies.
        leashed = [sys.executable, "-m", "workers.leash", str(os.getpid()), "--", *self.argv]
        with contextlib.ExitStack() as closing:
            output: IO[bytes] | None = None
            if self.log:
                self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                output = closing.enter_context(self.log.open("ab"))
            self.process = subprocess.Popen(
                leashed,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(self.env),
                cwd=self.cwd,
                pass_fds=self.inherited,
                start_new_session=True,
            )

    @property
    def ended(self) -> int | None:
        """The exit code, None while it runs or before it was started."""
        return self.process.poll() if self.process else None

    @property
    def may_restart(self) -> bool:
        full = len(self.starts) == self.starts.maxlen
        return not full or self.starts[-1] - self.starts[0] > WITHIN_SECONDS

    def ask(self) -> None:
        """Ask the process to end, without waiting for it."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(self.signals[0])

    def stop(self) -> None:
        """End the process and its whole group; returns when none of it is left."""
        process = self.process
        if process is None:
            return
        # The last one tells the leash itself to kill whatever is left of the process.
        for sign, patience in [*((sign, self.patience) for sign in self.signals), LEASH_ENDS_ALL]:
            if process.poll() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
        # Only where even the leash hangs: its group.
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.process = None

    def last_lines(self, count: int = 12) -> list[str]:
        """The end of the log, for the message when it died."""
        if self.log is None:
            return []
        try:
            with self.log.open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - 8192))
                return log.read().decode(errors="replace").splitlines()[-count:]
        except OSError:
            return []
