"""Carries what a program logs to the server in the background: never blocks the program for long,
never raises into it, loses nothing while the server is away (`spool`)."""

from __future__ import annotations

import atexit
import json
import logging
import math
import os
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specdebug.client.http import ApiError, Connection, Unreachable
from specdebug.client.spool import Spool, abandoned, noted

log = logging.getLogger("specdebug")

FLUSH_SECONDS = 0.5
ROWS_A_CALL = 2000
# Rows that wait for the background thread; it takes them at once, so this is a stuck machine.
MOST_WAITING = 200_000
LONGEST_PAUSE = 15.0
EXIT_SECONDS = 10.0
# Answers that asking again does not change.
_FINAL = frozenset({400, 401, 403, 404, 409, 413, 422})


class Sender:
    """Rows of one run. `log` is called by the program, all the rest happens in one thread."""

    def __init__(
        self, connection: Connection, path: str, root: Path, *, flush_seconds: float = FLUSH_SECONDS
    ) -> None:
        self.connection, self.path, self.root = connection, path, root
        self.flush_seconds = flush_seconds
        self.refusal = ""
        self.ignored = 0
        self._start()
        _senders.add(self)

    def _start(self) -> None:
        self.writer = uuid.uuid4().hex
        self.pid = os.getpid()
        self.inbox: deque[tuple[Any, float, dict[str, Any]]] = deque()
        self.wake, self.stop, self.idle = threading.Event(), threading.Event(), threading.Event()
        self.spool: Spool | None = None
        self.pause = 0.0
        self.thread = threading.Thread(target=self._work, name="specdebug-sender", daemon=True)
        self.thread.start()

    # ---- called by the program -------------------------------------------------------------------

    def log(self, step: Any, values: Mapping[str, Any]) -> None:
        """Take one row; returns at once and never raises."""
        try:
            if self.pid != os.getpid():  # after a fork there is no thread
                if self.spool is not None:
                    self.spool.close()  # the parent's; its lock stays with the parent
                self._start()
            if len(self.inbox) >= MOST_WAITING:
                self._ignore("rows came faster than this machine could take them")
                return
            self.inbox.append((step, time.time(), dict(values)))
            self.idle.clear()
        except Exception as error:
            # A measurement is not worth the program that it measures.
            self._ignore(f"{type(error).__name__}: {error}")

    def flush(self, timeout: float) -> bool:
        """Wait until all rows have arrived; False where they still wait, safe in the spool."""
        if self.pid != os.getpid():
            return False
        self.wake.set()
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.idle.wait(0.05) and not self.inbox:
                return not self.refusal
            if self.refusal or not self.thread.is_alive():
                return False
        return False

    def close(self, timeout: float = EXIT_SECONDS) -> bool:
        """Send what is left, for at most `timeout` seconds; what remains stays in the spool."""
        arrived = self.flush(timeout)
        self.stop.set()
        self.wake.set()
        if self.pid == os.getpid() and threading.current_thread() is not self.thread:
            self.thread.join(timeout=2.0)
        if self.spool is not None and not self.thread.is_alive():
            self.spool.close(remove=arrived and self.spool.noted("finish.json") is None)
            self.spool = None
        return arrived

    def keep_finish(self, data: dict[str, Any]) -> None:
        """Keep how the run ended beside its rows, for whoever sends them."""
        try:
            self._spool().note("finish.json", data)
        except OSError as error:
            log.warning("specdebug: the end of %s could not be kept: %s", self.path, error)

    def _ignore(self, why: str) -> None:
        self.ignored += 1
        if self.ignored == 1:
            log.warning("specdebug: a logged value was left out: %s", why)

    # ---- the background thread -------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            self.wake.wait(self.flush_seconds)
            self.wake.clear()
            stopping = self.stop.is_set()
            try:
                self._take_inbox()
                self._send_pending()
            except Exception as error:
                # Whatever happens here must not end the thread silently: it is said once.
                if not self.refusal:
                    log.warning("specdebug: sending to %s failed: %s", self.path, error)
                self.pause = min(max(1.0, self.pause * 2), LONGEST_PAUSE)
            if stopping:
                return
            if self.pause:
                self._wait_while_taking(self.pause)

    def _wait_while_taking(self, seconds: float) -> None:
        """Wait before the next try; rows that come meanwhile go to disk."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.stop.is_set() and not self.wake.is_set():
            self.stop.wait(min(self.flush_seconds, 0.2))
            self._take_inbox()

    def _spool(self) -> Spool:
        if self.spool is None:
            spool = Spool(self.root / self.writer)
            about = {"url": self.connection.url, "path": self.path, "writer": self.writer}
            spool.note("about.json", about)
            self.spool = spool
        return self.spool

    def _take_inbox(self) -> None:
        rows: list[bytes] = []
        while self.inbox and len(rows) < ROWS_A_CALL:
            step, moment, values = self.inbox.popleft()
            row = self._encoded(step, moment, values)
            if row is not None:
                rows.append(row)
        if rows:
            spool = self._spool()
            before = spool.dropped
            spool.append(rows)
            if spool.dropped and not before:
                log.warning("specdebug: the spool is full, rows are dropped until there is room")
        if self.inbox:
            self.wake.set()

    def _encoded(self, step: Any, moment: float, values: dict[str, Any]) -> bytes | None:
        """A row as JSON; values that are no finite numbers are left out and counted."""
        good: dict[str, float] = {}
        for name, value in values.items():
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                self._ignore(f"{name} is {value!r:.60}, no number")
                continue
            if not math.isfinite(number) or not isinstance(name, str):
                self._ignore(f"{name} is {value!r:.60}")
                continue
            good[name] = number
        try:
            number = int(step)
        except (TypeError, ValueError, OverflowError):
            self._ignore(f"the step is {step!r:.60}, no whole number")
            return None
        return json.dumps([number, moment, good], separators=(",", ":")).encode() if good else None

    def _send_pending(self) -> None:
        spool = self.spool
        while spool is not None and spool.waiting and not self.refusal:
            if not self._send_some(spool):
                return
            if self.inbox:
                self._take_inbox()
        if not self.inbox:
            self.idle.set()

    def _send_some(self, spool: Spool) -> bool:
        first, rows = spool.pending(ROWS_A_CALL)
        if not rows:
            return False
        body = b'{"writer":"%b","first_row":%d,"rows":[%b]}' % (
            self.writer.encode(),
            first,
            b",".join(rows),
        )
        try:
            taken = self.connection.call(
                "POST",
                f"{self.path}/points",
                content=body,
                headers={"Content-Type": "application/json"},
            )
        except Unreachable:
            self.pause = min(max(0.5, self.pause * 2), LONGEST_PAUSE)
            return False
        except ApiError as no:
            return self._refused(spool, no)
        self.pause = 0.0
        spool.acknowledge(int(taken["next_row"]))
        return True

    def _refused(self, spool: Spool, no: ApiError) -> bool:
        expected = no.problem.get("expected")
        if no.status == 409 and isinstance(expected, int) and expected > spool.acknowledged:
            spool.acknowledge(expected)
            return True
        if no.status in _FINAL:
            self.refusal = str(no)
            self.idle.set()
            log.warning("specdebug: %s does not take the rows: %s", self.path, no)
            return False
        self.pause = min(max(0.5, self.pause * 2), LONGEST_PAUSE)
        return False


_senders: weakref.WeakSet[Sender] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for sender in list(_senders):
        if sender.pid == os.getpid() and not sender.stop.is_set():
            sender.close(EXIT_SECONDS)


def replay(connection: Connection, root: Path) -> int:
    """Send what earlier processes left in the spool for this server; how many spools are done.

    Raises Unreachable and ApiError; what was not sent stays.
    """
    done = 0
    for folder in abandoned(root):
        about = noted(folder, "about.json") or {}
        if about.get("url") != connection.url:
            continue
        try:
            spool = Spool(folder)
        except OSError:
            continue  # its process is still at work
        try:
            finished = _replay_one(connection, spool, about)
        finally:
            if spool.file.closed is False:
                spool.close()
        if finished:
            done += 1
    return done


def _replay_one(connection: Connection, spool: Spool, about: dict[str, Any]) -> bool:
    path, writer = str(about["path"]), str(about["writer"])
    known = connection.call("GET", f"{path}/progress", params={"writer": writer})
    spool.acknowledge(int(known["next_row"]))
    while spool.waiting:
        first, rows = spool.pending(ROWS_A_CALL)
        body = b'{"writer":"%b","first_row":%d,"rows":[%b]}' % (
            writer.encode(),
            first,
            b",".join(rows),
        )
        taken = connection.call(
            "POST",
            f"{path}/points",
            content=body,
            headers={"Content-Type": "application/json"},
        )
        spool.acknowledge(int(taken["next_row"]))
    if (end := spool.noted("finish.json")) is not None:
        connection.call("POST", f"{path}/finish", end)
    spool.close(remove=True)
    return True
