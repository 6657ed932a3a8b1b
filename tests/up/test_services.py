"""Processes started, watched and stopped by specdebug.up."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from specdebug.up.services import MOST_RESTARTS, Service

ROOT = Path(__file__).resolve().parents[2]


def service(tmp_path: Path, code: str, **more: object) -> Service:
    return Service(
        name="test",
        argv=[sys.executable, "-c", code],
        env=dict(os.environ),
        log=tmp_path / "log" / "test.log",
        cwd=ROOT,
        **more,  # type: ignore[arg-type]
    )


def wait_for(text: str, path: Path, seconds: float = 20.0) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if path.exists() and text in path.read_text():
            return path.read_text()
        time.sleep(0.02)
    pytest.fail(f"{text!r} did not appear in {path}")


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False


def gone(pid: int, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_service_writes_to_its_log_and_stops_when_told(tmp_path: Path) -> None:
    child = service(tmp_path, "import time; print('up', flush=True); time.sleep(60)")
    child.start()
    wait_for("up", tmp_path / "log" / "test.log")
    assert child.ended is None
    child.stop()
    assert child.process is None


def test_the_second_signal_ends_what_ignores_the_first(tmp_path: Path) -> None:
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(f'pid {os.getpid()}', flush=True); time.sleep(60)"
    )
    child = service(tmp_path, code, signals=(signal.SIGTERM, signal.SIGQUIT), patience=0.3)
    child.start()
    text = wait_for("pid", tmp_path / "log" / "test.log")
    pid = int(text.split()[1])
    child.stop()
    assert gone(pid)


def test_stopping_takes_the_grandchildren_too(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(f'pid {p.pid}', flush=True); time.sleep(60)"
    )
    child = service(tmp_path, code)
    child.start()
    pid = int(wait_for("pid", tmp_path / "log" / "test.log").split()[1])
    assert alive(pid)
    child.stop()
    assert gone(pid)


def test_the_end_of_the_log_is_there_for_the_message(tmp_path: Path) -> None:
    child = service(tmp_path, "print('first'); raise SystemExit('why it died')")
    child.start()
    assert child.process is not None
    child.process.wait(20)
    assert child.ended == 1
    assert child.last_lines(1) == ["why it died"]
    child.stop()


def test_a_service_that_keeps_dying_is_not_started_for_ever(tmp_path: Path) -> None:
    child = service(tmp_path, "pass")
    for _ in range(MOST_RESTARTS):
        child.starts.append(time.monotonic())
        assert child.may_restart
    child.starts.append(time.monotonic())
    assert not child.may_restart


def test_a_service_that_died_long_ago_may_start_again(tmp_path: Path) -> None:
    child = service(tmp_path, "pass")
    for ago in range(MOST_RESTARTS + 1):
        child.starts.append(time.monotonic() - 1000 + ago * 180)
    assert child.may_restart
