"""A fake NVML built with cc and loaded by the real pynvml, and the GPUs that it tells of."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pynvml
import pytest

SOURCE = Path(__file__).resolve().parents[1] / "data" / "nvml" / "fake_nvml.c"


class FakeGpus:
    """The state file behind the library; each change is seen by all processes at their next
    call."""

    def __init__(self, path: Path, library: Path, count: int = 8) -> None:
        self.path, self.library = path, library
        self.rows: list[dict[str, Any]] = [{"used": 400} for _ in range(count)]
        self.processes: list[tuple[int, int, int]] = []  # GPU, pid, MiB
        self.write()

    def uuid(self, index: int) -> str:
        return f"GPU-{index:08d}-1111-2222-3333-444444444444"

    def set(self, index: int, **values: Any) -> None:
        self.rows[index].update(values)
        self.write()

    def use(self, index: int, pid: int, mb: int) -> None:
        """A process that holds memory for as long as it lives."""
        self.processes.append((index, pid, mb))
        self.write()

    def drain(self, index: int, *, used: int, seconds: float, after: float = 0.0) -> None:
        """Memory that a driver is still freeing."""
        self.set(index, used=used, drain_from=time.time() + after, drain=used / seconds)

    def write(self) -> None:
        lines = [
            " ".join(["gpu", str(n), *(f"{name}={value}" for name, value in row.items())])
            for n, row in enumerate(self.rows)
        ]
        lines += [f"proc {gpu} {pid} {mb}" for gpu, pid, mb in self.processes]
        fresh = self.path.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        fresh.replace(self.path)

    @property
    def env(self) -> dict[str, str]:
        """For a process of its own: there the library is found by its name, as a driver's is."""
        return {
            **os.environ,
            "FAKE_NVML": str(self.path),
            "LD_LIBRARY_PATH": str(self.library.parent),
        }


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path, SOURCE], check=True
    )
    return path


@pytest.fixture
def fake_gpus(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    """Eight idle GPUs, and a folder of their own for the locks."""
    found = FakeGpus(tmp_path / "gpus.txt", nvml_library)
    monkeypatch.setenv("FAKE_NVML", str(found.path))
    monkeypatch.setenv("SPECDEBUG_GPU_LOCKS", str(tmp_path / "locks"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    # In this process by its path, so that no other test finds it by its name.
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(nvml_library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return found
