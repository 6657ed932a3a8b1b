"""Servers whose holder is killed: nothing of them may stay, in whatever phase it happens."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workers.conftest import DATA, MakePlan, of_folder
from workers import processes, server
from workers.plan import Deadlines, RunPlan
from workers.server import Record, Server

ROOT = Path(__file__).resolve().parents[2]


def hold(plan: RunPlan) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.workers.holder", json.dumps(plan.as_json())],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def all_gone(folder: Path, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while of_folder(folder):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def family(folder: Path) -> int:
    """How many processes run in the folder: leash, engine and its two grandchildren make four."""
    return len(of_folder(folder))


@pytest.mark.parametrize("phase", ["launching", "loading", "warming up", "measuring", "stopping"])
def test_kill_9_of_the_holder_takes_server_and_grandchildren_along(
    make_plan: MakePlan, phase: str
) -> None:
    deaf = phase == "stopping"
    plan = make_plan(
        *("--grandchild", "--load-seconds", "1", "--token-seconds", "0.01"),
        *(["--ignore-sigterm"] if deaf else []),
        workload={"repeats": 1 if deaf else 50},
        deadlines=Deadlines(launch=20, ready=30, request=20, stop=30),
    )
    folder = Path(plan.folder)
    with hold(plan) as holder:
        assert holder.stdout is not None
        while holder.stdout.readline().strip() != phase:
            assert holder.poll() is None
        if phase != "launching":  # there it may die before there is anything
            until = time.monotonic() + 10
            while family(folder) < 4 and time.monotonic() < until:
                time.sleep(0.02)
            assert family(folder) == 4
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    # A second on a quiet machine.
    assert all_gone(folder, 5)


@pytest.mark.parametrize("born", [1, 2, 4])
def test_kill_9_between_spawn_and_health_leaves_nothing(make_plan: MakePlan, born: int) -> None:
    """The engine never says a word; the holder dies as soon as leash, engine and its children are
    so many."""
    plan = make_plan(
        "--grandchild", "--silent", deadlines=Deadlines(launch=60, ready=60, request=20, stop=30)
    )
    folder = Path(plan.folder)
    with hold(plan) as holder:
        until = time.monotonic() + 30
        while family(folder) < born:
            assert holder.poll() is None
            assert time.monotonic() < until
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert all_gone(folder, 5)


def test_kill_9_of_the_leash_ends_the_server_and_the_run_says_so(make_plan: MakePlan) -> None:
    folder = Path(make_plan().folder)
    running = launch(folder, "--grandchild")
    ready(running)
    os.kill(Record.read(folder).leash, signal.SIGKILL)
    until = time.monotonic() + 5
    while running.look() is None and time.monotonic() < until:
        time.sleep(0.02)
    assert running.look() == -signal.SIGKILL
    assert running.ended_how() == "The server was ended by SIGKILL"
    assert running.stop(1).survivors == ()
    assert all_gone(folder, 1)


def launch(folder: Path, *switches: str) -> Server:
    port = server.free_port()
    argv = [sys.executable, str(DATA / "fake_engine.py"), "--port", str(port), *switches]
    env = {"PATH": os.environ["PATH"]}
    running = Server.launch(argv, env, folder, "story-r0")
    running.url = f"http://127.0.0.1:{port}"  # type: ignore[attr-defined]
    return running


def ready(running: Server) -> None:
    running.wait_ready(
        running.url,  # type: ignore[attr-defined]
        Deadlines(launch=20, ready=30),
        on_phase=lambda _: None,
        should_stop=lambda: "",
    )


def test_a_stop_before_readiness_leaves_nothing(make_plan: MakePlan) -> None:
    folder = Path(make_plan().folder)
    running = launch(folder, "--grandchild", "--load-seconds", "60")
    ended = running.stop(2)
    assert ended.asked
    assert ended.survivors == ()
    assert not of_folder(folder)
    assert running.stop(2) == ended  # twice changes nothing


def test_a_program_that_is_not_there_is_one_sentence(make_plan: MakePlan) -> None:
    folder = Path(make_plan().folder)
    with pytest.raises(server.RunEnded) as caught:
        Server.launch(["/no/such/python"], {"PATH": ""}, folder, "r")
    assert caught.value.reason == (
        "The server could not be launched: No such file or directory: /no/such/python"
    )


def test_server_json_names_the_server_until_it_is_gone(make_plan: MakePlan) -> None:
    folder = Path(make_plan().folder)
    running = launch(folder)
    record = Record.read(folder)
    assert record.run == "story-r0"
    leash = processes.one(record.leash)
    assert leash is not None
    assert leash.started == record.leash_started
    assert leash.session == leash.group == record.leash
    engine = processes.one(running.pid or 0)
    assert engine is not None
    assert engine.session == record.leash
    assert server.marked(record.leash, record.mark) == {record.leash, running.pid}
    running.stop(5)
    assert not (folder / server.RECORD).exists()
    with pytest.raises(FileNotFoundError):
        Record.read(folder)


def test_a_broken_server_json_is_no_record(tmp_path: Path) -> None:
    (tmp_path / server.RECORD).write_text('{"run": "x"}')
    with pytest.raises(ValueError, match=r"server\.json"):
        Record.read(tmp_path)


def test_a_log_that_is_a_link_is_not_followed(make_plan: MakePlan, tmp_path: Path) -> None:
    folder = Path(make_plan().folder)
    (tmp_path / "target").write_text("precious")
    (folder / server.LOG).symlink_to(tmp_path / "target")
    with pytest.raises(server.RunEnded, match="could not be launched"):
        launch(folder)
    assert (tmp_path / "target").read_text() == "precious"


def test_a_written_file_is_whole_or_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "outcome.json"
    server.write_whole(path, "first")
    with pytest.raises(UnicodeEncodeError):
        server.write_whole(path, "second \udc80")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_the_mark_alone_finds_a_process_that_left_the_session(tmp_path: Path) -> None:
    env = {**os.environ, server.MARK: "m1"}
    code = "import time; time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code], env=env, start_new_session=True
    ) as left:
        until = time.monotonic() + 5
        while not server.marked(-1, "m1") and time.monotonic() < until:
            time.sleep(0.02)
        assert server.marked(-1, "m1") == {left.pid}
        assert server.marked(-1, "m2") == set()
        # In its session, but with an environment that says it is somebody else's.
        assert server.marked(left.pid, "m2") == set()
        left.kill()


def test_a_free_port_is_none_that_the_system_hands_out() -> None:
    ports = {server.free_port() for _ in range(20)}
    assert all(20_000 <= port < 30_000 for port in ports)
    assert len(ports) > 1


def test_a_port_that_is_taken_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        mine = taken.getsockname()[1]
        monkeypatch.setattr(server.random, "sample", lambda *_: [mine])
        assert server.free_port() not in (mine, 0)
