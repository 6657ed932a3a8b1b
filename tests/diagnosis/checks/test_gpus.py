"""What the samples of the GPUs say, on both sides of each threshold."""

from __future__ import annotations

from typing import Any

from specdebug.diagnosis.case import Case
from specdebug.diagnosis.checks import gpus
from specdebug.diagnosis.diagnose import diagnose
from specdebug.measure.gpu_samples import GpuSummary


def gpu(index: int = 0, **changes: Any) -> GpuSummary:
    values: dict[str, Any] = {
        "index": index,
        "uuid": f"GPU-{index}",
        "name": "A GPU",
        "samples": 200,
        "util_mean": 95.0,
        "memory_mb_max": 90_000,
        "power_w_mean": 590.0,
        "power_w_max": 600,
        "sm_mhz_mean": 2_400.0,
        "sm_mhz_max": 2_430,
        "temp_c_mean": 70.0,
        "temp_c_max": 75,
        "throttled": {},
        "throttled_samples": 0,
        "power_capped_samples": 0,
        "new_ecc": 0,
        "lost": False,
    }
    return GpuSummary(**{**values, **changes})


def held(count: int, **changes: Any) -> GpuSummary:
    reason = {"hardware thermal slowdown": count} if count else {}
    return gpu(**{"throttled": reason, "throttled_samples": count, **changes})


def test_heat_that_held_a_gpu_back_is_told_with_its_figures() -> None:
    found = gpus.gpu_throttled(
        Case(gpus=(gpu(0), held(41, index=3, temp_c_max=91, sm_mhz_mean=900.0)))
    )
    assert found is not None
    assert (found.severity, found.confidence) == ("high", "certain")
    assert found.statement == (
        "GPU 3 was held back in 41 of 200 samples (20%) of the measured repeats by hardware "
        "thermal slowdown, up to 91 °C, 900 MHz on average against 2,400 MHz of those that were "
        "not: the figures are those of a throttled machine."
    )
    assert "hardware thermal slowdown: 41" in found.evidence[0].text


def test_less_than_one_sample_in_a_hundred_is_no_fault() -> None:
    assert gpus.gpu_throttled(Case(gpus=(held(1),))) is None
    assert gpus.gpu_throttled(Case(gpus=(held(1, samples=20),))) is None  # a single one: chance
    found = gpus.gpu_throttled(Case(gpus=(held(2),)))
    assert found is not None
    assert found.severity == "medium"
    assert gpus.gpu_throttled(Case(gpus=(held(19),))).severity == "medium"  # type: ignore[union-attr]
    assert gpus.gpu_throttled(Case(gpus=(held(20),))).severity == "high"  # type: ignore[union-attr]


def test_the_power_cap_is_a_note_from_half_of_the_samples_on() -> None:
    assert gpus.gpu_throttled(Case(gpus=(gpu(power_capped_samples=99),))) is None
    found = gpus.gpu_throttled(Case(gpus=(gpu(power_capped_samples=100), gpu(1))))
    assert found is not None
    assert found.severity == "info"
    assert "100 of 200 samples (50%) of the measured repeats at 590 W on average" in found.statement


def test_a_gpu_without_samples_says_nothing() -> None:
    assert gpus.gpu_throttled(Case(gpus=(held(0, samples=0, sm_mhz_mean=None),))) is None


def test_a_lost_gpu_and_errors_of_memory_are_named_by_their_number() -> None:
    well = Case(gpus=(gpu(0), gpu(1, new_ecc=None)))
    assert gpus.gpu_lost(well) is None
    assert gpus.gpu_memory_errors(well) is None
    bad = Case(gpus=(gpu(0), gpu(4, lost=True, new_ecc=2)))
    assert "GPU 4 stopped answering" in gpus.gpu_lost(bad).statement  # type: ignore[union-attr]
    errors = gpus.gpu_memory_errors(bad)
    assert errors is not None
    assert "2 on GPU 4" in errors.statement


def test_without_samples_the_checks_are_listed_as_untried() -> None:
    untried = dict(diagnose(Case()).untried)
    assert {"gpu-throttled", "gpu-lost", "gpu-memory-errors"} <= untried.keys()
    assert "gpu-throttled" not in dict(diagnose(Case(gpus=(gpu(),))).untried)
