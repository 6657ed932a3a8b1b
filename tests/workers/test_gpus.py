"""The machine's GPUs through the real pynvml on a fake NVML library."""

from __future__ import annotations

import os
import subprocess
import sys

import pynvml
import pytest

from tests.workers.nvml import FakeGpus
from workers import gpus
from workers.gpus import GpuLost, NoGpus

ROOT_CODE = (
    "from workers import gpus\n"
    "try:\n"
    "    with gpus.nvml() as asked: print(len(asked.gpus()))\n"
    "except gpus.NoGpus as no: print('none' if no.none else no.reason)\n"
)


def look() -> list[gpus.Gpu]:
    with gpus.nvml() as asked:
        return asked.gpus()


def test_eight_gpus_are_told_with_name_and_memory(fake_gpus: FakeGpus) -> None:
    found = look()
    assert [gpu.index for gpu in found] == list(range(8))
    assert found[3].uuid == fake_gpus.uuid(3)
    assert found[3].name == "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    assert (found[3].total_mb, found[3].used_mb, found[3].free_mb) == (97887, 400, 97487)
    assert not any(gpu.processes or gpu.mig or gpu.problem for gpu in found)
    assert gpus.names(found) == "8 × NVIDIA RTX PRO 6000 Blackwell Server Edition"


def test_a_process_of_its_own_finds_the_library_by_its_name(
    fake_gpus: FakeGpus,
) -> None:
    def count(env: dict[str, str]) -> str:
        return subprocess.check_output([sys.executable, "-c", ROOT_CODE], env=env, text=True)

    assert count(fake_gpus.env) == "8\n"
    assert count({**fake_gpus.env, "FAKE_NVML": ""}) == "none\n"  # a library and no driver


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="this machine has a driver")  # noqa: PTH110
def test_a_machine_without_a_driver_has_none_and_that_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    with pytest.raises(NoGpus) as no:
        look()
    assert no.value.none


def test_who_computes_on_a_gpu_is_told_by_pid_name_and_user(
    fake_gpus: FakeGpus,
) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            fake_gpus.use(5, other.pid, 40_000)
            (process,) = look()[5].processes
            assert (process.pid, process.name, process.memory_mb) == (other.pid, "sleep", 40_000)
            assert f"process {other.pid} (sleep) of user " in str(process)
            assert "40,000 MB" in str(process)
            assert look()[5].used_mb == 40_400
        finally:
            other.kill()
    assert look()[5].processes == ()


def test_a_gpu_off_the_bus_is_in_the_list_with_its_problem(
    fake_gpus: FakeGpus,
) -> None:
    with gpus.nvml() as asked:
        asked.gpus()
        assert asked.sample(fake_gpus.uuid(2)).power_w == 400
        fake_gpus.set(2, lost=1)
        with pytest.raises(GpuLost, match="fallen off the bus"):
            asked.sample(fake_gpus.uuid(2))
        assert "fallen off the bus" in asked.gpus()[2].problem
        assert asked.sample(fake_gpus.uuid(3)).power_w == 400


def test_an_older_driver_tells_the_same_by_its_older_names(
    fake_gpus: FakeGpus,
) -> None:
    fake_gpus.set(0, old=1, reasons=0x20)
    assert look()[0].total_mb == 97887
    with gpus.nvml() as asked:
        assert asked.sample(fake_gpus.uuid(0)).reasons == 0x20


def test_what_a_gpu_does_not_tell_is_not_known_and_the_rest_is(
    fake_gpus: FakeGpus,
) -> None:
    fake_gpus.set(0, ecc=-1)
    with gpus.nvml() as asked:
        found = asked.sample(fake_gpus.uuid(0))
    assert found.ecc is None
    assert (found.util, found.power_w, found.temp_c, found.sm_mhz) == (90, 400, 60, 2400)


def test_the_record_gets_driver_names_and_the_longest_link(
    fake_gpus: FakeGpus,
) -> None:
    with gpus.nvml() as asked:
        assert asked.facts(asked.gpus()) == {
            "nvidia driver": "580.65.06",
            "cuda of the driver": "13.0",
            "gpus": "8 × NVIDIA RTX PRO 6000 Blackwell Server Edition",
            "gpu topology": "one PCIe switch",
        }


def test_cuda_visible_devices_chooses_by_number_and_by_uuid(
    fake_gpus: FakeGpus,
) -> None:
    found = look()

    def indices(visible: str | None) -> list[int]:
        return [gpu.index for gpu in gpus.pick(found, visible)]

    assert indices(None) == list(range(8))
    assert indices("") == []
    assert indices("6, 1") == [6, 1]
    assert indices(f"{fake_gpus.uuid(4)},GPU-00000002") == [4, 2]
    assert indices("3,3") == [3]


@pytest.mark.parametrize(
    ("visible", "why"),
    [("8", "names no GPU"), ("GPU-0", "more than one"), ("MIG-abc", "MIG"), ("1,", "empty entry")],
)
def test_what_names_no_gpu_is_refused_and_says_which_there_are(
    fake_gpus: FakeGpus,
    visible: str,
    why: str,
) -> None:
    with pytest.raises(ValueError, match=why):
        gpus.pick(look(), visible)
