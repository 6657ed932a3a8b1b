"""One figure per run and metric, kept beside the repeats and points it comes from; what runs are
searched and ordered by. Not what verdicts rest on: those read the repeats themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments import bulk
from experiments.models import MetricSummary, Repeat, Run
from experiments.queries.figures import figures_of
from experiments.queries.prepared import Prepared

# What a repeat carries, in this order everywhere; definitions in docs/metrics.md.
MEASURED = ("tok_s", "accept_len", "step_ms")
_FIELDS = ("value", "measured", "count", "low", "high", "last_step")
_OF_RUN = Prepared(lambda run: MetricSummary.objects.filter(run=run).order_by())


@dataclass(frozen=True, slots=True)
class Column:
    """New points of one metric, in the order of arrival."""

    steps: Sequence[int]
    values: Sequence[float]


def from_repeats(run: Run) -> None:
    """Write the rows of the run's measured metrics anew; points logged under a name yield to it."""
    figures = figures_of(list(Repeat.objects.filter(run=run)))
    rows = []
    for name in MEASURED:
        value, known = figures.metric(name), figures.values(name)
        if value is None:
            continue
        rows.append(
            MetricSummary(
                run=run,
                name=name,
                value=value,
                measured=True,
                count=max(len(known), 1),
                low=min(known, default=value),
                high=max(known, default=value),
            )
        )
    _save(rows)


def from_points(run: Run, columns: Mapping[str, Column]) -> None:
    """Take new points into the rows of their metrics; what was measured in repeats stays."""
    known = {row.name: row for row in _OF_RUN.all(run.pk)}
    rows = []
    for name, column in columns.items():
        old = known.get(name)
        if old is not None and old.measured:
            continue
        low, high, count = min(column.values), max(column.values), len(column.values)
        if old is not None:
            low, high, count = min(low, old.low), max(high, old.high), count + old.count
        rows.append(
            MetricSummary(
                run=run,
                name=name,
                value=column.values[-1],
                measured=False,
                count=count,
                low=low,
                high=high,
                last_step=column.steps[-1],
            )
        )
    _save(rows)


def _save(rows: list[MetricSummary]) -> None:
    bulk.insert(rows, unique=("run", "name"), replacing=_FIELDS)
