"""A TP=8 run from top to bottom on a fake NVML host: lease, command, samples, release."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from specdebug.measure.gpu_samples import FILE, KIND, GpuSamples, summarise
from tests.workers.conftest import DATA, MakePlan, of_folder
from tests.workers.nvml import FakeGpus
from workers import gpu_lease, runner, telemetry
from workers.plan import Progress, RunOutcome, RunPlan

pytestmark = pytest.mark.usefixtures("sglang")


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "EVERY_SECONDS", 0.05)


@pytest.fixture
def plan(make_plan: MakePlan) -> RunPlan:
    return replace(make_plan("--model-path", "m", "--tp-size", "8"), engine="sglang")


def measure(plan: RunPlan, seen: list[Progress] | None = None) -> RunOutcome:
    return runner.measure(
        plan,
        on_progress=lambda progress: None if seen is None else seen.append(progress),
        should_stop=lambda: "",
    )


def all_free() -> bool:
    lease = gpu_lease.take(
        gpu_lease.Need(8), run="r", patience=0, on_wait=lambda _: None, should_stop=lambda: ""
    )
    lease.release()
    return True


def test_a_plan_for_eight_gpus_leases_them_and_starts_exactly_this_command(
    fake_gpus: FakeGpus, plan: RunPlan, sglang: Path
) -> None:
    outcome = measure(plan)
    assert (outcome.state, outcome.reason) == ("done", "")
    port = outcome.argv[-1]
    assert outcome.argv == (
        *(str(sglang), "-m", "sglang.launch_server"),
        *("--model-path", "m", "--tp-size", "8", "--host", "127.0.0.1", "--port", port),
    )
    assert outcome.env["CUDA_VISIBLE_DEVICES"] == ",".join(fake_gpus.uuid(n) for n in range(8))
    assert outcome.versions["nvidia driver"] == "580.65.06"
    assert outcome.versions["gpus"] == "8 × NVIDIA RTX PRO 6000 Blackwell Server Edition"
    assert all_free()


def test_the_samples_of_all_eight_are_kept_with_the_run(fake_gpus: FakeGpus, plan: RunPlan) -> None:
    fake_gpus.set(3, temp=91, reasons=0x40, sm=900)
    outcome = measure(plan)
    assert (FILE, KIND) in outcome.files
    found = GpuSamples.unpacked((Path(plan.folder) / FILE).read_bytes())
    spans = [(r.started_at, r.started_at + r.seconds) for r in outcome.repeats]
    summary = summarise(found, spans)
    assert [gpu.index for gpu in summary] == list(range(8))
    assert all(gpu.samples >= 1 for gpu in summary)
    assert (summary[3].temp_c_max, summary[3].sm_mhz_mean) == (91, 900.0)
    assert summary[3].throttled == {"hardware thermal slowdown": summary[3].samples}
    assert summary[0].throttled_samples == 0


def test_with_one_gpu_taken_nothing_is_started_and_the_reason_names_who(
    fake_gpus: FakeGpus, plan: RunPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_lease, "PROCESS_SECONDS", 0.0)
    with subprocess.Popen(["sleep", "60"]) as other:
        fake_gpus.use(6, other.pid, 30_000)
        outcome = measure(plan)
        other.kill()
    assert (outcome.state, outcome.phase) == ("failed", "preparing")
    assert f"GPU 6 is in use: process {other.pid} (sleep) of user" in outcome.reason
    assert outcome.exit is None
    assert not (Path(plan.folder) / "server.log").exists()
    assert all_free()


def test_memory_still_being_freed_is_waited_for_before_and_after(
    fake_gpus: FakeGpus, plan: RunPlan
) -> None:
    fake_gpus.set(0, used=50_000)
    seen: list[Progress] = []

    def free(progress: Progress) -> None:
        """What was held is freed when it is waited for."""
        seen.append(progress)
        if progress.detail.startswith("waiting for 8 GPUs: GPU 0 has 50,000 of"):
            fake_gpus.set(0, used=400)
        elif progress.detail.startswith("waiting for GPU 5: 50,000 of"):
            fake_gpus.set(5, used=400)
        elif progress.phase == "stopping":
            fake_gpus.set(5, used=50_000)

    outcome = runner.measure(plan, on_progress=free, should_stop=lambda: "")
    assert (outcome.state, outcome.reason) == ("done", "")
    waits = [p.phase for p in seen if "GPU" in p.detail and p.detail.startswith("waiting")]
    assert waits == ["preparing", "stopping"]


def test_memory_that_stays_held_is_told_with_the_figures(
    fake_gpus: FakeGpus, plan: RunPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_lease.Lease.wait_released, "__kwdefaults__", {"seconds": 0.1})

    def fill(progress: Progress) -> None:
        if progress.phase == "stopping":
            fake_gpus.set(2, used=70_000)

    outcome = runner.measure(plan, on_progress=fill, should_stop=lambda: "")
    assert outcome.state == "done"
    assert outcome.reason == ("0.1 s after the server's end GPU 2: 70,000 of 97,887 MB in use.")


def test_a_gpu_that_falls_off_the_bus_does_not_end_the_measurement(
    fake_gpus: FakeGpus, plan: RunPlan
) -> None:
    def lose(progress: Progress) -> None:
        if progress.phase == "measuring":
            fake_gpus.set(4, lost=1)

    plan = replace(plan, server_args=(*plan.server_args, "--token-seconds", "0.005"))
    outcome = runner.measure(plan, on_progress=lose, should_stop=lambda: "")
    assert outcome.state == "done"
    found = GpuSamples.unpacked((Path(plan.folder) / FILE).read_bytes())
    assert [gpu.index for gpu in found.gpus if gpu.lost_at is not None] == [4]


def test_without_a_driver_the_run_is_measured_and_says_that_nothing_was_leased(
    fake_gpus: FakeGpus, plan: RunPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NVML", "/no/such/file")
    outcome = measure(plan)
    assert outcome.state == "done"
    assert (FILE, KIND) not in outcome.files
    assert outcome.versions["gpus"].startswith("none leased (NVML: ")
    assert "CUDA_VISIBLE_DEVICES" not in outcome.env


def test_the_reference_engine_takes_no_gpu(fake_gpus: FakeGpus, make_plan: MakePlan) -> None:
    fake_gpus.set(0, mig=1)
    outcome = measure(make_plan())  # an engine without `gpus`
    assert outcome.state == "done"
    assert "gpus" not in outcome.versions


HOLDER = [sys.executable, "-m", "tests.workers.holder"]


def test_kill_9_of_the_worker_frees_the_lease_once_the_engine_is_gone(
    fake_gpus: FakeGpus, plan: RunPlan, sglang: Path
) -> None:
    slow = replace(plan, server_args=(*plan.server_args, "--token-seconds", "0.1", "--grandchild"))
    with subprocess.Popen(
        [*HOLDER, json.dumps(slow.as_json())],
        cwd=DATA.parents[1],
        env=fake_gpus.env,
        text=True,
        stdout=subprocess.PIPE,
    ) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            if line.strip() == "measuring":
                break
        with pytest.raises(Exception, match="leased to run story-r0"):
            all_free()
        worker.kill()
    # The leash needs a moment; nobody is let in before it is done.
    lease = gpu_lease.take(
        gpu_lease.Need(8), run="r", patience=10, on_wait=lambda _: None, should_stop=lambda: ""
    )
    assert of_folder(Path(plan.folder)) == []
    lease.release()
