"""Holds one program as its child and ends everything it started once its owner is gone; it decides
nothing else.

    python -m workers.leash OWNER_PID [--report FD] [--hold FD]... -- PROGRAM ARGUMENT ...

An owner that is killed with SIGKILL cannot clean up, so somebody else must be there who can. The
leash leads the process group, adopts what the program leaves behind, passes SIGTERM, SIGINT,
SIGQUIT and SIGHUP on to the program, and on SIGUSR1, on its owner's death or on the program's own
end kills all that is left. It exits with the program's exit code (128 + n after signal n). What it
is given to hold, descriptors with locks on them, it keeps from the program and lets go with its own
end: the owner's GPUs are not free before the program is gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

from workers import processes

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
END_NOW = signal.SIGUSR1
OWNER_DIED = signal.SIGUSR2
# From <linux/prctl.h>.
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# The kernel tells at once when the owner dies, but only its thread that started us; this is the net
# below that, and the only means on other systems.
LOOK_SECONDS = 0.5
SWEEP_SECONDS = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        divider = given.index("--")
        owner, command = int(given[0]), given[divider + 1 :]
        names, numbers = given[1:divider:2], [int(number) for number in given[2:divider:2]]
        if not command or len(names) != len(numbers) or {*names} - {"--report", "--hold"}:
            raise ValueError
    except (ValueError, IndexError):
        sys.stderr.write(
            "leash: expected OWNER_PID [--report FD] [--hold FD]... -- PROGRAM ARGUMENT ...\n"
        )
        return 2
    options = list(zip(names, numbers, strict=True))
    for number in numbers:
        os.set_inheritable(number, False)
    return Leash(owner, dict(options).get("--report")).hold(command)


class Leash:
    """One program on its leash. `report` is a pipe to the owner for JSON lines: {"started": pid},
    {"failed": why}, {"ended": code}, {"killed": pids, "left": pids}."""

    def __init__(self, owner: int, report: int | None) -> None:
        self.owner, self.report = owner, report
        self.program: subprocess.Popen[bytes] | None = None
        self.code: int | None = None
        self.wake, wake_end = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_end, False)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        # A handler, not SIG_IGN: what is ignored stays ignored in the program.
        for number in (signal.SIGCHLD, END_NOW, OWNER_DIED, *PASSED_ON):
            signal.signal(number, _noted)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def hold(self, command: Sequence[str]) -> int:
        prctl = _prctl()
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_PDEATHSIG, OWNER_DIED)
        if os.getppid() != self.owner:
            return 1  # it died before we asked to be told
        leash = os.getpid()

        def tie() -> None:
            """In the child, before the program: should the leash be killed, the program dies."""
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != leash:
                os._exit(1)

        try:
            # Descriptors stay open: only what the owner handed over is inheritable.
            self.program = subprocess.Popen(command, close_fds=False, preexec_fn=tie)
        except OSError as problem:
            self._tell(failed=f"{problem.strerror}: {problem.filename or command[0]}")
            return 127
        self._tell(started=self.program.pid)
        self._watch()
        killed, left = self._sweep()
        self._tell(killed=sorted(killed), left=sorted(left))
        code = self.code if self.code is not None else -signal.SIGKILL
        return code if code >= 0 else 128 - code

    def _watch(self) -> None:
        """Until the program ends, or is to be ended."""
        poll = select.poll()
        poll.register(self.wake, select.POLLIN)
        if self.report is not None:
            poll.register(self.report, 0)  # only that the owner's end was closed
        while True:
            ready = dict(poll.poll(LOOK_SECONDS * 1000))
            signals = self._signals() if self.wake in ready else b""
            self._reap()
            if self.code is not None or os.getppid() != self.owner or END_NOW in signals:
                return
            if self.report is not None and self.report in ready:
                return
            for number in signals:
                if number in PASSED_ON and self.program is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(self.program.pid, number)

    def _signals(self) -> bytes:
        try:
            return os.read(self.wake, 512)
        except BlockingIOError:
            return b""

    def _reap(self) -> None:
        """Take the dead, ours and the adopted ones."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if self.program is not None and pid == self.program.pid and self.code is None:
                    self.code = os.waitstatus_to_exitcode(status)
                    self.program.returncode = self.code
                    self._tell(ended=self.code)

    def _sweep(self) -> tuple[set[int], set[int]]:
        """Kill what is left: whom we killed, and who is still there after it."""
        killed: set[int] = set()
        us = os.getpid()
        until = time.monotonic() + SWEEP_SECONDS
        while True:
            self._reap()
            everybody = processes.table()
            left = processes.descendants(us, everybody)
            # Where orphans are not handed to us, the group still knows them.
            left |= {p.pid for p in everybody.values() if p.group == us and not p.zombie}
            left.discard(us)
            if not left or time.monotonic() > until:
                return killed, left
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed |= left
            time.sleep(0.02)

    def _tell(self, **what: Any) -> None:
        if self.report is not None:
            with contextlib.suppress(OSError):
                os.write(self.report, json.dumps(what).encode() + b"\n")


def _noted(number: int, frame: FrameType | None) -> None:
    """Nothing: the wake-up descriptor carries the number."""


def _prctl() -> Any:
    """prctl(2), or a function that does nothing where the system has none."""
    if not sys.platform.startswith("linux"):
        return lambda *_: 0
    return ctypes.CDLL(None, use_errno=True).prctl


if __name__ == "__main__":
    raise SystemExit(main())
