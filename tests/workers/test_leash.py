"""The leash as the start-up and the server use it: a process of its own around a program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from workers import processes

ROOT = Path(__file__).resolve().parents[2]


def leashed(*command: str, owner: int | None = None, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "workers.leash", str(owner or os.getpid()), "--", *command],
        cwd=ROOT,
        text=True,
        start_new_session=True,
        **options,
    )


def alive(pid: int) -> bool:
    process = processes.one(pid)
    return process is not None and not process.zombie


def gone(pid: int, seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def test_the_exit_code_is_the_programs() -> None:
    assert leashed("sh", "-c", "exit 7").wait(10) == 7
    assert leashed("sh", "-c", "kill -9 $$").wait(10) == 128 + 9
    assert leashed("/no/such/program").wait(10) == 127


def test_signals_are_passed_on_to_the_program() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        script = f"trap 'echo got; exit 3' {number.name[3:]}; echo up; while :; do sleep 0.05; done"
        with leashed("sh", "-c", script, stdout=subprocess.PIPE) as leash:
            assert leash.stdout is not None
            assert leash.stdout.readline() == "up\n"
            leash.send_signal(number)
            assert leash.stdout.readline() == "got\n"
            assert leash.wait(10) == 3


def test_signals_that_the_owner_ignores_reach_the_program() -> None:
    """What is ignored stays ignored over exec; an engine must hear SIGTERM all the same."""
    script = "import signal; print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        leash = leashed(sys.executable, "-c", script, stdout=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGTERM, before)
    with leash:
        assert leash.stdout is not None
        assert leash.stdout.read() == "True\n"


def test_what_the_program_leaves_behind_is_ended_with_it() -> None:
    script = "sleep 60 & echo $!; setsid sleep 61 & echo $!; exit 0"
    with leashed("sh", "-c", script, stdout=subprocess.PIPE) as leash:
        assert leash.stdout is not None
        first, second = int(leash.stdout.readline()), int(leash.stdout.readline())
        assert leash.wait(10) == 0
    assert gone(first, 1)
    assert gone(second, 1)


def test_sigusr1_ends_everything_at_once() -> None:
    script = "trap '' TERM; sleep 60 & echo $!; wait"
    with leashed("sh", "-c", script, stdout=subprocess.PIPE) as leash:
        assert leash.stdout is not None
        grandchild = int(leash.stdout.readline())
        leash.send_signal(signal.SIGUSR1)
        assert leash.wait(10) == 128 + 9
    assert gone(grandchild, 1)


def test_an_owner_that_is_already_dead_starts_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "started"
    assert leashed("touch", str(trace), owner=2**22 - 1).wait(10) == 1
    assert not trace.exists()


def test_a_killed_leash_takes_the_program_along() -> None:
    with leashed("sh", "-c", "echo $$; exec sleep 60", stdout=subprocess.PIPE) as leash:
        assert leash.stdout is not None
        program = int(leash.stdout.readline())
        leash.kill()
        assert gone(program)


def test_a_wrong_call_says_how_it_is_called() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "workers.leash", "x"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "leash: expected OWNER_PID [--report FD] [--hold FD]... -- PROGRAM ARGUMENT ...\n"
    )


def test_it_reports_start_end_and_what_it_killed() -> None:
    ours, theirs = os.pipe()
    script = "sleep 60 & exit 5"
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "workers.leash", str(os.getpid()), "--report", str(theirs)),
            *("--", "sh", "-c", script),
        ],
        cwd=ROOT,
        pass_fds=(theirs,),
        start_new_session=True,
    ) as leash:
        os.close(theirs)
        with os.fdopen(ours) as reports:
            said = [json.loads(line) for line in reports]
        assert leash.wait(10) == 5
    assert list(said[0]) == ["started"]
    assert said[1] == {"ended": 5}
    assert len(said[2]["killed"]) == 1
    assert said[2]["left"] == []


def test_a_closed_report_pipe_counts_as_a_dead_owner() -> None:
    ours, theirs = os.pipe()
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "workers.leash", str(os.getpid()), "--report", str(theirs)),
            *("--", "sleep", "60"),
        ],
        cwd=ROOT,
        pass_fds=(theirs,),
        start_new_session=True,
    ) as leash:
        os.close(theirs)
        started = json.loads(os.read(ours, 4096))["started"]
        os.close(ours)
        assert leash.wait(10) == 128 + 9
    assert gone(started, 1)


def test_inherited_descriptors_reach_the_program() -> None:
    """The start-up hands the web its bound socket this way."""
    ours, theirs = os.pipe()
    script = f"import os; os.write({theirs}, b'hello')"
    with leashed(sys.executable, "-c", script, pass_fds=(theirs,)) as leash:
        os.close(theirs)
        with os.fdopen(ours) as said:
            assert said.read() == "hello"
        assert leash.wait(10) == 0
