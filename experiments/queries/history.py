"""Runs of one configuration over time: the series that are watched, their levels and alerts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from django.db.models import Avg, Count

from experiments.models import Alert, Run, WatchedSeries
from specdebug.measure.history import Shift, change_points, shifts
from specdebug.measure.watch import Newest, judge_newest

# The newest runs of a series that are drawn and judged.
MOST_RUNS = 500


@dataclass(frozen=True)
class SeriesRun:
    """One run of a series; tok_s: the mean of its n repeats."""

    run: Run
    tok_s: float
    n: int


@dataclass(frozen=True)
class Series:
    """A watched series with what its runs say; runs oldest first.

    newest: the last run against the recent ones, None for a series without runs. wanders: the
    figures move without levels, so that shifts explain little.
    """

    watched: WatchedSeries
    runs: tuple[SeriesRun, ...]
    shifts: tuple[Shift, ...]
    wanders: bool
    newest: Newest | None
    alerts: tuple[Alert, ...]

    @property
    def open_alerts(self) -> tuple[Alert, ...]:
        return tuple(a for a in self.alerts if a.closed_at is None)

    @property
    def cv(self) -> float | None:
        """Spread of the runs on the present level, as a fraction; None below three."""
        since = self.shifts[-1].index if self.shifts else 0
        level = [r.tok_s for r in self.runs[since:]]
        if len(level) < 3:
            return None
        mean = fmean(level)
        return float((sum((v - mean) ** 2 for v in level) / (len(level) - 1)) ** 0.5 / mean)


def runs_of(key: str) -> tuple[SeriesRun, ...]:
    """The measured runs of a series, oldest first: one query."""
    rows = (
        Run.objects.filter(series_key=key, state=Run.State.DONE, repeats__tok_s__gt=0)
        .annotate(mean=Avg("repeats__tok_s"), passes=Count("repeats"))
        .select_related("investigation")
        .defer("server_info", "argv", "env", "shown", "untried", "plan")
        .order_by("-ended_at", "-pk")[:MOST_RUNS]
    )
    found = [SeriesRun(row, row.mean, row.passes) for row in rows]
    return tuple(reversed(found))


def series_of(watched: WatchedSeries) -> Series:
    """One series: two queries."""
    return _series(watched, runs_of(watched.key), tuple(watched.alerts.select_related("run")))


def _series(watched: WatchedSeries, runs: tuple[SeriesRun, ...], alerts: Sequence[Alert]) -> Series:
    values = [r.tok_s for r in runs]
    return Series(
        watched=watched,
        runs=runs,
        shifts=shifts(values),
        wanders=change_points(values).wanders,
        newest=judge_newest(values) if values else None,
        alerts=tuple(alerts),
    )


def all_series() -> tuple[Series, ...]:
    """Every watched series: two queries and one for each series."""
    alerts: dict[int, list[Alert]] = {}
    for alert in Alert.objects.select_related("run__investigation"):
        alerts.setdefault(alert.series_id, []).append(alert)
    return tuple(
        _series(row, runs_of(row.key), alerts.get(row.pk, ()))
        for row in WatchedSeries.objects.select_related("started_from__investigation")
    )
