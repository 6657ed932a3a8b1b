"""Alerts of watched series: opened once for a cause, whatever later runs show of the same."""

from __future__ import annotations

from experiments.models import Alert, Run, WatchedSeries
from experiments.queries.history import Series, series_of
from specdebug.measure.history import MIN_SIZE
from specdebug.measure.watch import MARGIN


def alarms(run: Run) -> list[Alert]:
    """The alerts that this run's series newly gives; none for a run that nobody watches.

    Within a transaction: two runs of a series that end at once look one after the other, so that
    the second finds what the first has told.
    """
    if not run.series_key:
        return []
    rows = WatchedSeries.objects.select_for_update()
    watched = rows.filter(key=run.series_key).first()
    return [] if watched is None else look_at(watched)


def look_at(watched: WatchedSeries) -> list[Alert]:
    """Judge the series by its runs as they are now and open what is new.

    A cause is a change of level: found by two runs in a row beyond the recent ones, and later, with
    more runs, as a shift. Both are one cause where they begin within MIN_SIZE runs of each other.
    """
    series = series_of(watched)
    found = [a for a in (_newest(series), *_shifts(series)) if a is not None]
    opened: list[Alert] = []
    for index, kind, sentence in found:
        if _known(series, opened, index):
            continue
        alert, fresh = Alert.objects.get_or_create(
            series=watched,
            kind=kind,
            run=series.runs[index].run,
            defaults={"sentence": sentence[:400]},
        )
        if fresh:
            opened.append(alert)
    return opened


def _newest(series: Series) -> tuple[int, str, str] | None:
    newest = series.newest
    if newest is None or newest.since is None:
        return None
    return newest.since, newest.state, f"{series.watched.title}: tok/s {newest.sentence}"


def _shifts(series: Series) -> list[tuple[int, str, str] | None]:
    """The last shift alone: older ones were told in their time, or before anybody watched."""
    if not series.shifts or series.wanders:
        return []
    last = series.shifts[-1]
    if abs(last.after / last.before - 1) <= MARGIN:
        return []
    kind = Alert.Kind.REGRESSION if last.after < last.before else Alert.Kind.IMPROVEMENT
    first = series.runs[last.index].run.label
    sentence = (
        f"{series.watched.title}: tok/s {last.after:.4g} since {first}, "
        f"{last.percent:+.1f} % against {last.before:.4g} before (medians of {last.n_after} and "
        f"{last.n_before} runs)."
    )
    return [(last.index, str(kind), sentence)]


def _known(series: Series, opened: list[Alert], index: int) -> bool:
    """Whether an alert tells of a change that begins at about this run."""
    places = {r.run.pk: i for i, r in enumerate(series.runs)}
    told = [places[a.run_id] for a in (*series.alerts, *opened) if a.run_id in places]
    return any(abs(place - index) <= MIN_SIZE for place in told)


def drift_between(one: Run, other: Run) -> str | None:
    """Why two runs of one host must not be compared: a watched control changed between them.

    A series does not speak against its own runs: their change is what it tells.
    """
    if not one.host or one.host != other.host or not (one.ended_at and other.ended_at):
        return None
    early, late = sorted((one.ended_at, other.ended_at))
    alert = (
        Alert.objects.filter(run__host=one.host, run__ended_at__gt=early, run__ended_at__lte=late)
        .exclude(series__key__in=[k for k in (one.series_key, other.series_key) if k])
        .select_related("series", "run__investigation")
        .first()
    )
    if alert is None:
        return None
    return (
        f"the control {alert.series.title!r} on {one.host} changed between them "
        f"({alert.kind} since {alert.run.label} of {alert.run.investigation.title})"
    )
