"""Server time of the pages over a large record: p50 and p95, queries, bytes.

    .venv/bin/python benchmarks/fill.py --data DIR --investigations 1000 --runs 10000
    .venv/bin/python benchmarks/pages_load.py --data DIR --times 40 [--json FILE]

In one process through Django's whole stack (middleware, login, templates), without a network. Each
time another investigation of the record is asked for, so that no cache answers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def setup(data: Path) -> None:
    os.environ["SPECDEBUG_DATA"] = str(data)
    os.environ["DJANGO_SETTINGS_MODULE"] = "specdebug.settings"
    os.environ.setdefault("SPECDEBUG_LOG_LEVEL", "ERROR")
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()


def pages() -> dict[str, Callable[[int], str]]:
    """Address by name and turn."""
    from experiments.models import Investigation

    slugs = list(Investigation.objects.order_by("-pk").values_list("slug", flat=True)[:500])

    def slug(turn: int) -> str:
        return slugs[(turn * 7919) % len(slugs)]

    def compare(turn: int) -> str:
        return "/compare/?" + "&".join(f"run={slug(turn)}/R{n}" for n in range(8))

    return {
        "home": lambda turn: f"/?page={1 + turn % 5}",
        "home, all": lambda turn: f"/?state=all&page={1 + turn}",
        "findings": lambda turn: f"/findings/?page={1 + turn % 5}",
        "search, words": lambda turn: f"/search/?q=steps+{turn}",
        "search, rare words": lambda turn: f"/search/?q=nothing-like-{turn}",
        "search, figures": lambda turn: f"/search/?q=metrics.tok_s+%3E+{60 + turn}",
        "search, runs": lambda turn: f"/search/?kind=run&q=engine%3Dsglang&page={1 + turn}",
        "search, arguments": lambda turn: (
            f"/search/?q=params.speculative_num_steps+IN+(1,{2 + turn % 7})"
        ),
        "investigation": lambda turn: f"/i/{slug(turn)}/",
        "run": lambda turn: f"/i/{slug(turn)}/r/{1 + turn % 9}/",
        "compare 8": compare,
    }


KEYS = ("p50_ms", "p95_ms", "p50_cpu_ms", "p95_cpu_ms", "queries", "kB")


def measure(times: int) -> list[dict[str, object]]:
    """One row a page, printed as it comes. cpu: the process's own time, which a busy machine
    stretches less than the clock's."""
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from experiments.views import warm

    user, _ = User.objects.get_or_create(username="reader")
    client = Client(headers={"host": "localhost"})
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    # The first page loads libraries in the background: the start of the server, no page of it.
    warm.begin().join()
    found = []
    for name, address in pages().items():
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(address(0))
            count = len(queries)
        assert answer.status_code == 200, (name, answer.status_code)
        spent, busy = [], []
        for turn in range(1, times + 1):
            began, used = time.perf_counter(), time.process_time()
            client.get(address(turn))
            spent.append(1000 * (time.perf_counter() - began))
            busy.append(1000 * (time.process_time() - used))
        found.append(
            {
                "page": name,
                "p50_ms": round(statistics.median(spent), 1),
                "p95_ms": round(statistics.quantiles(spent, n=20)[-1], 1),
                "p50_cpu_ms": round(statistics.median(busy), 1),
                "p95_cpu_ms": round(statistics.quantiles(busy, n=20)[-1], 1),
                "queries": count,
                "kB": round(len(answer.content) / 1000, 1),
                "n": times,
            }
        )
        print(f"{name:22}" + "".join(f"{found[-1][key]!s:>12}" for key in KEYS), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    setup(options.data)
    from experiments.models import Investigation, Run

    print(f"{Investigation.objects.count()} investigations, {Run.objects.count()} runs")
    print(f"{'page':22}" + "".join(f"{key:>12}" for key in KEYS))
    rows = measure(options.times)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
