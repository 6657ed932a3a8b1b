"""The lease on GPUs, with real locks, real processes and a fake NVML."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.killing import kill
from tests.workers.conftest import DATA
from tests.workers.nvml import FakeGpus
from workers import gpu_lease, gpu_locks, gpus
from workers.gpu_lease import Lease, Need, needed
from workers.plan import RunEnded

ROOT = DATA.parents[1]
# Leases GPUs and holds them until stdin ends; says which it got, or why not.
HOLDER = """
import sys
from workers import gpu_lease
from workers.plan import RunEnded
count, patience = int(sys.argv[1]), float(sys.argv[2])
try:
    lease = gpu_lease.take(gpu_lease.Need(count), run=f"run-of-{count}", patience=patience,
                           on_wait=lambda text: None, should_stop=lambda: "")
    print(",".join(str(gpu.index) for gpu in lease.gpus), flush=True)
    sys.stdin.read()
except RunEnded as no:
    print("refused:", no.reason, flush=True)
"""


@pytest.fixture
def holder(fake_gpus: FakeGpus) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a process that leases so many GPUs and holds them."""
    with contextlib.ExitStack() as stack:

        def start(count: int, patience: float = 0.0) -> subprocess.Popen[str]:
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", HOLDER, str(count), str(patience)],
                    cwd=ROOT,
                    env=fake_gpus.env,
                    text=True,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            stack.callback(process.kill)
            return process

        yield start


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def take(count: int, *, patience: float = 0.0, visible: str | None = None) -> Lease:
    return gpu_lease.take(
        Need(count, visible),
        run="story-r0",
        patience=patience,
        on_wait=lambda text: None,
        should_stop=lambda: "",
    )


def refusal(count: int, *, patience: float = 0.0, visible: str | None = None) -> str:
    with pytest.raises(RunEnded) as no:
        take(count, patience=patience, visible=visible)
    assert no.value.state == "failed"
    return no.value.reason


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_lease, "PROCESS_SECONDS", 0.0)
    monkeypatch.setattr(gpu_lease, "RELEASE_SECONDS", 0.0)


# ---- what a command needs ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ("", 1),
        ("--tp 8", 8),
        ("--tensor-parallel-size=8", 8),
        ("--tp-size 4 --pp-size 2", 8),
        ("--tp 2 --dp 4", 8),
        ("--tp 8 --dp 8 --enable-dp-attention", 8),
        ("--tp 16 --nnodes 2", 8),
        ("--tp 2 --gpu-id-step 2", 3),
        ("--tp 8 --device cpu", 0),
    ],
)
def test_a_command_needs_as_many_gpus_as_its_ranks_on_this_host(arguments: str, count: int) -> None:
    assert needed(arguments.split()).count == count


def test_a_command_that_chooses_its_first_gpu_itself_is_refused() -> None:
    with pytest.raises(RunEnded, match="leave it out"):
        needed(["--base-gpu-id", "4"])
    assert needed(["--base-gpu-id", "0"]).count == 1


# ---- all or nothing ------------------------------------------------------------------------------


def test_a_lease_of_eight_names_them_by_uuid_and_is_free_afterwards(fake_gpus: FakeGpus) -> None:
    lease = take(8)
    assert lease.env["CUDA_VISIBLE_DEVICES"] == ",".join(fake_gpus.uuid(n) for n in range(8))
    assert str(lease) == (
        "GPU 0, 1, 2, 3, 4, 5, 6, 7 (8 × NVIDIA RTX PRO 6000 Blackwell Server Edition)"
    )
    assert "leased to run story-r0 of user " in refusal(1)
    lease.release()
    lease.release()
    take(8).release()


def test_a_foreign_process_is_named_and_its_gpu_refused(
    fake_gpus: FakeGpus, impatient: None
) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        fake_gpus.use(3, other.pid, 12_345)
        reason = refusal(8)
        others = take(7)  # a plan that needs fewer goes round it
        other.kill()
    assert "needs 8 GPUs, and of the 8 that this worker may use 7 can be had" in reason
    assert f"GPU 3 is in use: process {other.pid} (sleep) of user " in reason
    assert "holds 12,345 MB" in reason
    assert [gpu.index for gpu in others.gpus] == [0, 1, 2, 4, 5, 6, 7]
    others.release()
    take(8).release()


def test_too_little_free_memory_is_told_in_megabytes(fake_gpus: FakeGpus, impatient: None) -> None:
    fake_gpus.set(6, used=4_800)  # a screen
    take(8).release()
    fake_gpus.set(6, used=5_000)
    reason = refusal(8)
    assert "GPU 6 has 5,000 of 97,887 MB in use" in reason
    assert "95% free" in reason


