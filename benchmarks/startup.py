"""Times how long `specdebug check`, `preflight` and `explain` take from start to end; JSON out.

    python -m benchmarks.startup [--times 10]

Each command runs in a fresh interpreter on a small real input (a server log, a launch command, a
code), turn about with `python -c pass` and `python -c "import numpy"`, which bound it from below.
Median over the repeats, with the smallest and the largest; wall-clock and processor seconds. One
run of each is not counted: it leaves files in the page cache and modules as bytecode (in a
temporary folder), as an installation by pip does.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET = 0.5  # seconds, of the three commands
CASE = Path(__file__).parent.parent / "tests/data/cases/01-more-draft-tokens-than-steps"
COMMAND = (
    "python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 16"
)
SPECDEBUG = [sys.executable, "-m", "specdebug.client.cli"]
RUNS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import numpy": [sys.executable, "-c", "import numpy"],
    "check": [*SPECDEBUG, "check", str(CASE / "command.txt"), str(CASE / "server.log")],
    "preflight": [*SPECDEBUG, "preflight", "--", *COMMAND.split()],
    "explain": [*SPECDEBUG, "explain", "dead-draft"],
}
EXITS = {"check": 1, "preflight": 1}  # both inputs hold a fault


def once(name: str, env: dict[str, str]) -> tuple[float, float]:
    """Wall-clock and processor seconds of one run; SystemExit when it does not end as it should."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(
        RUNS[name], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != EXITS.get(name, 0):
        raise SystemExit(f"{name} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Measure and print; 1 when one of the three commands misses the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    times = parser.parse_args().times
    rows: dict[str, list[tuple[float, float]]] = {name: [] for name in RUNS}
    with tempfile.TemporaryDirectory(prefix="specdebug-bytecode-") as folder:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPYCACHEPREFIX"] = folder
        for turn in range(times + 1):
            for name in RUNS:
                row = once(name, env)
                if turn:
                    rows[name].append(row)
    report = {}
    for name, measured in rows.items():
        wall, cpu = [w for w, _ in measured], [c for _, c in measured]
        report[name] = {
            "seconds": round(statistics.median(wall), 3),
            "low": round(min(wall), 3),
            "high": round(max(wall), 3),
            "cpu_seconds": round(statistics.median(cpu), 3),
            "times": len(measured),
        }
    missed = [n for n in ("check", "preflight", "explain") if report[n]["seconds"] >= TARGET]
    json.dump({"target_seconds": TARGET, "missed": missed, "runs": report}, sys.stdout, indent=1)
    print()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
