"""A server as a process group on a leash: launch, readiness, stop whatever happens; it knows no
engine by name and measures nothing."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import httpx

from specdebug.sglang.logs import classify_line
from workers import processes
from workers.plan import Deadlines, Exit, RunEnded, ShouldStop
from workers.tail import Tail, last_lines, why_it_ended

ROOT = Path(__file__).resolve().parents[1]
# Isolated and without site: what the engine's PYTHONPATH changes must not reach the leash.
LEASH = (
    *(sys.executable, "-I", "-S", "-c"),
    f"import sys; sys.path[:0] = [{str(ROOT)!r}]; from workers.leash import main; sys.exit(main())",
)
MARK = "LEASH_MARK"  # in the environment of everything an engine starts
RECORD = "server.json"
LOG = "server.log"
_LOG_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
LOOK_SECONDS = 0.1
HEALTH_EVERY = 1.0
# From a fatal line in the log to giving up on a parent that does not notice.
AFTER_FATAL = 20.0
SWEPT_WITHIN = 15.0  # the leash's own limit is 10 s
FATAL = {
    *("exception", "child-died", "out-of-memory", "capture-failed"),
    *("missing-model", "port-in-use", "warmup-failed"),
}


@dataclass(frozen=True)
class Record:
    """What a dead worker's successor must know to end the server it left: kept as server.json."""

    run: str
    host: str
    boot_id: str
    leash: int  # also the process group and the session
    leash_started: str
    mark: str  # value of $LEASH_MARK in the processes
    launched_at: float

    @classmethod
    def read(cls, folder: Path) -> Record:
        """Raises OSError where there is none, ValueError where it is no record."""
        try:
            return cls(**json.loads((folder / RECORD).read_text()))
        except TypeError as problem:
            raise ValueError(f"{folder / RECORD}: {problem}") from None


# Below the ports that a system hands out by itself (Linux: from 32768), and with room above for
# those an engine counts from its own (SGLang's NCCL port lies up to 1,000 higher).
_PORTS = range(20_000, 30_000)


