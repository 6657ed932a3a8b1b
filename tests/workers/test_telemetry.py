"""The samples of a run's GPUs, taken in a thread from a fake NVML."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest

from specdebug.measure.gpu_samples import GpuSamples
from tests.workers.nvml import FakeGpus
from workers import gpus, telemetry
from workers.telemetry import Telemetry


def all_of_them() -> list[gpus.Gpu]:
    with gpus.nvml() as asked:
        return asked.gpus()


def until(done: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def test_each_gpu_is_sampled_at_each_moment_and_changes_are_seen(fake_gpus: FakeGpus) -> None:
    with Telemetry(all_of_them(), every=0.02) as running:
        until(lambda: len(running.samples().times) >= 3)
        fake_gpus.set(6, power=599, temp=88, reasons=0x20)
        until(lambda: running.samples().gpus[6].columns["power_w"][-1:] == [599])
    found = running.samples()
    assert len(found.gpus) == 8
    assert found.gpus[6].columns["temp_c"][0] == 60
    assert found.gpus[6].columns["temp_c"][-1] == 88
    assert found.gpus[6].columns["reasons"][-1] == 0x20
    assert found.gpus[0].columns["power_w"][-1] == 400
    gaps = [b - a for a, b in zip(found.times, found.times[1:], strict=False)]
    assert min(gaps) > 0


def test_a_lost_gpu_has_gaps_and_the_others_go_on(fake_gpus: FakeGpus) -> None:
    with Telemetry(all_of_them()[:2], every=0.02) as running:
        until(lambda: len(running.samples().times) >= 2)
        fake_gpus.set(0, lost=1)
        until(lambda: running.samples().gpus[0].lost_at is not None)
        seen = len(running.samples().times)
        until(lambda: len(running.samples().times) >= seen + 2)
    lost, well = running.samples().gpus
    assert lost.columns["power_w"][-2:] == [None, None]
    assert well.columns["power_w"][-2:] == [400, 400]
    assert well.lost_at is None


def test_without_nvml_there_are_no_samples_and_no_file(
    fake_gpus: FakeGpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = all_of_them()
    monkeypatch.setenv("FAKE_NVML", "/no/such/file")
    with Telemetry(chosen, every=0.02) as running:
        time.sleep(0.1)
    assert not running.keep(tmp_path / "samples")
    assert not (tmp_path / "samples").exists()


def test_a_fault_of_ours_in_the_thread_costs_the_rest_of_the_samples_alone(
    fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus.Nvml, "sample", lambda self, uuid: 1 / 0)
    with Telemetry(all_of_them(), every=0.02) as running:
        until(lambda: not running._thread.is_alive())
    assert running.samples().times == []


def test_what_is_kept_is_what_was_sampled(fake_gpus: FakeGpus, tmp_path: Path) -> None:
    with Telemetry(all_of_them(), every=0.02) as running:
        until(lambda: len(running.samples().times) >= 3)
    assert running.keep(tmp_path / "samples")
    again = GpuSamples.unpacked((tmp_path / "samples").read_bytes())
    assert again.gpus == running.samples().gpus


def test_a_driver_that_hangs_does_not_hold_up_the_end(
    fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "END_SECONDS", 0.1)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetPowerUsage", lambda handle: time.sleep(2) or 0)
    begin = time.monotonic()
    with Telemetry(all_of_them()[:1], every=0.02) as running:
        time.sleep(0.1)
    assert time.monotonic() - begin < 1.5
    running._thread.join()


def test_a_long_run_is_thinned_instead_of_growing(
    fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "MOST_TIMES", 8)
    with Telemetry(all_of_them()[:1], every=0.005) as running:
        until(lambda: running.samples().every >= 0.02)
        until(lambda: len(running.samples().times) >= 6)
    found = running.samples()
    assert 4 <= len(found.times) <= 8
    assert len(found.gpus[0].columns["power_w"]) == len(found.times)
    assert set(found.gpus[0].columns["power_w"]) == {400}
