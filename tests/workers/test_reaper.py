"""What a dead worker left: the engine goes, the innocent stay, outcomes are found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.killing import kill
from tests.workers.conftest import DATA, of_folder
from tests.workers.test_server import all_gone
from workers import lease, processes, reaper, server
from workers.plan import RunOutcome
from workers.server import Record

OUTCOME = RunOutcome.without_measuring("failed", "x", host="h", started_at=1.0, ended_at=2.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "runs" / "story-r0"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def orphan(folder: Path) -> Iterator[Record]:
    """An engine with grandchildren whose worker and leash are both dead and could clean nothing."""
    port = str(server.free_port())
    argv = [sys.executable, str(DATA / "fake_engine.py"), "--port", port, "--never-ready"]
    code = (
        "import os, sys, signal, time\n"
        "from pathlib import Path\n"
        "from workers.server import Server, Record\n"
        "folder = Path(sys.argv[1])\n"
        "s = Server.launch(sys.argv[2:], {'PATH': os.environ['PATH']}, folder, 'story-r0')\n"
        "while b'Load weight end' not in (folder / 'server.log').read_bytes(): time.sleep(0.02)\n"
        # With the leash stopped the kernel's death note to it goes unread; then it is killed.
        "os.kill(Record.read(folder).leash, signal.SIGSTOP)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(folder), *argv, "--grandchild"],
        cwd=DATA.parents[1],
        check=False,
    )
    record = Record.read(folder)
    assert len(of_folder(folder)) == 4
    yield record
    kill(of_folder(folder))


def test_an_orphaned_engine_is_ended_with_leash_and_grandchildren(
    folder: Path, orphan: Record
) -> None:
    begin = time.monotonic()
    (swept,) = reaper.sweep(folder.parent)
    assert time.monotonic() - begin < 5
    assert swept.run == "story-r0"
    assert orphan.leash in swept.killed
    assert len(swept.killed) == 4
    assert swept.survivors == ()
    assert all_gone(folder, 1)
    assert not (folder / server.RECORD).exists()
    assert reaper.sweep(folder.parent) == []


def test_an_orphan_is_found_by_its_mark_when_its_leash_is_gone(
    folder: Path, orphan: Record
) -> None:
    os.kill(orphan.leash, signal.SIGKILL)
    until = time.monotonic() + 5
    while len(of_folder(folder)) > 2 and time.monotonic() < until:
        time.sleep(0.02)  # the engine goes with its leash, what it started stays
    assert len(of_folder(folder)) == 2
    (swept,) = reaper.sweep(folder.parent)
    assert len(swept.killed) == 2
    assert all_gone(folder, 1)


def test_a_held_folder_is_let_be(folder: Path, orphan: Record) -> None:
    with lease.hold(folder / reaper.HELD, patience=0, give_up=lambda: True) as ours:
        assert ours
        assert reaper.sweep(folder.parent) == []
        assert len(of_folder(folder)) == 4
    assert len(reaper.sweep(folder.parent)) == 1


@pytest.mark.parametrize(
    "change",
    [{"host": "another-machine"}, {"boot_id": "another boot"}],
    ids=["another machine's", "from before a restart"],
)
def test_a_record_that_is_not_of_here_and_now_ends_nothing(
    folder: Path, change: dict[str, str]
) -> None:
    with innocent() as other:
        write(folder, replace(record_of(other.pid), **change))  # type: ignore[arg-type]
        assert reaper.sweep(folder.parent) == []
        assert other.poll() is None
        other.kill()


def test_a_pid_that_was_given_out_again_is_let_be(folder: Path) -> None:
    with innocent() as other:
        write(folder, replace(record_of(other.pid), leash_started="1"))
        assert reaper.sweep(folder.parent) == []
        assert other.poll() is None
        assert not (folder / server.RECORD).exists()
        other.kill()


def test_a_broken_record_ends_nothing_and_stops_nobody(folder: Path) -> None:
    (folder / server.RECORD).write_text("{")
    assert reaper.sweep(folder.parent) == []


def test_there_need_be_no_runs_at_all(tmp_path: Path) -> None:
    assert reaper.sweep(tmp_path / "none") == []
    assert list(reaper.unsaved(tmp_path / "none")) == []


def innocent() -> subprocess.Popen[bytes]:
    code = "import time; time.sleep(60)"
    return subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)


def record_of(pid: int) -> Record:
    import socket

    process = processes.one(pid)
    assert process is not None
    return Record(
        run="r",
        host=socket.gethostname(),
        boot_id=processes.boot_id(),
        leash=pid,
        leash_started=process.started,
        mark="not in its environment",
        launched_at=0.0,
    )


def write(folder: Path, record: Record) -> None:
    (folder / server.RECORD).write_text(json.dumps(asdict(record)))


def test_an_outcome_is_found_again_once_nobody_holds_its_folder(folder: Path) -> None:
    path = reaper.keep(folder, run_id=7, token="t", outcome=OUTCOME)
    with lease.hold(folder / reaper.HELD, patience=0, give_up=lambda: True):
        assert list(reaper.unsaved(folder.parent)) == []
    (found,) = reaper.unsaved(folder.parent)
    assert (found.run_id, found.token, found.outcome, found.path) == (7, "t", OUTCOME, path)
    reaper.settle(path, reaper.SAVED)
    assert list(reaper.unsaved(folder.parent)) == []


def test_a_torn_outcome_is_set_aside_and_the_others_are_found(folder: Path) -> None:
    torn = folder.parent / "a-torn-one"
    torn.mkdir()
    (torn / reaper.OUTCOME).write_text('{"run_id": 1')
    reaper.keep(folder, run_id=7, token="t", outcome=OUTCOME)
    assert [found.run_id for found in reaper.unsaved(folder.parent)] == [7]
    assert (torn / reaper.REFUSED).exists()


def test_a_fresh_folder_moves_the_old_one_aside_unless_somebody_works_in_it(folder: Path) -> None:
    (folder / "server.log").write_text("old")
    reaper.fresh_folder(folder)
    reaper.fresh_folder(folder)
    assert list(folder.iterdir()) == []
    assert (folder.with_name("story-r0.1") / "server.log").read_text() == "old"
    assert folder.with_name("story-r0.2").is_dir()


def test_a_folder_in_use_is_not_moved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaper, "END_SECONDS", 0.1)
    with (
        lease.hold(folder / reaper.HELD, patience=0, give_up=lambda: True),
        pytest.raises(BlockingIOError, match="still measures"),
    ):
        reaper.fresh_folder(folder)
    assert folder.is_dir()
