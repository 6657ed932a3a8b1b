"""Replays the example from nothing, several times over, and prints the table of its runs.

    .venv/bin/python benchmarks/replay.py --times 3 [--json FILE]

Each time on a fresh data folder, started as bin/start starts it. Prints the seconds to ready and to
the end of the replay, and per run the mean and range over its repeats.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ARGUMENTS = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def replay(data: Path) -> dict[str, Any]:
    """One start and one replay; returns its times and its runs."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "specdebug.up", "--data", str(data), "--port", "18500"],
        cwd=ROOT,
        env={**os.environ, "SPECDEBUG_DATA": str(data)},
        stdout=subprocess.PIPE,
        text=True,
    )
    ready = None
    assert process.stdout is not None
    try:
        for line in process.stdout:
            print("   ", line.rstrip(), flush=True)
            if re.match("Ready after", line):
                ready = time.monotonic() - began
                break
        while not ended(data):
            assert process.poll() is None, "specdebug ended before its replay"
            time.sleep(0.5)
        done = time.monotonic() - began
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    return {"ready_s": ready, "replay_done_s": done, "runs": runs(data)}


def rows(data: Path, query: str, *values: Any) -> list[dict[str, Any]]:
    link = sqlite3.connect(f"file:{data / 'specdebug.sqlite3'}?mode=ro", uri=True)
    link.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in link.execute(query, values)]
    finally:
        link.close()


def ended(data: Path) -> bool:
    states = [
        row["state"] for row in rows(data, "select state from experiments_run where recorded = 0")
    ]
    return bool(states) and not {"draft", "queued", "running"} & set(states)


def runs(data: Path) -> list[dict[str, Any]]:
    found = []
    for run in rows(data, "select * from experiments_run where recorded = 0 order by number"):
        repeats = rows(data, "select * from experiments_repeat where run_id = ?", run["id"])
        config = {
            row["key"]: (row["requested"], row["effective"])
            for row in rows(
                data, "select * from experiments_configentry where run_id = ?", run["id"]
            )
            if row["key"] in ARGUMENTS
        }
        found.append(
            {
                "run": f"R{run['number']}",
                "title": run["title"],
                "state": run["state"],
                "arguments": {key: config.get(key) for key in ARGUMENTS},
                **{
                    key: [row[key] for row in repeats] for key in ("tok_s", "accept_len", "step_ms")
                },
                "outputs": sorted({row["output_sha256"][:12] for row in repeats}),
            }
        )
    return found


def spread(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    return f"{sum(known) / len(known):.2f} ({min(known):.2f}..{max(known):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    for number in range(options.times):
        with tempfile.TemporaryDirectory() as folder:
            result = replay(Path(folder))
        results.append(result)
        print(f"replay {number + 1}: ready {result['ready_s']:.1f} s, ", end="")
        print(f"done {result['replay_done_s']:.1f} s")
        for run in result["runs"]:
            asked = " ".join(
                f"{key.removeprefix('speculative_')} {value[0]}->{value[1]}"
                for key, value in run["arguments"].items()
                if value and value[0] is not None
            )
            print(
                f"  {run['run']} {run['state']:6} tok/s {spread(run['tok_s']):24} "
                f"accept {spread(run['accept_len']):18} step ms {spread(run['step_ms']):22} "
                f"outputs {','.join(run['outputs'])}  {asked}"
            )
    outputs = {output for result in results for run in result["runs"] for output in run["outputs"]}
    print(f"distinct outputs over all runs: {len(outputs)}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
