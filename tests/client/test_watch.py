"""A log that an engine begins anew when it is started again: nothing of either boot is lost."""

from __future__ import annotations

import time
from pathlib import Path

from specdebug.client.http import Connection
from specdebug.client.watch import LogWatch
from tests.client.test_sender import RUN, Server


def until(server: Server, log: bytes) -> None:
    end = time.monotonic() + 10
    while server.log != log and time.monotonic() < end:
        time.sleep(0.01)
    assert server.log == log


def watched(server: Server, file: Path) -> LogWatch:
    link = Connection("http://test", "t", transport=server, tries=1)
    return LogWatch(link, RUN, file, look_seconds=0.02)


def test_a_log_that_is_truncated_goes_on_behind_what_was_sent(tmp_path: Path) -> None:
    server, file = Server(), tmp_path / "server.log"
    file.write_bytes(b"first boot\n")
    watch = watched(server, file)
    until(server, b"first boot\n")
    file.write_bytes(b"second\n")
    until(server, b"first boot\nsecond\n")
    with file.open("ab") as more:
        more.write(b"boot\n")
    assert watch.close(10.0)
    assert server.log == b"first boot\nsecond\nboot\n"


def test_a_log_that_is_replaced_by_a_longer_one_is_read_from_its_beginning(tmp_path: Path) -> None:
    server, file = Server(), tmp_path / "server.log"
    file.write_bytes(b"one\n")
    watch = watched(server, file)
    until(server, b"one\n")
    fresh = tmp_path / "fresh"
    fresh.write_bytes(b"another boot, longer\n")
    fresh.replace(file)
    until(server, b"one\nanother boot, longer\n")
    assert watch.close(10.0)
