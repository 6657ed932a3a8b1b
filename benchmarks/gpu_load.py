"""A process that loads one GPU on command, as somebody else's would; it measures only its own rate.

    python benchmarks/gpu_load.py

Reads one command a line and answers each with one line of JSON: `hold MIB`, `idle SECONDS`, and
`matmul`, `copy`, `small` with SECONDS: arithmetic, memory bandwidth, and a CUDA graph of some
hundred short kernels, which is what decoding with a small batch looks like. Needs torch with CUDA.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

SIDE = 8192  # of the bf16 matrices
COPIED = 4 << 30  # bytes, far more than a cache holds
SMALL_KERNELS = 200


class Load:
    """Buffers and the captured graph, made at first use."""

    def __init__(self) -> None:
        self._held: list[Any] = []
        self._made: dict[str, tuple[Callable[[], object], float, str]] = {}

    def hold(self, mib: int) -> dict[str, Any]:
        self._held.append(torch.ones(mib << 20, dtype=torch.uint8, device="cuda"))
        torch.cuda.synchronize()
        return {"held_mib": mib}

    def run(self, what: str, seconds: float) -> dict[str, Any]:
        """Repeat one kind of work for so long; what it got through a second, by CUDA's events."""
        if what not in self._made:
            self._made[what] = getattr(self, f"_{what}")()
            for _ in range(3):
                self._made[what][0]()
            torch.cuda.synchronize()
        work, amount, unit = self._made[what]
        event: Any = torch.cuda.Event  # which has no types
        begin, end = (event(enable_timing=True) for _ in range(2))
        until = time.monotonic() + seconds
        begin.record()
        count = 0
        while time.monotonic() < until:
            # Some at a time, so that the queue is never empty and never minutes long.
            for _ in range(8):
                work()
            count += 8
            torch.cuda.current_stream().synchronize()
        end.record()
        end.synchronize()
        took = begin.elapsed_time(end) / 1000
        return {"rate": count * amount / took, "unit": unit, "seconds": took}

    def _matmul(self) -> tuple[Callable[[], object], float, str]:
        one, other = (
            torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2)
        )
        out = torch.empty_like(one)
        return lambda: torch.matmul(one, other, out=out), 2 * SIDE**3 / 1e12, "TFLOP/s"

    def _copy(self) -> tuple[Callable[[], object], float, str]:
        one, other = (torch.empty(COPIED, dtype=torch.uint8, device="cuda") for _ in range(2))
        one.random_()
        return lambda: other.copy_(one), 2 * COPIED / 1e12, "TB/s"

    def _small(self) -> tuple[Callable[[], object], float, str]:
        x = torch.randn(16, 4096, device="cuda")
        make_stream: Any = torch.cuda.Stream
        stream = make_stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                x.mul_(1.0001)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(SMALL_KERNELS):
                x.mul_(1.0001)
                x.clamp_(-3, 3)
        return graph.replay, 2.0 * SMALL_KERNELS, "kernels/s"


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("gpu_load: torch sees no CUDA GPU here")
    load = Load()
    torch.zeros(1, device="cuda")
    print(json.dumps({"ready": torch.cuda.get_device_name(), "torch": torch.__version__}))
    sys.stdout.flush()
    for line in sys.stdin:
        what, _, amount = line.strip().partition(" ")
        if what == "hold":
            answer = load.hold(int(amount))
        elif what == "idle":
            time.sleep(float(amount))
            answer = {"seconds": float(amount)}
        else:
            answer = load.run(what, float(amount))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