def free_port(host: str = "127.0.0.1") -> int:
    """A TCP port nobody listens on now. Somebody may take it before the server does.

    An engine binds minutes after it was given its port. A port that the system hands out to every
    outgoing connection would often be taken by then.
    """
    for port in random.sample(_PORTS, 50):
        if not is_taken(port, host):
            return port
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def is_taken(port: int, host: str = "127.0.0.1") -> bool:
    """Whether binding the port fails now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
        return False


class Server:
    """One launched server; `stop` belongs in a finally. For one thread at a time."""

    def __init__(
        self, leash: subprocess.Popen[bytes], reports: int, folder: Path, mark: str
    ) -> None:
        """Use `launch`. `reports` is our end of the leash's pipe."""
        self.folder, self.log = folder, folder / LOG
        self.exited: int | None = None  # exit code once it ended
        self.exit: Exit | None = None  # once stopped
        self.pid: int | None = None
        self._leash, self._reports, self._mark = leash, reports, mark
        self._left: tuple[int, ...] | None = None  # None: the leash has not said yet
        self._said = b""
        self._tail = Tail(self.log)

    @classmethod
    def launch(
        cls,
        argv: Sequence[str],
        env: Mapping[str, str],
        folder: Path,
        run: str,
        hold: Sequence[int] = (),
    ) -> Server:
        """Start the program in `folder`, its output in server.log there.

        `hold`: descriptors of locks that must not be free before the program is gone. Raises
        RunEnded where the program or the folder cannot be used.
        """
        mark = secrets.token_hex(16)
        try:
            with os.fdopen(os.open(folder / LOG, _LOG_FLAGS, 0o600), "ab") as log:
                server = cls(*_leashed(argv, {**env, MARK: mark}, folder, log, hold), folder, mark)
        except OSError as problem:
            raise RunEnded("failed", f"The server could not be launched: {problem}") from None
        try:
            server._record(run)
            server._await_start()
        except OSError as problem:
            server.stop(0)
            raise RunEnded("failed", f"The server could not be launched: {problem}") from None
        return server

    def _record(self, run: str) -> None:
        us = processes.one(self._leash.pid)
        record = Record(
            run=run,
            host=socket.gethostname(),
            boot_id=processes.boot_id(),
            leash=self._leash.pid,
            leash_started=us.started if us else "",
            mark=self._mark,
            launched_at=time.time(),
        )
        write_whole(self.folder / RECORD, json.dumps(asdict(record)))

    def _await_start(self) -> None:
        until = time.monotonic() + 30
        while self.pid is None:
            if failed := self._listen(0.1):
                raise OSError(failed)
            if self.pid is None and (self._leash.poll() is not None or time.monotonic() > until):
                raise OSError(f"no sign of life{self.why()}")

    def _listen(self, seconds: float) -> str:
        """Take what the leash reports within `seconds`; the reason if it could not start."""
        select.select([self._reports], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            self._said += os.read(self._reports, 65536)
        *lines, self._said = self._said.split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "failed" in said:
                return str(said["failed"])
            self.pid = said.get("started", self.pid)
            self.exited = said.get("ended", self.exited)
            if "left" in said:
                self._left = tuple(said["left"])
        return ""

    def look(self) -> int | None:
        """The exit code if the server has ended, None while it runs."""
        self._listen(0)
        if self.exited is None and self._leash.poll() is not None:
            # The leash was killed, and the kernel has taken the server with it.
            self.exited = -signal.SIGKILL
        return self.exited

    # ---- readiness -------------------------------------------------------------------------------

    def wait_ready(
        self,
        url: str,
        deadlines: Deadlines,
        *,
        on_phase: Callable[[str], None],
        should_stop: ShouldStop,
    ) -> None:
        """Until the log or /health says ready. Raises RunEnded for whatever comes instead."""
        begin = heard = asked = time.monotonic()
        fatal_at: float | None = None
        with httpx.Client(trust_env=False, timeout=2.0) as client:
            while True:
                if reason := should_stop():
                    raise RunEnded("cancelled", reason)
                ended = self.look() is not None  # before the log is read, so that none is missed
                size, own_echo = self._tail.size, False
                for line in [*self._tail.lines(), *([self._tail.rest()] if ended else [])]:
                    known = classify_line(line)
                    own_echo = known.kind == "http"  # of our own questions, most likely
                    if known.kind == "ready":
                        return
                    if known.phase is not None and known.phase.name != "failed":
                        on_phase(str(known.phase))
                        fatal_at = None  # it goes on all the same
                    if known.kind in FATAL:
                        fatal_at = fatal_at or time.monotonic()
                now = time.monotonic()
                heard = now if self._tail.size > size and not own_echo else heard
                if ended:
                    raise RunEnded("failed", f"{self.ended_how()} before it was ready{self.why()}")
                if fatal_at and now - fatal_at > AFTER_FATAL:
                    raise RunEnded("failed", f"The server failed but did not end{self.why()}")
                if now - begin > deadlines.ready:
                    raise RunEnded(
                        "failed",
                        f"The server was not ready after {deadlines.ready:g} s{self.last_line()}",
                    )
                if now - heard > deadlines.launch:
                    raise RunEnded(
                        "failed",
                        f"The server has printed nothing for {deadlines.launch:g} s while "
                        f"starting{self.last_line()}",
                    )
                # Only where the log is silent: SGLang answers by generating a token.
                if min(now - asked, now - heard) > HEALTH_EVERY:
                    asked = now
                    if self._is_healthy(client, url):
                        return
                time.sleep(LOOK_SECONDS)

    def _is_healthy(self, client: httpx.Client, url: str) -> bool:
        try:
            if client.get(f"{url}/health").status_code != 200:
                return False
        except httpx.HTTPError:
            return False
        # Somebody else may have taken the port between our choice and the server's bind.
        ours = processes.descendants(self._leash.pid, processes.table())
        return processes.listens(httpx.URL(url).port or 0, ours) is not False

    def ended_how(self) -> str:
        """How it ended, as the beginning of a sentence."""
        code = self.exited
        if code is None:
            return "The server ended"
        if code >= 0:
            return f"The server ended with exit code {code}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        return f"The server was ended by {name}"

    def why(self) -> str:
        """`: ` and the telling line of the log, or what to say where there is none."""
        said = why_it_ended(last_lines(self.log))
        return f": {said}" if said else "; it printed nothing."

    def last_line(self) -> str:
        lines = last_lines(self.log, 65536)
        return f"; its last line: {lines[-1].strip()[-300:]}" if lines else "; it printed nothing."

    # ---- the end ---------------------------------------------------------------------------------

    def stop(self, patience: float) -> Exit:
        """End it: SIGTERM, after `patience` seconds SIGKILL, then make sure nothing is left.

        Safe to call twice; never raises for what the server does.
        """
        if self.exit is not None:
            return self.exit
        asked = False
        if self.look() is None:
            asked = True
            self._signal(signal.SIGTERM if patience > 0 else signal.SIGUSR1)
            self._await(lambda: self.exited is not None, patience)
        if self.exited is None:
            self._signal(signal.SIGUSR1)
        self._await(lambda: self._left is not None, SWEPT_WITHIN)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._leash.wait(1)
        survivors = self._survivors()
        if self._leash.poll() is None:
            self._leash.kill()
            self._leash.wait()
        os.close(self._reports)
        self.exit = Exit(code=self.exited, asked=asked, survivors=survivors)
        if not survivors:
            # Nothing is left for the reaper to look for.
            with contextlib.suppress(OSError):
                (self.folder / RECORD).replace(self.folder / "server.ended.json")
        return self.exit

    def _signal(self, number: signal.Signals) -> None:
        if self._leash.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._leash.send_signal(number)

    def _await(self, done: Callable[[], bool], seconds: float) -> None:
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until and self._leash.poll() is None:
            self._listen(min(0.1, max(0.0, until - time.monotonic())))
        self.look()

    def _survivors(self) -> tuple[int, ...]:
        """Our own look, independent of the leash's: what carries our mark or is in our session."""
        left = {p for p in self._left or () if processes.one(p)}
        left |= marked(self._leash.pid, self._mark)
        left.discard(self._leash.pid)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + (2.0 if left else 0.0)
        while left and time.monotonic() < until:
            time.sleep(0.05)
            left = {pid for pid in left if (p := processes.one(pid)) and not p.zombie}
        return tuple(sorted(left))


def _leashed(
    argv: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    log: IO[bytes],
    hold: Sequence[int],
) -> tuple[subprocess.Popen[bytes], int]:
    """The leash that starts `argv`, and our end of its pipe."""
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    held = [word for number in hold for word in ("--hold", str(number))]
    try:
        # The log is the server's own descriptor: our death loses none of its words.
        leash = subprocess.Popen(
            [*LEASH, str(os.getpid()), "--report", str(theirs), *held, "--", *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(env),
            cwd=folder,
            pass_fds=(theirs, *hold),
            start_new_session=True,
        )
    except OSError:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return leash, ours


def marked(session: int, mark: str) -> set[int]:
    """Live processes of a leash: those that carry its mark, and those in its session whose
    environment says nothing, because they wrote their own title over it.

    Others of the session are left out: a session's number may be given out again.
    """
    wanted = f"{MARK}={mark}".encode()
    found = set()
    for process in processes.table().values():
        if process.zombie or process.pid == os.getpid():
            continue
        given = processes.environment(process.pid)
        ours = given is not None and wanted in given.split(b"\0")
        titled = process.session == session and (given is None or b"PATH=" not in given)
        if ours or titled:
            found.add(process.pid)
    return found


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees all of it or the one before. Raises OSError."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
