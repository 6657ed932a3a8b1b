"""The scenes of gpu_host.py: checks and figures of one thing each that a worker does with GPUs;
they choose no host and write no report."""

from __future__ import annotations

import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pynvml

from benchmarks import gpu_answers
from benchmarks.gpu_trial import ROOT, Host
from specdebug.measure.gpu_samples import FIELDS, REASONS, GpuSamples
from specdebug.reference import variants
from workers import engines, gpu_lease, gpus, preflight, provenance, runner
from workers.gpu_lease import Lease, Need
from workers.gpus import Gpu
from workers.plan import RunEnded, RunPlan, Workload
from workers.telemetry import Telemetry

HELD_MIB = 10_240
# Leases one GPU and holds it until stdin ends; says that it has it, or why not.
HOLDER = """
import sys
from workers import gpu_lease
from workers.plan import RunEnded
try:
    lease = gpu_lease.take(gpu_lease.Need(1), run=sys.argv[1], patience=0.0,
                           on_wait=lambda text: None, should_stop=lambda: "")
    print("leased", lease, flush=True)
    sys.stdin.read()
except RunEnded as no:
    print("refused:", no.reason, flush=True)
"""


def take(count: int = 1, *, patience: float = 0.0, visible: str | None = None) -> Lease:
    return gpu_lease.take(
        Need(count, visible),
        run="gpu-host",
        patience=patience,
        on_wait=lambda text: None,
        should_stop=lambda: "",
    )


def refusal(count: int = 1, **given: Any) -> str:
    """Why it is not leased; "" where it was."""
    try:
        take(count, **given).release()
    except RunEnded as no:
        return no.reason
    return ""


def all_gpus() -> list[Gpu]:
    with gpus.nvml() as asked:
        return asked.gpus()


# ---- the scenes ----------------------------------------------------------------------------------


def naming(host: Host) -> None:
    """Which GPUs there are, and what the driver answers to each question."""
    with gpus.nvml() as asked:
        found = asked.gpus()
        facts = asked.facts(found)
        host.figure("answers", gpu_answers.all_of(pynvml.nvmlDeviceGetHandleByIndex(0)))
        sample = asked.sample(found[0].uuid)
    host.figure("gpus", [dict(gpus.as_json(gpu)) for gpu in found])
    host.figure("facts", facts)
    host.check(
        "each GPU has a UUID, a name and no problem",
        all(gpu.uuid.startswith("GPU-") and gpu.name and not gpu.problem for gpu in found),
        gpus.names(found),
    )
    host.check(
        "memory adds up",
        all(
            gpu.free_mb is not None and 0 <= (gpu.used_mb or 0) <= (gpu.total_mb or 0)
            for gpu in found
        ),
        f"{found[0].used_mb} of {found[0].total_mb} MiB used",
    )
    host.check(
        "driver and CUDA are named",
        len({"nvidia driver", "cuda of the driver"} & set(facts)) == 2,
        facts,
    )
    silent = [name for name in FIELDS if getattr(sample, name) is None]
    host.figure("fields_not_told", silent)
    host.figure("first_sample", sample._asdict())
    machine = provenance.machine()
    host.figure("machine", machine)


def leasing(host: Host) -> None:
    """One is had and all-or-nothing is kept; wrong names are refused in words."""
    many = len(all_gpus())
    begin = time.perf_counter()
    lease = take()
    host.figure("lease_ms", round(1000 * (time.perf_counter() - begin), 1))
    host.check(
        "one GPU is leased, by UUID", lease.env["CUDA_VISIBLE_DEVICES"].startswith("GPU-"), lease
    )
    lease.release()
    said = refusal(many + 7)
    host.check("more than there are is refused", f"this worker may use {many}" in said, said)
    uuid = lease.gpus[0].uuid
    host.check("the beginning of a UUID names it", refusal(visible=uuid[:12]) == "", uuid[:12])
    said = refusal(visible="GPU-ffffffff")
    host.check("a UUID of nothing is refused", "names no GPU" in said, said)
    said = refusal(visible="")
    host.check("an empty CUDA_VISIBLE_DEVICES is nothing", "may use 0" in said, said)
    try:
        gpu_lease.needed(["--base-gpu-id", "1"])
        host.check("a first GPU of the plan's own is refused", False)
    except RunEnded as no:
        host.check("a first GPU of the plan's own is refused", True, no.reason)
    plan = RunPlan(
        "p",
        "sglang",
        (
            "--model-path",
            "m",
            "--speculative-algorithm",
            "EAGLE3",
            "--speculative-num-steps",
            "1",
            "--speculative-eagle-topk",
            "1",
            "--speculative-num-draft-tokens",
            "16",
        ),
        str(host.folder),
    )
    begin = time.perf_counter()
    ahead = preflight.foresee(plan, {"sglang": "0.5.10.post1"})
    host.check(
        "the override is foreseen before anything is started",
        "draft" in repr(ahead),
        f"{1000 * (time.perf_counter() - begin):.0f} ms",
    )


