"""What sampling eight GPUs costs: processor time a round, share of a core at 1 Hz, bytes an hour.

    python -m benchmarks.gpu_samples [--rounds 200] [--fake]

Asks the machine's own NVML; with --fake, or where there is none, the tests' stand-in, built with
cc, which reads a text file where a driver asks the GPU: the JSON says which one it was.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pynvml

from specdebug.measure.gpu_samples import FIELDS, GpuColumn, GpuSamples
from workers import gpus
from workers.gpus import NoGpus

SOURCE = Path(__file__).resolve().parents[1] / "tests" / "data" / "nvml" / "fake_nvml.c"


def fake(folder: Path) -> None:
    """Put the stand-in with eight GPUs in the place of NVML."""
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    state = folder / "gpus.txt"
    state.write_text("".join(f"gpu {n} used=400\n" for n in range(8)))
    os.environ["FAKE_NVML"] = str(state)
    pynvml.nvmlLib = ctypes.CDLL(str(library))


def measure(rounds: int) -> dict[str, Any]:
    with gpus.nvml() as asked:
        found = [gpu for gpu in asked.gpus() if not gpu.problem]
        wall, processor = time.perf_counter(), time.thread_time()
        for _ in range(rounds):
            rows = [asked.sample(gpu.uuid) for gpu in found]
        wall, processor = time.perf_counter() - wall, time.thread_time() - processor
    # An hour of values as they were sampled, each with 5 % of noise.
    dice = random.Random(1)
    columns = [
        GpuColumn(
            gpu.index,
            gpu.uuid,
            gpu.name,
            {
                name: [
                    None if (v := getattr(row, name)) is None else dice.randint(v - v // 20, v)
                    for _ in range(3600)
                ]
                for name in FIELDS
            },
        )
        for gpu, row in zip(found, rows, strict=True)
    ]
    hour = GpuSamples([1.7e9 + n for n in range(3600)], columns)
    return {
        "gpus": len(found),
        "rounds": rounds,
        "wall_ms_a_round": round(1000 * wall / rounds, 3),
        "processor_ms_a_round": round(1000 * processor / rounds, 3),
        "percent_of_a_core_at_1_hz": round(100 * processor / rounds, 3),
        "bytes_an_hour": len(hour.packed()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--fake", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        nvml = "the machine's"
        if not given.fake:
            try:
                with gpus.nvml():
                    pass
            except NoGpus:
                given.fake = True
        if given.fake:
            nvml = "stand-in"
            fake(Path(folder))
        print(json.dumps({"nvml": nvml, **measure(given.rounds)}, indent=1))


if __name__ == "__main__":
    main()
