"""A server for one folder on a private Unix socket, for scripts on this machine: no port, no
broker, no worker. It stops when the last client of the folder has gone.

    python -m specdebug.up.local FOLDER
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from specdebug.paths import LONGEST_SOCKET_PATH
from specdebug.up.command import CannotStart, _interrupt, _only_one
from specdebug.up.services import Service

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 90.0
LOOK_SECONDS = 0.5


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m specdebug.up.local FOLDER\n")
        return 2
    data = Path(arguments[0]).expanduser().absolute()
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, _interrupt)
    try:
        with _only_one(data) as lock:
            lock.write_text(f"a local client's server, pid {os.getpid()}")
            _serve(data)
    except CannotStart as problem:
        sys.stderr.write(f"specdebug: {problem}\n")
        # The folder is served already where its server says so; the client looks there.
        return 0 if (data / "run" / "local.json").exists() else 1
    except KeyboardInterrupt:
        return 0
    return 0


def socket_path(data: Path) -> Path:
    """In the data folder, or in a private folder where that path is too long for a socket."""
    plain = data / "run" / "local.sock"
    if len(os.fsencode(plain)) <= LONGEST_SOCKET_PATH:
        return plain
    name = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"specdebug-{os.getuid()}-{name}" / "local.sock"


def _serve(data: Path) -> None:
    about = data / "run" / "local.json"
    about.unlink(missing_ok=True)
    env = {
        **os.environ,
        "SPECDEBUG_DATA": str(data),
        "DJANGO_SETTINGS_MODULE": "specdebug.settings",
        "PYTHONUNBUFFERED": "1",
        "SPECDEBUG_WORKERLESS": "1",
    }
    token = _token(env)
    path = socket_path(data)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.parent.stat().st_uid != os.getuid():
        raise CannotStart(f"{path.parent} belongs to somebody else")
    path.unlink(missing_ok=True)
    web = Service(
        name="local",
        argv=[
            *(sys.executable, "-m", "gunicorn", "specdebug.wsgi"),
            *("-b", f"unix:{path}", "--umask", "0o077", "--threads", "4"),
            *("--log-level", "warning", "--timeout", "120"),
        ],
        env=env,
        log=data / "log" / "web.log",
        cwd=ROOT,
    )
    try:
        web.start()
        _wait(path, web)
        part = about.with_name(".local.json")
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump({"socket": str(path), "token": token}, file)
        part.replace(about)
        _watch(data, web)
    finally:
        about.unlink(missing_ok=True)
        web.stop()
        path.unlink(missing_ok=True)


def _token(env: dict[str, str]) -> str:
    """A fresh token for the clients of this folder; the record is brought up to date before."""
    command = [sys.executable, "-m", "django", "api_token", "--migrate", "--name", "local client"]
    done = subprocess.run(
        command,
        env=env,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        tail = "\n    ".join(done.stderr.strip().splitlines()[-5:])
        raise CannotStart(f"the record of the folder cannot be opened:\n    {tail}")
    return done.stdout.strip().splitlines()[-1]


def _wait(path: Path, web: Service) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if web.ended is not None:
            tail = "\n    ".join(web.last_lines())
            raise CannotStart(f"the server ended at once; the end of {web.log}:\n    {tail}")
        with socket.socket(socket.AF_UNIX) as link:
            try:
                link.settimeout(5)
                link.connect(str(path))
                link.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
                if b" 200 " in link.recv(64):
                    return
            except OSError:
                pass
        time.sleep(0.05)
    raise CannotStart("the server did not answer in time")


def _watch(data: Path, web: Service) -> None:
    """Wait until no client holds its place any more, starting again what dies."""
    with (data / "run" / "local.users").open("a") as users:
        while True:
            time.sleep(LOOK_SECONDS)
            try:
                # While we hold it, a new client waits for us to be gone and starts its own.
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if web.ended is not None:
                    if not web.may_restart:
                        raise CannotStart("the server keeps dying") from None
                    web.stop()
                    web.start()
                continue
            # The lock is let go only after the server has stopped and its note is gone.
            web.stop()
            (data / "run" / "local.json").unlink(missing_ok=True)
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