def _holder(run: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, run],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def contending(host: Host) -> None:
    """Real processes want the same GPUs."""
    everything = len(all_gpus())
    one = _holder("first")
    host.check("the first has it", (said := _line(one)).startswith("leased"), said)
    said = refusal(everything)
    host.check(
        "the second is refused and told by whom",
        "run first of user" in said and f"pid {one.pid}" in said,
        said,
    )
    one.kill()
    begin = time.perf_counter()
    lease = take(everything, patience=10)
    host.check(
        "kill -9 of the holder frees it",
        True,
        f"{1000 * (time.perf_counter() - begin):.0f} ms after the kill",
    )
    lease.release()
    one.communicate()
    rivals = [_holder(f"rival-{n}") for n in range(everything + 5)]
    words = [_line(rival) for rival in rivals]
    for rival in rivals:
        rival.communicate("")
    won = sum(word.startswith("leased") for word in words)
    host.check(
        "of many at once as many win as there are GPUs",
        won == everything,
        f"{won} of {len(rivals)} leased, {len(rivals) - won} refused",
    )


def foreign(host: Host) -> None:
    """A process that asked nobody holds memory: it is named, and waited for once it is gone."""
    before = all_gpus()[0]
    with host.loader() as loader:
        loader.ask(f"hold {HELD_MIB}")
        now = all_gpus()[0]
        host.figure("foreign_seen", dict(gpus.as_json(now)))
        host.check(
            "it is found with its memory",
            any(
                p.pid == loader.process.pid and (p.memory_mb or HELD_MIB) >= HELD_MIB
                for p in now.processes
            ),
            "; ".join(map(str, now.processes)) or "no process listed",
        )
        more = (now.used_mb or 0) - (before.used_mb or 0)
        host.figure("used_more_mib", more)
        begin = time.perf_counter()
        said = refusal()
        waited = time.perf_counter() - begin
        host.check(
            "the GPU is refused and it is named",
            str(loader.process.pid) in said,
            f"after {waited:.1f} s: {said}",
        )
        loader.process.kill()
        begin = time.perf_counter()
        freed = _until(lambda: (all_gpus()[0].used_mb or 0) <= (before.used_mb or 0) + 64)
        host.figure("seconds_from_kill_to_memory_free", round(freed, 3))
        lease = take()
        host.check(
            "afterwards it is leased", True, f"{time.perf_counter() - begin:.2f} s after the kill"
        )
        lease.release()
    lease = take()
    with host.loader() as loader:
        loader.ask(f"hold {HELD_MIB}")
        said = lease.wait_released(on_wait=lambda _: None, seconds=1.0)
        host.check("memory that stays is told of", str(loader.process.pid) in said, said)
        loader.process.send_signal(signal.SIGKILL)
        begin = time.perf_counter()
        said = lease.wait_released(on_wait=lambda _: None)
        host.check(
            "memory is waited for after a stop",
            said == "",
            f"{time.perf_counter() - begin:.2f} s after the kill {said}",
        )
    lease.release()


def _until(done: Callable[[], bool], seconds: float = 60.0) -> float:
    """Seconds until it was so; raises SystemExit where it never is."""
    begin = time.perf_counter()
    while not done():
        if time.perf_counter() - begin > seconds:
            raise SystemExit("waited in vain")
        time.sleep(0.005)
    return time.perf_counter() - begin


def sampling(host: Host) -> None:
    """What NVML tells at 1 Hz of an idle GPU, one that computes and one that moves memory."""
    phases = (("idle", 4), ("matmul", 10), ("copy", 8), ("small", 6), ("idle", 6))
    spans: list[tuple[str, float, float]] = []
    with host.loader() as loader, Telemetry(all_gpus()[:1]) as running:
        for what, seconds in phases:
            begin = time.time()
            answer = loader.ask(f"{what} {seconds}")
            spans.append((what, begin, time.time()))
            if "rate" in answer:
                host.figure(f"rate_{what}", f"{answer['rate']:.4g} {answer['unit']}")
    found = running.samples()
    gaps = [b - a for a, b in zip(found.times, found.times[1:], strict=False)]
    host.figure("samples", len(found.times))
    host.check(
        "a sample a second, whatever the load",
        min(gaps) > 0.9 and max(gaps) < 1.1,
        f"{min(gaps):.3f} to {max(gaps):.3f} s between two",
    )
    for what, begin, end in spans:
        host.figure(f"under_{what}", _ranges(found, begin + 1.5, end))
    file = host.folder / "gpu-samples.json.gz"
    running.keep(file)
    host.figure("file_bytes", file.stat().st_size)
    host.check("the file reads back", GpuSamples.unpacked(file.read_bytes()).gpus == found.gpus)


