"""Fills a record with made-up investigations and runs, for measuring pages; never a record in use.

    .venv/bin/python benchmarks/fill.py --data DIR --investigations 1000 --runs 10000

Every value is drawn from one seed. The runs say "made up" in their titles' investigation.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODES = (
    ("aux-layer-mismatch", "critical"),
    ("draft-tokens-overridden", "high"),
    ("slower-than-baseline", "high"),
    ("below-break-even", "high"),
    ("draft-too-deep", "medium"),
    ("too-few-samples", "info"),
)
MODELS = ("Kimi-K2.5", "Llama-3.3-70B", "Qwen3-235B", "DeepSeek-V3.2", "GLM-4.6")
ASKS = ("slower than plain", "acceptance falls after the upgrade", "which depth is best")
ARGUMENTS = 40


def fill(investigations: int, runs: int, seed: int = 7) -> None:
    """Write the rows in one go; Django is set up already."""
    from django.db import transaction

    with transaction.atomic():
        _rows(investigations, runs, random.Random(seed))


def _rows(many: int, runs: int, rng: random.Random) -> None:
    from django.utils import timezone

    from experiments import models as m

    now = timezone.now()
    first = m.Investigation.objects.count()
    investigations = m.Investigation.objects.bulk_create(
        m.Investigation(
            slug=f"made-up-{first + i}",
            title=f"{rng.choice(MODELS)}: {rng.choice(ASKS)} ({i}, made up)",
            question="Does the draft make serving faster under this load?",
            state="open" if rng.random() < 0.4 else "resolved",
        )
        for i in range(many)
    )
    rows, claims = [], []
    per = max(1, runs // many)
    for row in investigations:
        host = f"gpu-{rng.randrange(8)}"
        claims += [
            m.Hypothesis(
                investigation=row,
                number=n,
                claim=f"Depth {n} pays at this load",
                position=n * 4 + 1,
            )
            for n in (1, 2)
        ]
        for number in range(per):
            rows.append(  # noqa: PERF401
                m.Run(
                    investigation=row,
                    number=number,
                    title="no speculation" if number == 0 else f"{number} steps, top-k 1",
                    position=float(number * 4),
                    engine="sglang",
                    engine_release="0.5.9",
                    host=host,
                    state="done" if rng.random() < 0.97 else "failed",
                    ended_at=now,
                    plan={"server_args": ["--tp-size", "8"], "workload": {"concurrency": 1}},
                )
            )
    hypotheses = m.Hypothesis.objects.bulk_create(claims)
    by_row = {(h.investigation_id, h.number): h for h in hypotheses}
    for run in rows:
        if run.number:
            run.hypothesis = by_row[run.investigation_id, 1 + run.number % 2]
    made = m.Run.objects.bulk_create(rows, batch_size=500)
    _figures(m, made, rng)
    _links(m, investigations, made, rng)


def _figures(m, made, rng) -> None:  # type: ignore[no-untyped-def]
    repeats, entries = [], []
    for run in made:
        length = 1.0 + 0.8 * (1 - 0.6**run.number) if run.number else None
        speed = 90.0 * (length or 1.0) / (1 + 0.12 * run.number) * rng.gauss(1, 0.05)
        if run.state == "done":
            repeats += [
                m.Repeat(
                    run=run,
                    index=i,
                    tok_s=(tok_s := max(5.0, speed * rng.gauss(1, 0.02))),
                    accept_len=length,
                    step_ms=1000 * (length or 1.0) / tok_s,
                    output_sha256="ab" * 32,
                )
                for i in range(3)
            ]
        known = {"tp_size": 8, **{f"argument_{k}": k for k in range(ARGUMENTS)}}
        if run.number:
            known |= {"speculative_algorithm": "EAGLE3", "speculative_num_steps": run.number}
        entries += [
            m.ConfigEntry(
                run=run,
                key=key,
                requested=value,
                was_requested=True,
                effective=value,
                effective_known=True,
                origin="explicit",
            )
            for key, value in known.items()
        ]
    m.Repeat.objects.bulk_create(repeats, batch_size=2000)
    m.ConfigEntry.objects.bulk_create(entries, batch_size=2000)


def _links(m, investigations, made, rng) -> None:  # type: ignore[no-untyped-def]
    first = {run.investigation_id: run for run in made if run.number == 0}
    by_owner: dict[int, list[object]] = {}
    for run in made:
        by_owner.setdefault(run.investigation_id, []).append(run)
    for row in investigations:
        row.baseline = first[row.pk]
    m.Investigation.objects.bulk_update(investigations, ["baseline"], batch_size=300)
    findings = []
    for row in investigations:
        for code, severity in rng.sample(CODES, 3):
            run = rng.choice(by_owner[row.pk])
            findings.append(
                m.Finding(
                    investigation=row,
                    code=code,
                    severity=severity,
                    confidence="likely",
                    statement=f"{code} as seen in a made-up run",
                    opened_in=run,
                    seen_in=run,
                    state=rng.choice(("open", "open", "fixed", "set-aside")),
                )
            )
    made_findings = m.Finding.objects.bulk_create(findings, batch_size=500)
    m.FindingEvent.objects.bulk_create(
        m.FindingEvent(finding=f, kind="opened", run=f.opened_in) for f in made_findings
    )
    m.Event.objects.bulk_create(
        m.Event(investigation=row, kind="note", title="Read the source", position=2.0 + k)
        for row in investigations
        for k in range(3)
    )


def fill_folder(data: Path, runs: int, investigations: int | None = None) -> None:
    """The same in a data folder, whose record is made if it is not there."""
    os.environ["SPECDEBUG_DATA"] = str(data)
    os.environ["DJANGO_SETTINGS_MODULE"] = "specdebug.settings"
    sys.path.insert(0, str(ROOT))
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    fill(investigations or max(1, runs // 10), runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--investigations", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=10000)
    options = parser.parse_args()
    fill_folder(options.data, options.runs, options.investigations)
    print(f"{options.investigations} investigations and {options.runs} runs in {options.data}")


if __name__ == "__main__":
    main()
