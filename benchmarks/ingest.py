"""Taking in runs from scripts, and finding them again: ours beside MLflow and trackio, in one run.

    .venv/bin/python benchmarks/ingest.py [--mlflow BIN] [--trackio BIN] [--json FILE]

BIN is the bin folder of an environment that has the peer (pip install mlflow / trackio); without it
the peer is left out. Every product gets the same work from one client: create a run with 10
parameters, 5 metrics x 200 points, finish; then order 10,000 runs by a metric with a metric filter.
Each server is one worker on SQLite on this machine. On a busy machine compare CPU a call (of the
server's processes, and of the client), not the wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).parent))
METRICS = ("tok_s", "accept_len", "ttft_ms", "itl_ms", "gpu_util")
STEPS = 200
# Seconds for one row of calls; MLflow's ordered search alone takes eight a call.
LONGEST = 12.0
TICK = os.sysconf("SC_CLK_TCK")


def params(i: int) -> dict[str, str]:
    """Ten parameters of run i, the same for every product."""
    dice = random.Random(i)
    return {
        "num_steps": str(dice.choice([1, 3, 5, 7, 15])),
        "topk": str(dice.choice([1, 4, 8])),
        "num_draft_tokens": str(dice.choice([2, 4, 8, 16])),
        "tp": "8",
        "model": "Kimi-K2.5",
        "draft": f"eagle3-{dice.randrange(20)}",
        "quant": dice.choice(["none", "fp8"]),
        "backend": dice.choice(["fa3", "flashinfer"]),
        "cuda_graph": dice.choice(["0", "1"]),
        "seed": str(i),
    }


def points(i: int) -> list[tuple[int, dict[str, float]]]:
    """200 rows of 5 metrics of run i."""
    dice = random.Random(i)
    base = [40 + dice.random() * 60, 1 + dice.random() * 3, 100 + dice.random() * 400]
    base += [8 + dice.random() * 12, 60 + dice.random() * 40]
    return [
        (
            step,
            {
                name: value * (1 + (dice.random() - 0.5) * 0.1)
                for name, value in zip(METRICS, base, strict=True)
            },
        )
        for step in range(STEPS)
    ]


def last_values(i: int) -> dict[str, float]:
    return points(i)[-1][1]


# ---- measuring -----------------------------------------------------------------------------------


def tree(pid: int) -> list[int]:
    """The process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(path.name))
    found, left = [], [pid]
    while left:
        one = left.pop()
        found.append(one)
        left += parents.get(one, [])
    return found


def cpu_seconds(pid: int) -> float:
    total = 0.0
    for one in tree(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / TICK
    return total


def measured(
    work: Callable[[Any], Any], items: Iterable[Any], pid: int, most: float = LONGEST
) -> dict[str, float]:
    """Work over items one by one: calls, calls per second of wall time, CPU ms a call; a product
    that needs more than `most` seconds for them does fewer, which `n` says."""
    server, client, began = cpu_seconds(pid), time.process_time(), time.perf_counter()
    n = 0
    for item in items:
        work(item)
        n += 1
        if time.perf_counter() - began > most:
            break
    wall = time.perf_counter() - began
    return {
        "n": n,
        "per_s": n / wall,
        "server_cpu_ms": 1000 * (cpu_seconds(pid) - server) / n,
        "client_cpu_ms": 1000 * (time.process_time() - client) / n,
    }


def middle(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """The median of each figure over repetitions."""
    return {key: round(statistics.median(row[key] for row in rows), 3) for key in rows[0]}


class Product:
    """One product under test: started, filled, asked, stopped."""

    name = ""
    version = ""
    process: subprocess.Popen[bytes]

    def launch(self, command: Sequence[str], env: dict[str, str], folder: Path) -> None:
        with (folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                list(command),
                env={**os.environ, **env},
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        """Stop what was started, and what it started."""
        for pid in reversed(tree(self.process.pid)):
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                continue
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def create(self, i: int) -> Any: ...
    def log(self, run: Any, i: int) -> None: ...
    def finish(self, run: Any) -> None: ...
    def fill(self, count: int) -> None: ...
    def ordered(self) -> int: ...


def bench(product: Product, *, reps: int, n: int, big: int) -> dict[str, Any]:
    """All figures of one product."""
    pid = product.process.pid
    product.create(0)  # the first call loads what every later one has
    product.log(product.create(1), 1)
    creates, logs, fulls = [], [], []
    for _ in range(reps):
        made: list[Any] = []
        creates.append(measured(lambda i, made=made: made.append(product.create(i)), range(n), pid))
        logs.append(
            measured(lambda i, made=made: product.log(made[i], i), range(len(made) // 2), pid)
        )

        def full(i: int) -> None:
            run = product.create(i)
            product.log(run, i)
            product.finish(run)

        fulls.append(measured(full, range(n // 2), pid))
    product.fill(big)
    assert product.ordered() == 50
    searches = [measured(lambda _: product.ordered(), range(10), pid) for _ in range(reps)]
    points_a_call = len(METRICS) * STEPS
    log = middle(logs)
    return {
        "version": product.version,
        "create_run": middle(creates),
        f"log_{points_a_call}_points": log | {"points_per_s": round(log["per_s"] * points_a_call)},
        "whole_run": middle(fulls),
        f"ordered_search_{big}": middle(searches),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mlflow", type=Path, metavar="BIN")
    parser.add_argument("--trackio", type=Path, metavar="BIN")
    parser.add_argument("--skip-ours", action="store_true")
    parser.add_argument("--reps", type=int, default=2)
    parser.add_argument("--n", type=int, default=40)
    parser.add_argument("--big", type=int, default=10_000)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    from ingest_products import MLflow, Ours, Trackio

    products: list[Callable[[], Product]] = []
    if not args.skip_ours:
        products.append(Ours)
    if args.mlflow:
        products.append(lambda: MLflow(args.mlflow))
    if args.trackio:
        products.append(lambda: Trackio(args.trackio))
    found: dict[str, Any] = {
        "at": time.strftime("%Y-%m-%d %H:%M"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
    }
    for make in products:
        product = make()
        try:
            found[product.name] = bench(product, reps=args.reps, n=args.n, big=args.big)
        finally:
            product.stop()
        print(json.dumps({product.name: found[product.name]}, indent=1), flush=True)
    found["load"] = round(os.getloadavg()[0], 2)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
