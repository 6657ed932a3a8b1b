"""GPU samples: the file, the thinning, and what the measured part says."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from specdebug.measure.gpu_samples import (
    FIELDS,
    GpuColumn,
    GpuSamples,
    GpuSummary,
    merged,
    summarise,
    thinned,
)


def column(index: int = 0, lost_at: float | None = None, **given: list[int | None]) -> GpuColumn:
    length = len(next(iter(given.values())))
    columns = {name: given.get(name, [None] * length) for name in FIELDS}
    return GpuColumn(index, f"GPU-{index}", "A GPU", columns, lost_at)


def busy(seconds: int, gpus: int) -> GpuSamples:
    """Figures that move as a real run's do, so that the size of the file means something."""
    dice = random.Random(1)
    times = [1.7e9 + n + dice.uniform(0, 0.01) for n in range(seconds)]
    ranges = {
        "util": (80, 100),
        "memory_mb": (90_000, 90_400),
        "power_w": (380, 600),
        "sm_mhz": (1_800, 2_430),
        "memory_mhz": (12_481, 12_481),
        "temp_c": (60, 80),
        "reasons": (0, 5),
        "ecc": (0, 0),
    }
    return GpuSamples(
        times,
        [
            column(
                index,
                **{name: [dice.randint(*r) for _ in range(seconds)] for name, r in ranges.items()},
            )
            for index in range(gpus)
        ],
    )


def test_the_file_gives_back_what_was_put_in() -> None:
    found = GpuSamples(
        [1.7e9, 1.7e9 + 1.01], [column(3, 1.7e9 + 1, power_w=[400, None], temp_c=[60, None])]
    )
    again = GpuSamples.unpacked(found.packed())
    assert again.gpus == found.gpus
    assert again.times == pytest.approx(found.times, abs=0.01)
    assert found.packed() == found.packed()


def test_an_hour_of_eight_gpus_takes_less_than_a_megabyte() -> None:
    assert len(busy(3600, 8).packed()) < 1_000_000


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no gzip",
        gzip.compress(b"no json", mtime=0),
        gzip.compress(b"[]", mtime=0),
        gzip.compress(json.dumps({"format": 99}).encode(), mtime=0),
        gzip.compress(b"[" * 100_000, mtime=0),
        gzip.compress(
            json.dumps(
                {
                    "format": 1,
                    "start": 0,
                    "every": 1,
                    "t": [0],
                    "gpus": [
                        {"index": 0, "uuid": "", "name": "", "lost_at": None}
                        | {name: [] for name in FIELDS}
                    ],
                }
            ).encode(),
            mtime=0,  # its name must be the same in every process
        ),
    ],
)
def test_what_is_no_such_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no GPU samples"):
        GpuSamples.unpacked(data)


def test_only_the_measured_repeats_count() -> None:
    found = GpuSamples(
        [float(t) for t in range(10)],
        [column(power_w=[50] * 3 + [400, 500] * 2 + [50] * 3, temp_c=[40] * 7 + [90] * 3)],
    )
    (gpu,) = summarise(found, [(3.0, 4.0), (4.5, 6.0)])
    assert (gpu.samples, gpu.power_w_mean, gpu.power_w_max, gpu.temp_c_max) == (4, 450.0, 500, 40)


def test_throttling_is_counted_by_reason_and_the_power_cap_apart() -> None:
    found = GpuSamples(
        [0.0, 1.0, 2.0, 3.0, 4.0],
        [column(reasons=[0x0, 0x20, 0x60, 0x4, 0x1])],
    )
    (gpu,) = summarise(found, [(0.0, 4.0)])
    assert gpu.throttled == {"software thermal slowdown": 2, "hardware thermal slowdown": 1}
    assert (gpu.throttled_samples, gpu.power_capped_samples) == (2, 1)


def test_an_idle_gpu_or_one_with_chosen_clocks_is_not_throttled() -> None:
    (gpu,) = summarise(GpuSamples([0.0, 1.0], [column(reasons=[0x1, 0x2])]), [(0.0, 1.0)])
    assert (gpu.throttled, gpu.throttled_samples, gpu.power_capped_samples) == ({}, 0, 0)


def test_errors_of_memory_are_those_of_this_run() -> None:
    (gpu,) = summarise(GpuSamples([0.0, 1.0], [column(ecc=[7, 9])]), [])
    assert gpu.new_ecc == 2
    (silent,) = summarise(GpuSamples([0.0, 1.0], [column(ecc=[None, None])]), [])
    assert silent.new_ecc is None


def test_what_a_gpu_does_not_tell_stays_unknown() -> None:
    (gpu,) = summarise(GpuSamples([0.0], [column(power_w=[None])]), [(0.0, 1.0)])
    assert (gpu.samples, gpu.power_w_mean, gpu.temp_c_max) == (0, None, None)


def test_a_summary_survives_its_json() -> None:
    (gpu,) = summarise(busy(5, 1), [(0.0, 2e9)])
    assert GpuSummary.from_json(json.loads(json.dumps(gpu.as_json()))) == gpu
    with pytest.raises(TypeError):
        GpuSummary.from_json({"index": 1})


def test_thinning_keeps_means_every_reason_and_the_last_count() -> None:
    found = GpuSamples(
        [0.0, 1.0, 2.0],
        [column(power_w=[100, 200, 300], reasons=[0x20, 0x4, 0], ecc=[0, 1, 1])],
    )
    half = thinned(found)
    assert (half.times, half.every) == ([0.0, 2.0], 2.0)
    columns = half.gpus[0].columns
    assert columns["power_w"] == [150, 300]
    assert columns["reasons"] == [0x24, 0]
    assert columns["ecc"] == [1, 1]
    assert merged("power_w", [None, None]) is None
    assert merged("power_w", [None, 5]) == 5
