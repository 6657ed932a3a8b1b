"""A private server for one folder: started on demand, shared by the clients of that folder,
stopped when the last of them has gone. It is a process of its own; nothing of it is imported."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from specdebug.client.http import Unreachable

START_SECONDS = 120.0
# Servers that this program has started. They may outlive it; kept so that one which has ended is
# taken off the system's table of processes, and none is complained about when it is collected.
_started: list[subprocess.Popen[bytes]] = []


@dataclass
class LocalServer:
    """How to reach it. `users` holds our place among its clients; the kernel gives it back."""

    socket: Path
    token: str
    users: IO[str]

    def close(self) -> None:
        self.users.close()


def connect(folder: Path) -> LocalServer:
    """The server of this folder, ready to answer. Raises Unreachable with what to do."""
    if importlib.util.find_spec("django") is None:
        raise Unreachable("a local server needs the web part: pip install 'specdebug[web]'")
    _started[:] = [process for process in _started if process.poll() is None]
    folder = folder.expanduser().absolute()
    try:
        (folder / "run").mkdir(parents=True, exist_ok=True, mode=0o700)
        users = (folder / "run" / "local.users").open("a")
        fcntl.flock(users, fcntl.LOCK_SH)
    except OSError as error:
        raise Unreachable(f"the folder {folder} cannot be used: {error}") from None
    try:
        return _ready(folder, users)
    except BaseException:
        users.close()
        raise


def _ready(folder: Path, users: IO[str]) -> LocalServer:
    log = folder / "log" / "local.log"
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    deadline = time.monotonic() + START_SECONDS
    process: subprocess.Popen[bytes] | None = None
    while time.monotonic() < deadline:
        about = _about(folder)
        if about is not None:
            return LocalServer(Path(about["socket"]), about["token"], users)
        if process is None:
            # Of two that are started at once the second finds the lock taken and ends.
            with log.open("ab") as output:
                process = subprocess.Popen(
                    [sys.executable, "-m", "specdebug.up.local", str(folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            _started.append(process)
        elif process.poll() not in (None, 0):
            tail = "\n    ".join(log.read_text(errors="replace").splitlines()[-5:])
            raise Unreachable(f"the local server does not start; the end of {log}:\n    {tail}")
        time.sleep(0.05)
    raise Unreachable(f"the local server was not ready after {START_SECONDS:g} s; see {log}")


def _about(folder: Path) -> dict[str, str] | None:
    """What a running server says of itself; None where none answers."""
    try:
        data = json.loads((folder / "run" / "local.json").read_text())
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(2)
            link.connect(data["socket"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # nobody listens: what lies there is left over
    return data if isinstance(data, dict) and "token" in data else None
