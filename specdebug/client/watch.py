"""Streams a growing log file to a run in the background, from where the server has it.

An engine that is started again often begins its log anew: what comes then is put behind what was
sent, as the log of the next boot."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path

from specdebug.client.http import ApiError, Connection, Unreachable

log = logging.getLogger("specdebug")

PIECE = 1 << 20
LOOK_SECONDS = 1.0
LONGEST_PAUSE = 15.0


class LogWatch:
    """One file for one run. The file itself is the spool: what was not sent is read again."""

    def __init__(
        self, connection: Connection, path: str, file: Path, *, look_seconds: float = LOOK_SECONDS
    ) -> None:
        self.connection, self.path, self.file = connection, path, file
        self.look_seconds = look_seconds
        self.offset: int | None = None
        # Where in the run's log this file begins, and which file it was when it was last read.
        self.base, self.inode = 0, -1
        self.refusal = ""
        self.pause = 0.0
        self.wake, self.stop, self.level = threading.Event(), threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._work, name="specdebug-log", daemon=True)
        self.thread.start()

    def close(self, timeout: float) -> bool:
        """Send the rest, for at most `timeout` seconds; whether all of the file has arrived."""
        deadline = time.monotonic() + timeout
        self.level.clear()
        self.wake.set()
        while time.monotonic() < deadline and not self.refusal and self.thread.is_alive():
            if self.level.wait(0.05):
                break
        self.stop.set()
        self.wake.set()
        self.thread.join(timeout=2.0)
        return self.level.is_set()

    def _work(self) -> None:
        while not self.stop.is_set() and not self.refusal:
            try:
                self._send_new()
                self.pause = 0.0
            except Unreachable:
                self.pause = min(max(0.5, self.pause * 2), LONGEST_PAUSE)
            except ApiError as no:
                self._refused(no)
            except OSError as error:
                self.pause = 1.0
                log.debug("specdebug: %s cannot be read yet: %s", self.file, error)
            self.wake.wait(self.pause or self.look_seconds)
            self.wake.clear()

    def _refused(self, no: ApiError) -> None:
        expected = no.problem.get("expected")
        if no.status == 409 and isinstance(expected, int):
            self.offset = expected
            if expected < self.base:
                self.refusal = "the server has lost a part of the log that is no longer here"
                log.warning("specdebug: %s: %s", self.file, self.refusal)
        elif no.status in (429, 500, 502, 503, 504):
            self.pause = min(max(0.5, self.pause * 2), LONGEST_PAUSE)
        else:
            self.refusal = str(no)
            log.warning("specdebug: the log %s is not taken: %s", self.file, no)

    def _send_new(self) -> None:
        if self.offset is None:
            self.offset = int(self.connection.call("GET", f"{self.path}/log/offset")["offset"])
        with self.file.open("rb") as stream:
            about = os.fstat(stream.fileno())
            shorter = about.st_size < self.offset - self.base
            if self.inode not in (-1, about.st_ino) or (shorter and self.inode != -1):
                log.info("specdebug: %s begins anew; it follows what was sent", self.file)
                self.base = self.offset
            elif shorter:
                self.refusal = f"{self.file} has become shorter; it is no longer the same log"
                log.warning("specdebug: %s", self.refusal)
                return
            self.inode = about.st_ino
            stream.seek(self.offset - self.base)
            while data := stream.read(PIECE):
                answer = self.connection.call(
                    "POST",
                    f"{self.path}/log",
                    content=data,
                    headers={"Upload-Offset": str(self.offset)},
                )
                self.offset = int(answer["offset"])
        self.level.set()