def test_a_gpu_split_by_mig_and_a_lost_one_are_refused_at_once(fake_gpus: FakeGpus) -> None:
    fake_gpus.set(1, mig=1)
    fake_gpus.set(4, lost=1)
    begin = time.monotonic()
    reason = refusal(8, patience=60)
    assert time.monotonic() - begin < 5
    assert "GPU 1 is split by MIG" in reason
    assert "GPU 4 cannot be used: it has fallen off the bus" in reason
    lease = take(6)
    assert [gpu.index for gpu in lease.gpus] == [0, 2, 3, 5, 6, 7]
    lease.release()


def test_memory_that_frees_slowly_is_waited_for_and_said_so(fake_gpus: FakeGpus) -> None:
    fake_gpus.drain(2, used=40_000, seconds=4.0)
    told: list[str] = []
    begin = time.monotonic()
    gpu_lease.take(
        Need(8), run="r", patience=0, on_wait=told.append, should_stop=lambda: ""
    ).release()
    assert time.monotonic() - begin > 1
    assert told[0].startswith("waiting for 8 GPUs: GPU 2 has ")
    assert " of 97,887 MB in use" in told[0]


def test_who_must_leave_does_not_wait_for_gpus(fake_gpus: FakeGpus) -> None:
    lease = take(1)
    with pytest.raises(RunEnded) as ended:
        gpu_lease.take(
            Need(8),
            run="r",
            patience=60,
            on_wait=lambda text: None,
            should_stop=lambda: "Cancelled on request.",
        )
    assert (ended.value.state, ended.value.reason) == ("cancelled", "Cancelled on request.")
    lease.release()


