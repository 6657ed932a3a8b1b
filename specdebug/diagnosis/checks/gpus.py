"""Checks of the GPUs during the measured repeats: held back, lost, or with errors of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.findings import Evidence, Finding, Severity
from specdebug.measure.middle import mean

if TYPE_CHECKING:  # a check without GPU samples starts sooner
    from specdebug.measure.gpu_samples import GpuSummary

SOURCE = "GPU samples"
# One moment in a hundred costs less than a run's own spread; a single one may be chance.
HELD_BACK, LEAST_SAMPLES = 0.01, 2
# From here on the figures are those of another machine.
MUCH = 0.10
# A GPU that is at its power cap now and then is an ordinary one under load.
CAPPED = 0.50


def gpu_throttled(case: Case) -> Finding | None:
    """Clocks held back by heat, by the hardware's brake, or (as a note) by the power cap."""
    held = [gpu for gpu in case.gpus if _part(gpu.throttled_samples, gpu) >= HELD_BACK]
    held = [gpu for gpu in held if gpu.throttled_samples >= LEAST_SAMPLES]
    if held:
        return _throttled(case.gpus, held)
    capped = [gpu for gpu in case.gpus if _part(gpu.power_capped_samples, gpu) >= CAPPED]
    return _capped(capped) if capped else None


def _throttled(everybody: Sequence[GpuSummary], held: Sequence[GpuSummary]) -> Finding:
    worst = max(held, key=lambda gpu: _part(gpu.throttled_samples, gpu))
    reason = max(worst.throttled, key=lambda words: worst.throttled[words])
    severity: Severity = "high" if _part(worst.throttled_samples, worst) >= MUCH else "medium"
    more = f" ({len(held)} GPUs were)" if len(held) > 1 else ""
    figures = [] if worst.temp_c_max is None else [f"up to {worst.temp_c_max} °C"]
    others = [
        gpu.sm_mhz_mean for gpu in everybody if gpu not in held and gpu.sm_mhz_mean is not None
    ]
    if worst.sm_mhz_mean is not None:
        beside = f" against {mean(others):,.0f} MHz of those that were not" if others else ""
        figures.append(f"{worst.sm_mhz_mean:,.0f} MHz on average{beside}")
    return Finding(
        "gpu-throttled",
        severity,
        "certain",
        f"GPU {worst.index} was held back in {_of(worst.throttled_samples, worst)} of the measured "
        f"repeats by {reason}{more}{''.join(', ' + text for text in figures)}: the figures are "
        "those of a throttled machine.",
        tuple(_evidence(gpu) for gpu in held),
        "See to cooling and power of the machine, and measure the run and its baseline again; with "
        "tensor parallelism the slowest GPU sets the pace of all.",
    )


def _capped(capped: Sequence[GpuSummary]) -> Finding:
    worst = max(capped, key=lambda gpu: _part(gpu.power_capped_samples, gpu))
    watts = "" if worst.power_w_mean is None else f" at {worst.power_w_mean:,.0f} W on average"
    return Finding(
        "gpu-throttled",
        "info",
        "certain",
        f"GPU {worst.index} was at its power cap in {_of(worst.power_capped_samples, worst)} of "
        f"the measured repeats{watts}, as {len(capped)} of the run's GPUs: usual under full load, "
        "and a reason why a heavier step may run at a lower clock.",
        tuple(_evidence(gpu) for gpu in capped),
        "Nothing, as long as runs that are compared have the same cap.",
    )


def gpu_lost(case: Case) -> Finding | None:
    """A GPU that stopped answering during the run."""
    lost = [gpu for gpu in case.gpus if gpu.lost]
    if not lost:
        return None
    names = ", ".join(str(gpu.index) for gpu in lost)
    return Finding(
        "gpu-lost",
        "high",
        "certain",
        f"GPU {names} stopped answering during the run (NVML: GPU is lost).",
        tuple(_evidence(gpu) for gpu in lost),
        "Look for Xid messages in the kernel's log; the GPU needs a reset or the machine a restart "
        "before anything is measured on it.",
    )


def gpu_memory_errors(case: Case) -> Finding | None:
    """Uncorrected errors of GPU memory counted during the run."""
    bad = [gpu for gpu in case.gpus if gpu.new_ecc]
    if not bad:
        return None
    said = ", ".join(f"{gpu.new_ecc} on GPU {gpu.index}" for gpu in bad)
    return Finding(
        "gpu-memory-errors",
        "high",
        "certain",
        f"Uncorrected memory errors were counted during the run: {said}; outputs and figures of "
        "this run cannot be relied on.",
        tuple(_evidence(gpu) for gpu in bad),
        "Reset the GPU and measure again; where it comes back, have the GPU replaced.",
    )


def _part(count: int, gpu: GpuSummary) -> float:
    return count / gpu.samples if gpu.samples else 0.0


def _of(count: int, gpu: GpuSummary) -> str:
    return f"{count} of {gpu.samples} samples ({_part(count, gpu):.0%})"


def _evidence(gpu: GpuSummary) -> Evidence:
    said = [f"GPU {gpu.index} {gpu.name}", f"{gpu.samples} samples in the repeats"]
    said += [f"{words}: {count}" for words, count in gpu.throttled.items()]
    for name, value, unit in (
        ("power cap", gpu.power_capped_samples or None, ""),
        ("hottest", gpu.temp_c_max, " °C"),
        ("clock, mean", gpu.sm_mhz_mean, " MHz"),
        ("power, mean", gpu.power_w_mean, " W"),
        ("new memory errors", gpu.new_ecc or None, ""),
    ):
        if value is not None:
            said.append(f"{name}: {value:g}{unit}")
    return Evidence(SOURCE, None, "; ".join(said))
