"""How long a report's PDF takes and how much memory: the recorded story, and 100 measured runs.

    python benchmarks/report_speed.py [--runs 100] [--json FILE]

Each is made in a process of its own, as a worker makes it: first cold, then warm. Exit code 1 where
a limit is passed: the story 5 s warm; the large one 20 s and 400 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STORY_SECONDS, LARGE_SECONDS, LARGE_MB = 5.0, 20.0, 400.0


def many_runs(count: int) -> str:
    """An investigation of `count` measured runs with hypotheses, verdicts, findings and events;
    its slug. The figures are made up, the rows go the way that all rows go."""
    from experiments import checkup, lifecycle
    from experiments.lifecycle.runs import RecordedRepeat
    from experiments.models import ConfigChange, ConfigEntry

    row = lifecycle.create_investigation(title="A hundred runs", question="Which depth is best?")
    base = lifecycle.record_run(
        investigation=row, title="plain", repeats=[RecordedRepeat(90.0 + k) for k in range(3)]
    )
    lifecycle.edit_investigation(row, baseline=base)
    last = base
    for n in range(1, count):
        claim = None
        if n % 5 == 0:
            claim = lifecycle.add_hypothesis(
                investigation=row, claim=f"depth {n % 15 + 1} is better than what came before"
            )
            lifecycle.register_prediction(hypothesis=claim, baseline=last)
        depth = n % 15 + 1
        last = lifecycle.record_run(
            investigation=row,
            title=f"{depth} steps, try {n}",
            repeats=[RecordedRepeat(40.0 + n % 37 + k, 1.5 + 0.05 * depth) for k in range(3)],
            server_args=["--speculative-num-steps", str(depth), "--tp-size", "8"],
            hypothesis=claim,
            baseline=base,
            follows=last,
        )
        ConfigEntry.objects.bulk_create(
            ConfigEntry(
                run=last,
                key=key,
                requested=value,
                was_requested=True,
                effective=value,
                effective_known=True,
                origin="explicit",
            )
            for key, value in (
                ("speculative_algorithm", "EAGLE3"),
                ("speculative_num_steps", depth),
                ("speculative_eagle_topk", 1),
                ("speculative_num_draft_tokens", depth + 1),
            )
        )
        ConfigChange.objects.create(
            run=last, kind="argument", key="speculative_num_steps", before=depth - 1, after=depth
        )
        if n % 3 == 0:
            lifecycle.add_event(
                investigation=row, title=f"Looked at run {n}", text="A few words. " * 8
            )
        if n % 20 == 0 or n == count - 1:
            checkup.recheck(last)
    return row.slug


def measure(slug: str) -> dict[str, float]:
    """Seconds cold and warm, pages, bytes and peak memory of one report, document included."""
    from experiments import queries
    from experiments.reports import document, render

    seconds, steps = [], []
    pdf = b""
    for _ in range(2):
        begun = time.perf_counter()
        found = document.document(queries.investigation_page(slug))
        pdf = render.pdf(found, on_step=lambda step, share: steps.append(step))
        seconds.append(time.perf_counter() - begun)
    pages = max(int(s.rsplit(" ", 1)[1]) for s in steps if s.startswith("laying out page"))
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
    return {
        "cold_s": round(seconds[0], 2),
        "warm_s": round(seconds[1], 2),
        "cpu_s": round(time.process_time(), 2),
        "pages": pages,
        "kB": round(len(pdf) / 1000),
        "peak_MB": round(peak),
    }


def in_own_process(data: str, slug: str) -> dict[str, float]:
    environment = {**os.environ, "SPECDEBUG_DATA": data}
    done = subprocess.run(
        [sys.executable, __file__, "--slug", slug],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=100)
    arguments.add_argument("--json", type=Path)
    arguments.add_argument("--slug", help=argparse.SUPPRESS)
    asked = arguments.parse_args()
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "specdebug.settings")
    with tempfile.TemporaryDirectory(prefix="specdebug-report-") as folder:
        if not asked.slug:
            os.environ["SPECDEBUG_DATA"] = folder
        import django

        django.setup()
        if asked.slug:
            print(json.dumps(measure(asked.slug)))
            return 0
        from django.core.management import call_command

        from experiments.story.recorded import load_story

        call_command("migrate", verbosity=0)
        story = in_own_process(folder, load_story().slug)
        large = in_own_process(folder, many_runs(asked.runs))
    result = {"story": story, f"{asked.runs} runs": large}
    text = json.dumps(result, indent=2)
    print(text)
    if asked.json:
        asked.json.write_text(text + "\n")
    fast = story["warm_s"] < STORY_SECONDS and large["cold_s"] < LARGE_SECONDS
    return 0 if fast and large["peak_MB"] < LARGE_MB else 1


if __name__ == "__main__":
    sys.exit(main())
