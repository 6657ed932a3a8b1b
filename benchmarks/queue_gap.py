"""Where a run's time goes beside the engine: seconds from queued to the first token, the idle time
between two queued runs, and what keeping everything costs in throughput.

    python benchmarks/queue_gap.py [--runs 4] [--json FILE]
    python benchmarks/queue_gap.py --capture [--rounds 6] [--json FILE]

The first starts specdebug on a data folder of its own, queues runs of the reference engine at once
and reads the times from the record and the engines' logs. The second serves the reference engine
once and measures the same prompts in turns, with all that a worker keeps and with a bare client.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from specdebug.reference import variants  # noqa: E402
from workers import engines, load, measuring  # noqa: E402
from workers.plan import Deadlines, RunPlan, Workload  # noqa: E402
from workers.prompt_files import read_prompts  # noqa: E402
from workers.server import Record, Server, free_port  # noqa: E402

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


# ---- from queued to the first token, and between two runs ----------------------------------------


def gap(count: int) -> dict[str, Any]:
    """Queue `count` runs at once; seconds, median and worst."""
    with tempfile.TemporaryDirectory(prefix="specdebug-") as folder:
        env = {**os.environ, "SPECDEBUG_DATA": folder}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        argv = [sys.executable, "-m", "specdebug.up", "--data", folder, "--no-replay"]
        process = subprocess.Popen(
            [*argv, "--port", str(port)], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
        )
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


# ---- what keeping costs --------------------------------------------------------------------------


def capture(rounds: int) -> dict[str, Any]:
    """tok/s with all that is kept of a request and with a client that keeps nothing, in turns."""
    draft = variants.DRAFT
    args = (
        *("--model-path", str(variants.TARGET), "--speculative-algorithm", "EAGLE3"),
        *("--speculative-draft-model-path", str(draft), "--speculative-num-steps", "3"),
        *("--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"),
    )
    engine = engines.engine("reference")
    with tempfile.TemporaryDirectory(prefix="specdebug-") as folder:
        port = free_port()
        work = Workload(repeats=1, prompts_per_repeat=4, max_new_tokens=48)
        plan = RunPlan("ab", "reference", args, folder, workload=work)
        server = Server.launch(
            engine.command(args, host="127.0.0.1", port=port),
            engines.environment(engine, {}),
            Path(folder),
            "ab",
        )
        try:
            url = f"http://127.0.0.1:{port}"
            quiet: Callable[[str], None] = lambda _: None  # noqa: E731
            server.wait_ready(url, Deadlines(), on_phase=quiet, should_stop=lambda: "")
            client = load.Client(url)
            prompts = read_prompts("stdlib")
            kept: list[tuple[float, float]] = []
            bare: list[tuple[float, float]] = []
            for number in range(rounds + 1):
                sides = [(_kept, kept), (_bare, bare)]
                for side, into in sides if number % 2 else sides[::-1]:
                    client.flush_cache()
                    tokens, seconds, used = side(plan, prompts, client)
                    if number:  # the first round warms up
                        into.append((tokens / seconds, used / seconds))
            client.close()
        finally:
            server.stop(5)
    ratios = sorted(a / b - 1 for (a, _), (b, _) in zip(kept, bare, strict=True))
    # Of the median, from the order of the pairs alone: a busy moment spoils a pair, not the figure.
    beyond = max(int(stats.binom.ppf(0.025, len(ratios), 0.5)) - 1, 0)
    shares = [statistics.fmean(used for _, used in side) for side in (kept, bare)]
    return {
        "rounds": rounds,
        "kept_tok_s": round(statistics.fmean(a for a, _ in kept), 2),
        "bare_tok_s": round(statistics.fmean(b for b, _ in bare), 2),
        "change_percent": round(100 * statistics.median(ratios), 2),
        "interval_95_percent": [round(100 * ratios[i], 2) for i in (beyond, -1 - beyond)],
        # Of the client's own processor time, in per cent of the measured time: with one request at
        # a time what it uses more is what the throughput loses, whatever else the machine does.
        "client_cpu_kept_percent": round(100 * shares[0], 3),
        "client_cpu_bare_percent": round(100 * shares[1], 3),
        "client_cpu_more_percent": round(100 * (shares[0] - shares[1]), 3),
    }


def _kept(plan: RunPlan, prompts: Any, client: load.Client) -> tuple[int, float, float]:
    """One repeat as a worker measures it, requests written down: tokens, seconds, CPU seconds."""
    own = measuring.Measuring(
        replace(plan, workload=replace(plan.workload, warm_up_prompts=0)),
        prompts,
        client,
        tell=lambda *_: None,
        should_stop=lambda: "",
        died=lambda: "",
    )
    before = time.process_time()
    own.measure()
    used = time.process_time() - before
    # The seconds that make the tok/s: what is asked before and after the requests is in none.
    repeat = own.repeats[0]
    return sum(r.completion_tokens for r in repeat.requests), repeat.seconds, used


def _bare(plan: RunPlan, prompts: Any, client: load.Client) -> tuple[int, float, float]:
    """The same prompts by a plain HTTP client that reads the answer and counts the tokens."""
    import httpx

    work = plan.workload
    body = {"max_new_tokens": work.max_new_tokens, "temperature": 0.0, "ignore_eos": True}
    tokens = 0
    with httpx.Client(base_url=client.url, timeout=60, trust_env=False) as plain:
        begin, before = time.perf_counter(), time.process_time()
        for number in range(work.prompts_per_repeat):
            prompt = prompts.prompts[number % len(prompts.prompts)]
            answer = plain.post("/generate", json={**prompt.body, "sampling_params": body})
            found = re.search(r'"completion_tokens": ?(\d+)', answer.text)
            tokens += int(found[1]) if found else 0
        seconds, used = time.perf_counter() - begin, time.process_time() - before
    return tokens, seconds, used


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--capture", action="store_true")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    # Ended early, it stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found = capture(args.rounds) if args.capture else gap(args.runs)
    print(json.dumps(found, indent=1))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
