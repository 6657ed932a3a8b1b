"""The record on a real PostgreSQL: the tests of claims and workers once more, there."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
# What depends on the database most: conditional UPDATEs and the rows they leave.
FILES = ("test_claims.py", "test_workers.py", "test_bulk.py", "test_prepared.py")

pytestmark = [
    pytest.mark.skipif(not PROGRAMS, reason="no PostgreSQL server under /usr/lib/postgresql"),
    pytest.mark.timeout(600),
]


def user() -> list[str]:
    """PostgreSQL refuses to run as root: a prefix that becomes its own user there."""
    if os.getuid() != 0:
        return []
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("we are root and there is no user postgres to run the server as")
    return ["runuser", "-u", "postgres", "--"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an empty database on a server of our own."""
    folder = Path(tempfile.mkdtemp(prefix="specdebug-pg-", dir="/tmp"))
    run = user()
    if run:
        os.chown(folder, pwd.getpwnam("postgres").pw_uid, pwd.getpwnam("postgres").pw_gid)
    programs = PROGRAMS[-1].parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"

    def call(name: str, *arguments: str | Path, check: bool = True) -> None:
        subprocess.run(
            [*run, programs / name, *arguments],
            check=check,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    # No word for an instant's server that only this machine reaches.
    call("initdb", "-D", data, "-U", "specdebug", "--auth=trust", "-E", "UTF8")
    options = f"-k {folder} -c listen_addresses=127.0.0.1 -p {port} -c fsync=off"
    call("pg_ctl", "-D", data, "-w", "-o", options, "-l", folder / "log", "start")
    try:
        call("createdb", "-h", folder, "-p", str(port), "-U", "specdebug", "specdebug")
        yield f"postgres://specdebug@127.0.0.1:{port}/specdebug"
    finally:
        call("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop", check=False)
        subprocess.run([*run, "rm", "-rf", folder], check=False)
        subprocess.run(["rm", "-rf", folder], check=False)


def test_the_record_behaves_the_same_on_postgresql(server: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-n", "0"),
            *(str(ROOT / "tests" / "experiments" / name) for name in FILES),
        ],
        cwd=ROOT,
        env={**os.environ, "TEST_DATABASE_URL": server},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout
