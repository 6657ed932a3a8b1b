"""Logging against a server that comes and goes: nothing lost, nothing doubled, nobody disturbed."""

from __future__ import annotations

import json
import logging
import math
import os
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from specdebug.client.http import Connection
from specdebug.client.sender import Sender, replay
from specdebug.client.spool import Spool
from specdebug.client.watch import LogWatch

RUN = "investigations/x/runs/0"


class Server(httpx.BaseTransport):
    """The rules of the server's numbered rows and log, in a few lines; away when told so."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.taken: dict[str, int] = {}
        self.log = b""
        self.finished: list[Any] = []
        self.away = False
        self.lose_answers = 0
        self.lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with self.lock:
            if self.away:
                raise httpx.ConnectError("away", request=request)
            answer = self._answer(request)
            if self.lose_answers:
                self.lose_answers -= 1
                raise httpx.ReadError("the answer was lost", request=request)
            return answer

    def _answer(self, request: httpx.Request) -> httpx.Response:
        body, path = request.read(), request.url.path
        if path.endswith("/points"):
            return self._points(json.loads(body))
        if path.endswith("/progress"):
            taken = self.taken.get(request.url.params["writer"], 0)
            return httpx.Response(200, json={"next_row": taken, "points": 0})
        if path.endswith("/log/offset"):
            return httpx.Response(200, json={"offset": len(self.log)})
        if path.endswith("/log"):
            offset = int(request.headers["upload-offset"])
            assert offset <= len(self.log)
            self.log = self.log[:offset] + body
            return httpx.Response(200, json={"offset": len(self.log)})
        self.finished.append(json.loads(body))
        return httpx.Response(200, json={})

    def _points(self, data: Any) -> httpx.Response:
        taken = self.taken.get(data["writer"], 0)
        if data["first_row"] > taken:
            return httpx.Response(409, json={"detail": "gap", "expected": taken})
        self.rows += data["rows"][taken - data["first_row"] :]
        self.taken[data["writer"]] = max(taken, data["first_row"] + len(data["rows"]))
        return httpx.Response(200, json={"next_row": self.taken[data["writer"]], "points": 1})


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def link(server: Server) -> Connection:
    return Connection("http://test", "t", transport=server, tries=1)


def sender(link: Connection, folder: Path) -> Sender:
    return Sender(link, RUN, folder, flush_seconds=0.02)


def steps(server: Server) -> list[int]:
    return [row[0] for row in server.rows]


def test_rows_arrive_once_and_the_spool_is_gone(
    server: Server, link: Connection, tmp_path: Path
) -> None:
    own = sender(link, tmp_path)
    for step in range(5000):
        own.log(step, {"x": step})
    assert own.close(20.0)
    assert steps(server) == list(range(5000))
    assert list(tmp_path.iterdir()) == []


def test_an_outage_in_the_middle_loses_and_doubles_nothing(
    server: Server, link: Connection, tmp_path: Path
) -> None:
    own = sender(link, tmp_path)
    for step in range(3000):
        if step == 1000:
            server.away = True
        if step == 2000:
            server.away, server.lose_answers = False, 3
        own.log(step, {"x": step, "y": -step})
        if step % 100 == 0:
            time.sleep(0.01)
    assert own.close(30.0)
    assert steps(server) == list(range(3000))


def test_logging_neither_blocks_nor_raises(
    server: Server, link: Connection, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.away = True
    own = sender(link, tmp_path)
    spent = []
    hostile: list[Any] = [{"x": "text"}, {"x": math.nan}, {"x": None}, {}, {1: 2.0}]
    for step in range(2000):
        began = time.perf_counter()
        own.log(step, hostile[step % 5] if step % 3 == 0 else {"x": 1.0})
        spent.append(time.perf_counter() - began)
    own.log("no number", {"x": 1.0})  # type: ignore[arg-type]
    own.log(1, None)  # type: ignore[arg-type]
    spent.sort()
    assert spent[int(len(spent) * 0.99)] < 0.025  # five times the promise
    server.away = False
    assert own.close(20.0)
    assert steps(server) == [s for s in range(2000) if s % 3]
    warned = [r for r in caplog.records if r.levelno >= logging.WARNING and "left out" in r.message]
    assert len(warned) == 1
    assert own.ignored > 300


def test_what_a_killed_program_left_is_sent_by_the_next(
    server: Server, link: Connection, tmp_path: Path
) -> None:
    server.away = True
    own = sender(link, tmp_path)
    for step in range(100):
        own.log(step, {"x": 1.0})
    while own.inbox or own.spool is None or own.spool.waiting < 100:
        time.sleep(0.01)
    own.keep_finish({"state": "done"})
    # A killed process writes nothing more and lets go of its lock.
    own.stop.set()
    own.thread.join()
    own.spool.close()
    (folder,) = tmp_path.iterdir()
    with (folder / "rows.jsonl").open("ab") as file:
        file.write(b'100 [100,1.0,{"x":')  # cut off in the middle of a line
    server.away = False
    # The server had taken some of it before.
    server.taken[own.writer] = 40
    assert replay(link, tmp_path) == 1
    assert steps(server) == list(range(40, 100))
    assert server.finished == [{"state": "done"}]
    assert list(tmp_path.iterdir()) == []
    assert replay(link, tmp_path) == 0


def test_a_spool_in_use_is_left_alone(server: Server, link: Connection, tmp_path: Path) -> None:
    server.away = True
    own = sender(link, tmp_path)
    own.log(0, {"x": 1.0})
    while own.spool is None:
        time.sleep(0.01)
    server.away = False
    assert replay(link, tmp_path) == 0
    assert own.close(10.0)
    assert steps(server) == [0]


def test_a_refusal_ends_the_sending_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class No(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(403, json={"detail": "this token may not"})

    own = sender(Connection("http://test", "t", transport=No(), tries=1), tmp_path)
    own.log(0, {"x": 1.0})
    assert not own.close(5.0)
    assert "may not" in own.refusal
    assert sum("does not take the rows" in r.message for r in caplog.records) == 1


def test_after_a_fork_the_child_sends_its_own_rows(
    server: Server, link: Connection, tmp_path: Path
) -> None:
    own = sender(link, tmp_path)
    own.log(0, {"x": 1.0})
    assert own.flush(5.0)
    own.pid = os.getpid() + 1  # as it is in the child
    own.log(1, {"x": 2.0})
    assert own.close(5.0)
    assert len(server.taken) == 2
    assert steps(server) == [0, 1]


def test_a_full_disk_keeps_rows_in_memory_and_a_full_spool_drops_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path / "a")
    spool.append([b"[0]", b"[1]"])

    def full(handle: int, data: bytes) -> None:
        os.write(handle, data[:3])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("specdebug.client.spool._write_all", full)
        spool.append([b"[2]", b"[3]"])
    assert spool.pending(10) == (0, [b"[0]", b"[1]"])
    spool.acknowledge(2)
    assert spool.pending(10) == (2, [b"[2]", b"[3]"])
    spool.acknowledge(4)
    assert (spool.waiting, spool.dropped) == (0, 0)
    spool.close()
    small = Spool(tmp_path / "b", most_bytes=100)
    small.append([b"[%d]" % n for n in range(20_000)])
    assert small.dropped > 0
    # What was kept is numbered without a gap.
    assert small.next_row == 20_000 - small.dropped
    small.close()


def test_a_log_is_streamed_while_it_grows_and_resumed(
    server: Server, link: Connection, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    server.log = b"one\n"  # an earlier program had sent this much
    watch = LogWatch(link, RUN, log, look_seconds=0.02)
    time.sleep(0.05)
    log.write_bytes(b"one\ntwo\n")
    server.away = True
    time.sleep(0.05)
    with log.open("ab") as file:
        file.write(b"three\n")
    server.away = False
    assert watch.close(10.0)
    assert server.log == b"one\ntwo\nthree\n"
    log.write_bytes(b"")
    other = LogWatch(link, RUN, log, look_seconds=0.02)
    assert not other.close(2.0)
    assert "shorter" in other.refusal