def test_the_worker_and_the_plan_both_restrict_which_gpus_are_had(
    fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    lease = take(2, visible="6,7")
    assert [gpu.index for gpu in lease.gpus] == [6, 7]
    lease.release()
    assert "needs 5 GPUs and this worker may use 4" in refusal(5)
    assert "names no GPU" in refusal(1, visible="0")


def test_a_folder_that_cannot_be_written_is_one_clear_message(
    fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECDEBUG_GPU_LOCKS", str(tmp_path / "file" / "locks"))
    assert "Set SPECDEBUG_GPU_LOCKS to a folder" in refusal(1)


def test_a_link_in_the_place_of_a_lock_is_not_followed(fake_gpus: FakeGpus, tmp_path: Path) -> None:
    take(1).release()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = gpu_locks.folder() / f"{fake_gpus.uuid(0)}.lock"
    path.unlink()
    path.symlink_to(victim)
    assert "cannot be used" in refusal(1)
    assert victim.read_text() == "precious"


def test_a_wait_that_is_no_number_is_refused(
    fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECDEBUG_GPU_WAIT", "soon")
    with pytest.raises(RunEnded, match="expected a number of seconds"):
        gpu_lease.take(Need(1), run="r", on_wait=lambda _: None, should_stop=lambda: "")


def test_what_a_stranger_wrote_into_a_lock_only_costs_the_words(fake_gpus: FakeGpus) -> None:
    lease = take(1)
    for text in ("", "[]", '{"run": 1}', "\x00" * 5000):
        (gpu_locks.folder() / f"{fake_gpus.uuid(0)}.lock").write_text(text)
        assert "GPU 0 is leased to another run" in refusal(8)
    lease.release()


# ---- several processes ---------------------------------------------------------------------------


def test_two_processes_share_the_machine_without_sharing_a_gpu(
    holder: Callable[..., subprocess.Popen[str]],
) -> None:
    assert said(holder(4)) == "0,1,2,3"
    assert said(holder(4)) == "4,5,6,7"
    answer = said(holder(1))
    assert answer.startswith("refused: The plan needs 1 GPU, and of the 8")
    assert "leased to run run-of-4 of user " in answer


def test_of_many_that_want_all_at_once_each_gets_them_in_turn(
    holder: Callable[..., subprocess.Popen[str]],
) -> None:
    everybody = [holder(8, patience=60) for _ in range(4)]
    for process in everybody:
        assert process.stdin is not None
        process.stdin.close()  # let go at once
    assert [said(process) for process in everybody] == ["0,1,2,3,4,5,6,7"] * 4


def test_kill_9_frees_the_lease_at_once(holder: Callable[..., subprocess.Popen[str]]) -> None:
    first = holder(8)
    assert said(first) == "0,1,2,3,4,5,6,7"
    assert "leased to run run-of-8" in refusal(1)
    first.kill()
    first.wait()
    take(8).release()


def test_a_stopped_holder_still_holds(holder: Callable[..., subprocess.Popen[str]]) -> None:
    first = holder(8)
    said(first)
    first.send_signal(signal.SIGSTOP)
    assert "leased to run run-of-8" in refusal(8)


def test_looking_at_the_holders_takes_no_lease_away(
    holder: Callable[..., subprocess.Popen[str]], fake_gpus: FakeGpus
) -> None:
    with gpus.nvml() as asked:
        found = asked.gpus()
    assert [gpu_locks.holder(gpu) for gpu in found] == [""] * 8
    assert said(holder(1)) == "0"
    who = [gpu_locks.holder(gpu) for gpu in found]
    assert who[0].startswith("run run-of-1 of user ")
    assert who[1:] == [""] * 7


# ---- the end of a run ----------------------------------------------------------------------------


def test_a_lease_waits_until_the_memory_is_free_again(fake_gpus: FakeGpus) -> None:
    lease = take(2)
    fake_gpus.drain(1, used=90_000, seconds=3.0)
    told: list[str] = []
    assert lease.wait_released(on_wait=told.append) == ""
    assert told
    assert told[0].startswith("waiting for GPU 1: ")
    lease.release()


def test_memory_that_does_not_get_free_is_reported_with_its_holder(fake_gpus: FakeGpus) -> None:
    lease = take(2)
    fake_gpus.use(0, os.getpid(), 70_000)
    fake_gpus.set(1, used=60_000)
    left = lease.wait_released(on_wait=lambda text: None, seconds=0.2)
    assert left.startswith("0.2 s after the server's end GPU 0: process ")
    assert "GPU 1: 60,000 of 97,887 MB in use" in left
    lease.release()


def test_a_gpu_that_fell_off_the_bus_is_not_waited_for(fake_gpus: FakeGpus) -> None:
    lease = take(2)
    fake_gpus.set(1, lost=1)
    assert lease.wait_released(on_wait=lambda text: None, seconds=30) == ""
    lease.release()


# ---- the leash -----------------------------------------------------------------------------------

# A worker that leases all, starts a program on the leash with the locks and is then killed.
WORKER = """
import json, sys, time
from pathlib import Path
from workers import gpu_lease
from workers.server import Server
lease = gpu_lease.take(gpu_lease.Need(8), run="r", patience=0,
                       on_wait=lambda text: None, should_stop=lambda: "")
server = Server.launch(sys.argv[2:], {"PATH": "/usr/bin:/bin"}, Path(sys.argv[1]), "r",
                       hold=lease.handles)
print(json.dumps({"leash": server._leash.pid, "program": server.pid}), flush=True)
time.sleep(60)
"""
# Holds the lease's descriptors only if somebody handed them on by mistake.
PROGRAM = ["sh", "-c", "ls -l /proc/self/fd > fds; trap '' TERM; while :; do sleep 0.1; done"]


@pytest.fixture
def worker(fake_gpus: FakeGpus, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    folder = tmp_path / "server"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(folder), *PROGRAM],
        cwd=ROOT,
        env=fake_gpus.env,
        text=True,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            pids = json.loads(said(process))
            yield process, pids["leash"], pids["program"]
        finally:
            process.kill()


def gone(pid: int, seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while Path(f"/proc/{pid}/stat").exists() and time.monotonic() < until:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return not Path(f"/proc/{pid}").exists()


def test_the_leash_holds_the_lease_until_the_program_of_a_killed_worker_is_gone(
    worker: tuple[subprocess.Popen[str], int, int],
) -> None:
    process, leash, program = worker
    os.kill(leash, signal.SIGSTOP)  # between the worker's death and the leash's answer to it
    process.kill()
    process.wait()
    assert "leased to run r of user " in refusal(1)
    assert Path(f"/proc/{program}").exists()
    os.kill(leash, signal.SIGCONT)
    assert gone(program)
    assert gone(leash)
    take(8).release()


def test_the_program_itself_does_not_get_the_locks(
    worker: tuple[subprocess.Popen[str], int, int], tmp_path: Path
) -> None:
    process, leash, _ = worker
    until = time.monotonic() + 10
    while not (tmp_path / "server" / "fds").exists() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.1)
    assert ".lock" not in (tmp_path / "server" / "fds").read_text()
    held = [os.readlink(fd) for fd in Path(f"/proc/{leash}/fd").iterdir()]  # noqa: PTH115
    assert sum(".lock" in where for where in held) == 8
    process.kill()
    assert gone(leash)


def test_with_worker_and_leash_both_killed_the_memory_keeps_others_away(
    worker: tuple[subprocess.Popen[str], int, int], fake_gpus: FakeGpus, impatient: None
) -> None:
    process, leash, _ = worker
    # What a killed leash cannot end: an engine's grandchild in a session of its own.
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as grandchild:
        fake_gpus.use(7, grandchild.pid, 80_000)
        process.kill()
        kill([leash])  # it may be gone already: its owner is
        process.wait()
        assert gone(leash)
        assert f"GPU 7 is in use: process {grandchild.pid} (sleep)" in refusal(8)
        grandchild.kill()
    take(8).release()
