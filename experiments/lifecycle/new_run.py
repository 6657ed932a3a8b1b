"""The row of a new run, whoever is to measure it: its number, its place, what it refers to.

What it is to run, and what is known of it beforehand, is said by those who open it: `runs` for a
worker or from a write-up, `scripted` for a program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from experiments.lifecycle.place import lock, next_run
from experiments.lifecycle.text import needed
from experiments.models import Hypothesis, Investigation, Run
from experiments.refusal import Refused


def new_run(
    *,
    investigation: Investigation,
    title: str,
    engine: str,
    engine_release: str,
    note: str,
    plan: Mapping[str, Any],
    hypothesis: Hypothesis | None = None,
    baseline: Run | None = None,
    follows: Run | None = None,
    repeats_run: Run | None = None,
    after: float | None = None,
    **columns: Any,
) -> Run:
    """Save a run at the end of the timeline, or right after the place `after`.

    `plan`: workers.plan.RunPlan as JSON, as far as it is known; its `run` is the name that is given
    here, <investigation>-r<number>. `columns`: what else is known of the run, by the model's names.
    Raises Refused for a title that cannot be kept and for a row of another investigation.
    """
    for row in (hypothesis, baseline, follows, repeats_run):
        if row is not None and row.investigation_id != investigation.pk:
            raise Refused(f"{row.label} belongs to another investigation")
    title = needed(title, "title", 200)
    with transaction.atomic(savepoint=False):
        lock(investigation)
        number, position = next_run(investigation, after)
        return Run.objects.create(
            investigation=investigation,
            number=number,
            position=position,
            title=title,
            note=note,
            hypothesis=hypothesis,
            baseline=baseline,
            follows=follows,
            repeats_run=repeats_run,
            engine=engine,
            engine_release=engine_release[:40],
            plan={**plan, "run": f"{investigation.slug}-r{number}"},
            **columns,
        )


def plan_outside(
    engine: str, server_args: Sequence[str], env: Mapping[str, str], concurrency: int | None
) -> dict[str, Any]:
    """What is known of the plan of a run that no worker carries out."""
    return {
        "engine": engine,
        "server_args": list(server_args),
        "env": dict(env),
        "workload": {} if concurrency is None else {"concurrency": concurrency},
    }
