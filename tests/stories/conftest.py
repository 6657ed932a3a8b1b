"""A whole specdebug on a data folder of its own, started as a person starts it."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.killing import kill

ROOT = Path(__file__).resolve().parents[2]
READY = re.compile(r"Ready after .* (http://\S+)")


@dataclass
class Running:
    """One started specdebug."""

    data: Path
    process: subprocess.Popen[str]
    link: str
    said: list[str] = field(default_factory=list)

    @property
    def base(self) -> str:
        return self.link.split("/login")[0]

    @property
    def env(self) -> dict[str, str]:
        return environment(self.data)

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """Read the record itself, past the program."""
        link = sqlite3.connect(f"file:{self.data / 'specdebug.sqlite3'}?mode=ro", uri=True)
        link.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in link.execute(query, values)]
        finally:
            link.close()

    def wait(self, done: Callable[[], Any], seconds: float, what: str) -> Any:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert self.process.poll() is None, f"specdebug ended while waiting for {what}"
            found = done()
            if found:
                return found
            time.sleep(0.1)
        pytest.fail(f"{what} did not happen within {seconds} s; runs: {self.runs()}")

    def runs(self) -> list[dict[str, Any]]:
        return self.rows("select * from experiments_run where recorded = 0 order by number")

    def replay_slug(self) -> str:
        found = self.rows(
            "select distinct slug from experiments_investigation i join experiments_run r "
            "on r.investigation_id = i.id where r.recorded = 0"
        )
        return str(found[0]["slug"])

    def processes(self) -> list[tuple[int, str]]:
        """(pid, command line) of everything that was started on this data folder."""
        mark = f"SPECDEBUG_DATA={self.data}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state in "ZX" or mark not in (entry / "environ").read_bytes():
                    continue
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            found.append((int(entry.name), command))
        return found

    def engines(self) -> list[int]:
        """Pids of engines that serve a run of this data folder: they write its log."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                output = str((entry / "fd" / "1").readlink())
            except OSError:
                continue
            serves = "-m specdebug.reference.serve" in command and "leash" not in command
            if serves and output.startswith(str(self.data)):
                found.append(int(entry.name))
        return found

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        rest, _ = self.process.communicate(timeout=60)
        self.said.append(rest)
        return self.process.returncode


def environment(data: Path) -> dict[str, str]:
    """Ours without what would lead the program elsewhere."""
    dropped = {"DATABASE_URL", "CELERY_BROKER_URL", "DJANGO_SETTINGS_MODULE"}
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    return {**kept, "SPECDEBUG_DATA": str(data)}


def start(data: Path, *options: str) -> Running:
    """Start on `data` with a free port; returns once it says it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "specdebug.up", "--data", str(data), "--port", str(port), *options],
        cwd=ROOT,
        env=environment(data),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        if found := READY.search(line):
            return Running(data, process, found.group(1), said)
    process.communicate()
    pytest.fail("specdebug did not become ready:\n" + "".join(said))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Started without the replay; stopped in the end, whatever happened."""
    here = start(tmp_path / "data", "--no-replay")
    try:
        yield here
    finally:
        here.stop()
        left = here.processes()
        kill(pid for pid, _ in left)
        assert not left, "left running after Ctrl-C"


@pytest.fixture
def browser(running: Running) -> Iterator[httpx.Client]:
    """Logged in by the printed link, as a person does it."""
    with httpx.Client(base_url=running.base, follow_redirects=True, timeout=30) as client:
        log_in(client, running.link)
        yield client


def follow(client: httpx.Client, link: str) -> httpx.Response:
    """Open a login link and press its button."""
    page = client.get(link)
    assert page.status_code == 200
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    assert token is not None
    return client.post(
        link, data={"csrfmiddlewaretoken": token.group(1)}, headers={"Referer": link}
    )


def log_in(client: httpx.Client, link: str) -> httpx.Response:
    answer = follow(client, link)
    assert answer.status_code == 200
    return answer
