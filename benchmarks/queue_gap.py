"""Where a run's time goes beside the engine: seconds from queued to the first token, and the idle
time between two queued runs. What keeping everything costs is told by `capture_cost.py`.

    python benchmarks/queue_gap.py [--runs 4] [--json FILE]

Starts specdebug on a data folder of its own, queues runs of the reference engine at once and reads
the times from the record and the engines' logs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from specdebug.reference import variants  # noqa: E402
from workers.server import Record, free_port  # noqa: E402

QUEUE = """
from experiments import dispatch, lifecycle
from workers.plan import Workload
row = lifecycle.create_investigation(title="gap", question="How long is nothing measured?")
work = Workload(repeats=1, prompts_per_repeat=2, max_new_tokens=32, warm_up_prompts=0)
args = ["--model-path", {target!r}]
runs = [
    lifecycle.add_run(investigation=row, title=str(n), server_args=args, workload=work)
    for n in range({count})
]
for run in runs:
    dispatch.queue_run(run)
"""


def gap(count: int) -> dict[str, Any]:
    """Queue `count` runs at once; seconds, median and worst."""
    with tempfile.TemporaryDirectory(prefix="specdebug-") as folder:
        env = {**os.environ, "SPECDEBUG_DATA": folder}
        argv = [sys.executable, "-m", "specdebug.up", "--data", folder, "--no-replay"]
        argv += ["--port", str(free_port())]
        process = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            if not any("Ready after" in line for line in process.stdout):
                raise SystemExit("specdebug did not become ready")
            code = QUEUE.format(target=str(variants.TARGET), count=count)
            subprocess.run(
                [sys.executable, "manage.py", "shell", "-c", code], cwd=ROOT, env=env, check=True
            )
            rows = _ended(Path(folder), count)
        finally:
            process.terminate()
            process.communicate(timeout=60)
        return _figures(rows)


def _ended(folder: Path, count: int) -> list[dict[str, Any]]:
    """The runs in the order they were measured, once all have ended."""
    begin = time.monotonic()
    told: list[str] = []
    launched: dict[int, float] = {}
    while time.monotonic() < begin + 60 * count:
        link = sqlite3.connect(f"file:{folder / 'specdebug.sqlite3'}?mode=ro", uri=True)
        link.row_factory = sqlite3.Row
        query = (
            "select r.id, r.state, r.reason, queued_at, claimed_at, ready_at, r.ended_at, r.plan, "
            "min(p.started_at) as first, max(p.started_at) as last, max(p.seconds) as seconds "
            "from experiments_run r left join experiments_repeat p on p.run_id = r.id "
            # Ours alone: the record begins with an example, whose runs are done as well.
            "where r.investigation_id = "
            "(select id from experiments_investigation where title = 'gap') "
            "group by r.id order by claimed_at"
        )
        rows = [dict(row) for row in link.execute(query)]
        link.close()
        for row in rows:
            # Kept in the run's folder as long as its server lives.
            with contextlib.suppress(OSError, ValueError):
                run = folder / "runs" / json.loads(row["plan"])["run"]
                launched[row["id"]] = Record.read(run).launched_at
        states = [row["state"] for row in rows]
        if states != told:
            print(f"after {time.monotonic() - begin:.0f} s: {', '.join(states)}", file=sys.stderr)
            told = states
        if states == ["done"] * count:
            for row in rows:
                row["launched"] = launched[row["id"]]
            return rows
        if any(row["state"] in ("failed", "lost", "cancelled") for row in rows):
            raise SystemExit(f"a run ended badly: {[dict(row)['reason'] for row in rows]}")
        time.sleep(0.2)
    raise SystemExit("the runs did not end")


def _at(text: str) -> float:
    return datetime.fromisoformat(text + "+00:00").timestamp()


def _figures(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Seconds. The server's own start is from its launch to ready; a run begins when it is queued,
    or when the one before it has ended."""
    ends = [_at(row["ended_at"]) for row in rows]
    idle = [_at(row["claimed_at"]) - end for row, end in zip(rows[1:], ends, strict=False)]
    begins = [_at(rows[0]["queued_at"]), *ends[:-1]]
    own = [_at(row["ready_at"]) - row["launched"] for row in rows]
    first = [_at(row["first"]) - begin for row, begin in zip(rows, begins, strict=True)]
    last = [_at(row["last"]) + row["seconds"] for row in rows]
    return {
        "runs": len(rows),
        "idle_from_end_to_next_claim_s": _both(idle),
        "servers_own_start_s": _both(own),
        "from_begin_to_first_request_beyond_own_start_s": _both(
            [all_ - start for all_, start in zip(first, own, strict=True)]
        ),
        "of_the_first_run_s": round(first[0] - own[0], 2),
        "from_last_answer_to_end_s": _both([e - one for e, one in zip(ends, last, strict=True)]),
    }


def _both(values: Sequence[float]) -> dict[str, float]:
    return {"median": round(statistics.median(values), 2), "worst": round(max(values), 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    # Ended early, it stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found = gap(args.runs)
    print(json.dumps(found, indent=1))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
