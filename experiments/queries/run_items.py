"""Runs for a list: each with its metrics, parameters and the labels it refers to; 4 queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from experiments.models import ConfigEntry, MetricSummary, Run


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a run, as models.MetricSummary keeps it."""

    value: float
    measured: bool
    count: int
    low: float
    high: float
    last_step: int | None


@dataclass(frozen=True, slots=True)
class RunItem:
    """One run. metrics: by name; params: the value in force, else the one asked for."""

    run: Run
    metrics: Mapping[str, Metric]
    params: Mapping[str, Any]
    baseline: str | None
    follows: str | None
    repeats: str | None


_COLUMNS = tuple(column.name for column in fields(Metric))


def run_items(runs: Sequence[Run]) -> list[RunItem]:
    """The runs in the order given."""
    ids = [run.pk for run in runs]
    metrics: dict[int, dict[str, Metric]] = defaultdict(dict)
    figures = MetricSummary.objects.filter(run__in=ids)
    for run_id, name, *values in figures.values_list("run_id", "name", *_COLUMNS):
        metrics[run_id][name] = Metric(*values)
    params: dict[int, dict[str, Any]] = defaultdict(dict)
    entries = ConfigEntry.objects.filter(run__in=ids).values_list(
        "run_id", "key", "requested", "was_requested", "effective", "effective_known"
    )
    for run_id, key, requested, was_requested, effective, effective_known in entries:
        if effective_known or was_requested:
            params[run_id][key] = effective if effective_known else requested
    labels = _labels(runs)
    return [
        RunItem(
            run=run,
            metrics=metrics[run.pk],
            params=params[run.pk],
            baseline=labels.get(run.baseline_id),
            follows=labels.get(run.follows_id),
            repeats=labels.get(run.repeats_run_id),
        )
        for run in runs
    ]


def new_item(run: Run, params: Mapping[str, Any]) -> RunItem:
    """A run that was made just now with these arguments: it has no figures yet, and what it refers
    to is at hand. No query."""
    return RunItem(
        run=run,
        metrics={},
        params=dict(sorted(params.items())),
        baseline=run.baseline.label if run.baseline else None,
        follows=run.follows.label if run.follows else None,
        repeats=run.repeats_run.label if run.repeats_run else None,
    )


def _labels(runs: Sequence[Run]) -> dict[int | None, str]:
    """Labels of the runs that these refer to; those at hand are not asked for."""
    known: dict[int | None, str] = {run.pk: run.label for run in runs}
    others = {pk for run in runs for pk in (run.baseline_id, run.follows_id, run.repeats_run_id)}
    missing = [pk for pk in others if pk is not None and pk not in known]
    if missing:
        numbers = Run.objects.filter(pk__in=missing).values_list("pk", "number")
        known |= {pk: f"R{number}" for pk, number in numbers}
    return known