def _ranges(found: GpuSamples, begin: float, end: float) -> dict[str, Any]:
    """Least, median and most of each field within a span."""
    rows = [n for n, at in enumerate(found.times) if begin <= at <= end]
    ranges: dict[str, Any] = {"n": len(rows)}
    for name in FIELDS:
        values = [v for n in rows if (v := found.gpus[0].columns[name][n]) is not None]
        if name == "reasons":
            bits = {bit for value in values for bit in REASONS if value & bit}
            ranges[name] = sorted({hex(v) for v in values}), [REASONS[bit] for bit in sorted(bits)]
        elif values:
            ranges[name] = [min(values), statistics.median(values), max(values)]
    return ranges


def costs(host: Host) -> None:
    """Processor time and wall time of one sample, on an idle GPU and on one that computes."""
    with host.loader() as loader:
        for load in ("idle", "matmul"):
            loader.begin(f"{load} 3")
            time.sleep(1)
            with gpus.nvml() as asked:
                uuid = asked.gpus()[0].uuid
                rounds, until = 0, time.perf_counter() + 1.5
                wall, used = time.perf_counter(), time.thread_time()
                while time.perf_counter() < until:
                    asked.sample(uuid)
                    rounds += 1
                wall, used = time.perf_counter() - wall, time.thread_time() - used
            loader.answer()
            host.figure(
                f"sample_cost_{load}",
                {
                    "rounds": rounds,
                    "wall_ms": round(1000 * wall / rounds, 3),
                    "processor_ms": round(1000 * used / rounds, 3),
                },
            )


def overhead(host: Host) -> None:
    """The rate of a load without the sampler, with it, and with it fifty times as often."""
    sides: tuple[float | None, ...] = (None, 1.0, 0.02)
    with host.loader() as loader:
        chosen = all_gpus()[:1]
        for load in ("matmul", "small"):
            loader.ask(f"{load} 2")
            rates: dict[float | None, list[float]] = {side: [] for side in sides}
            for number in range(5):
                for side in sides[number % 3 :] + sides[: number % 3]:
                    if side is None:
                        answer = loader.ask(f"{load} 1.5")
                    else:
                        with Telemetry(chosen, every=side):
                            answer = loader.ask(f"{load} 1.5")
                    rates[side].append(answer["rate"])
            bare = rates[None]
            for side in (1.0, 0.02):
                ratios = [100 * (a / b - 1) for a, b in zip(rates[side], bare, strict=True)]
                error = statistics.stdev(ratios) / len(ratios) ** 0.5
                mean = statistics.fmean(ratios)
                name = f"change_percent_{load}_at_{round(1 / side)}_hz"
                host.figure(
                    name,
                    {
                        "mean": round(mean, 3),
                        "standard_error": round(error, 3),
                        "rounds": len(ratios),
                    },
                )
                if side == 1.0:
                    host.check(
                        f"sampling costs {load} less than 1 %",
                        mean - 2 * error > -1,
                        f"{mean:+.2f} ± {error:.2f} %",
                    )


def running(host: Host) -> None:
    """A whole run by the worker's own runner, with a lease, samples and the release."""
    engines.ENGINES["reference"] = replace(engines.engine("reference"), gpus=True)
    folder = host.folder / "run"
    folder.mkdir(mode=0o700)
    plan = RunPlan(
        "gpu-host-run",
        "reference",
        ("--model-path", str(variants.TARGET)),
        str(folder),
        workload=Workload(repeats=2, prompts_per_repeat=4),
    )
    seen: list[str] = []
    outcome = runner.measure(
        plan, on_progress=lambda p: seen.append(p.phase), should_stop=lambda: ""
    )
    host.check(
        "a run is measured under a lease",
        outcome.state == "done",
        outcome.reason or outcome.versions.get("gpus", "no GPUs named"),
    )
    host.check("its samples are kept", "gpu-samples.json.gz" in dict(outcome.files), outcome.files)
    host.check("the GPU is free again", refusal() == "")


SCENES = {
    scene.__name__: scene
    for scene in (naming, leasing, contending, foreign, sampling, costs, overhead, running)
}
