"""Kills the server under a logging client: is a row lost or doubled, and how long does `log` take?

    .venv/bin/python benchmarks/logging_outage.py [--away 60] [--rate 1000] [--json FILE]

A program logs `rate` points a second into a real server, which is killed with SIGKILL after ten
seconds, is away, comes back on the same data folder, and runs for ten more.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from ingest import ROOT, tree
from ingest_products import free_port

from specdebug.client import Client

METRICS = 5
BEFORE = AFTER = 10.0


def serve(env: dict[str, str], port: int, folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "server.log").open("ab") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "specdebug.wsgi"),
                *("-b", f"127.0.0.1:{port}", "--threads", "4", "--log-level", "warning"),
            ],
            env=env,
            cwd=ROOT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    for pid in reversed(tree(process.pid)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


def measured(away: float, rate: float) -> dict[str, Any]:
    """One outage; what arrived, and how long each call of `log` took."""
    folder = Path(tempfile.mkdtemp(prefix="outage-"))
    env = {
        **os.environ,
        "SPECDEBUG_DATA": str(folder),
        "DJANGO_SETTINGS_MODULE": "specdebug.settings",
    }
    command = [sys.executable, "-m", "django", "api_token", "--migrate"]
    told = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    port = free_port()
    server = [serve(env, port, folder)]

    def outage() -> None:
        time.sleep(BEFORE)
        kill(server[0])
        time.sleep(away)
        server[0] = serve(env, port, folder)

    spent: list[float] = []
    try:
        url = f"http://127.0.0.1:{port}"
        with Client(url, told.stdout.split()[-1], spool=folder / "spool") as sd:
            sd.connection.tries = 8
            inv = sd.investigation("outage", question="Is anything lost?")
            run = inv.run("logged")
            breaker = threading.Thread(target=outage)
            breaker.start()
            began, step = time.monotonic(), 0
            while time.monotonic() - began < BEFORE + away + AFTER:
                values = {f"m{k}": float(step * METRICS + k) for k in range(METRICS)}
                before = time.perf_counter()
                run.log(step, values)
                spent.append(time.perf_counter() - before)
                step += 1
                time.sleep(max(0.0, began + step * METRICS / rate - time.monotonic()))
            breaker.join()
            arrived = run.finish(timeout=120)
            found = [run.points(f"m{k}", most=100_000) for k in range(METRICS)]
    finally:
        kill(server[0])
    spent.sort()
    expected = list(range(step))
    return {
        "away_s": away,
        "points_sent": step * METRICS,
        "points_arrived": sum(series["total"] for series in found),
        "lost": sum(len(set(expected) - set(series["steps"])) for series in found),
        "doubled": sum(len(s["steps"]) - len(set(s["steps"])) for s in found),
        "finished": arrived,
        "log_p50_us": round(1e6 * spent[len(spent) // 2], 1),
        "log_p99_ms": round(1e3 * spent[int(len(spent) * 0.99)], 3),
        "log_max_ms": round(1e3 * spent[-1], 3),
        "load": round(os.getloadavg()[0], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--away", type=float, default=60.0, help="seconds")
    parser.add_argument("--rate", type=float, default=1000.0, help="points a second")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    found = measured(args.away, args.rate)
    print(json.dumps(found, indent=1))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
