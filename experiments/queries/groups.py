"""How a group of runs stands: the library's judgement of its points, and what its page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.models import Repeat, Run, RunGroup
from experiments.queries.figures import figures_of
from specdebug.diagnosis.outlook import SPREAD, Measured, Outlook, outlook
from specdebug.diagnosis.sweep import Point
from specdebug.measure.compare import Comparison, compare


def point_of(group: RunGroup, index: int) -> Point:
    kept = group.plan["points"][index]
    return Point(**{**kept, "server_args": tuple(kept["server_args"])})


def points_of(group: RunGroup) -> list[Point]:
    return [point_of(group, index) for index in range(len(group.plan["points"]))]


def look(group: RunGroup, runs: Sequence[Run]) -> Outlook:
    """The library's judgement of a sweep by its runs so far, in the order of their places."""
    measured = measured_of(group, runs)
    out = sorted(given_up(group, runs) - set(measured))
    return outlook(points_of(group), measured, out=out, rival=_rival(group))


def _rival(group: RunGroup) -> Measured | None:
    """The figures of the run without a draft, where the group names one."""
    base = group.baseline
    found = None if base is None else _figures([base]).get(base.pk)
    if base is None or found is None:
        return None
    running = base.plan.get("workload", {}).get("concurrency")
    return replace(found, running=running if isinstance(running, int) else None)


def measured_of(group: RunGroup, runs: Sequence[Run]) -> dict[int, Measured]:
    """What is known of each measured point; of a point measured twice, the last."""
    figures = _figures([run for run in runs if run.state == Run.State.DONE])
    return {
        point: figures[run.pk]
        for run, point in zip(runs, group.plan["made"], strict=True)
        if run.pk in figures
    }


def given_up(group: RunGroup, runs: Sequence[Run]) -> set[int]:
    """Points whose run failed since the group was last resumed."""
    since = group.plan.get("resumed_at", 0)
    return {
        point
        for run, point in zip(runs, group.plan["made"], strict=True)
        if run.state in Run.ENDED
        and run.state != Run.State.DONE
        and (run.group_place or 0) >= since
    }


def _figures(runs: Sequence[Run]) -> dict[int, Measured]:
    repeats: dict[int, list[Repeat]] = {}
    for row in Repeat.objects.filter(run__in=[run.pk for run in runs]):
        repeats.setdefault(row.run_id, []).append(row)
    found = {}
    for run in runs:
        known = figures_of(repeats.get(run.pk, []))
        if known.tok_s is not None and all(value > 0 for value in known.tok_s.values):
            found[run.pk] = Measured(
                tok_s=known.tok_s.values,
                accept_len=known.accept_len,
                histogram=known.histogram,
                step_ms=known.step_ms.mean if known.step_ms else None,
                label=run.label,
            )
    return found


# ---- the page ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PointRow:
    """One point of a group with its runs, oldest first, and its figures over them.

    how: "best", "within noise of it", "measured", "under way", "failed", "left out" or "to come";
    why: the reason where it is left out or failed.
    """

    point: Point
    runs: tuple[Run, ...]
    figures: Measured | None
    how: str
    why: str = ""
    comparison: Comparison | None = None


@dataclass(frozen=True)
class GroupPage:
    """A group with its points in the order of the plan. best: one for each load. drift: the
    control's last run held against its first, None where it ran once."""

    group: RunGroup
    rows: tuple[PointRow, ...]
    best: tuple[PointRow, ...]
    drift: Comparison | None
    control: tuple[Run, ...]
    active: Run | None
    rival: Measured | None = None

    @property
    def rival_wins(self) -> bool:
        """Whether the run without a draft is faster than the best point, once all is done."""
        if self.rival is None or not self.best or self.group.state != RunGroup.State.DONE:
            return False
        alike = [
            row.figures.mean
            for row in self.best
            if row.figures and self.rival.running in (None, row.point.concurrency)
        ]
        return bool(alike) and self.rival.mean > max(alike)

    @property
    def failed(self) -> bool:
        """Whether there is something to measure again."""
        return any(row.how == "failed" for row in self.rows)

    @property
    def measured(self) -> int:
        return sum(row.figures is not None for row in self.rows)


def group_page(slug: str, number: int) -> GroupPage:
    """One group: 3 queries, with a baseline 4; raises RunGroup.DoesNotExist."""
    group = RunGroup.objects.select_related("investigation", "baseline", "hypothesis").get(
        investigation__slug=slug, number=number
    )
    runs = list(group.runs.order_by("group_place"))
    for run in runs:
        run.investigation = group.investigation
    rival = _rival(group)
    if group.kind == RunGroup.Kind.SWEEP:
        rows = _sweep_rows(group, runs, rival)
        control: tuple[Run, ...] = ()
        drift = None
    else:
        rows = _comparison_rows(group, runs)
        control = rows[0].runs if rows else ()
        drift = _drift(control)
    best = tuple(row for row in rows if row.how == "best")
    active = next((run for run in runs if run.state not in Run.ENDED), None)
    return GroupPage(group, tuple(rows), best, drift, control, active, rival)


def groups_of(slug: str) -> list[RunGroup]:
    """The groups of one investigation, newest first: 1 query."""
    rows = RunGroup.objects.filter(investigation__slug=slug).select_related("investigation")
    return list(rows.order_by("-number"))


def _sweep_rows(group: RunGroup, runs: Sequence[Run], rival: Measured | None) -> list[PointRow]:
    figures = measured_of(group, runs)
    told = outlook(points_of(group), figures, rival=rival)
    rows = []
    for index, point in enumerate(points_of(group)):
        own = _runs_of(group, runs, index)
        how, why = _how(group, index, own, figures)
        first = told.best.get(point.concurrency)
        if index == first:
            how = "best"
        elif index in told.within:
            how = "within noise of it"
        known = figures.get(index)
        against = None
        if known is not None and first is not None and index != first:
            best = figures[first].tok_s
            against = compare(best, known.tok_s, pooled_cv=SPREAD, say_repeats=False)
        rows.append(PointRow(point, own, known, how, why, against))
    return rows


def _comparison_rows(group: RunGroup, runs: Sequence[Run]) -> list[PointRow]:
    """Per arm what all its runs say, held against the control's. With several rounds a start is one
    figure, its repeats' mean: two repeats of one start are more alike than two starts."""
    figures = _figures([run for run in runs if run.state == Run.State.DONE])
    starts = group.plan.get("rounds", 1) > 1
    pooled: dict[int, Measured] = {}
    for index in range(len(group.plan["points"])):
        known = [figures[run.pk] for run in _runs_of(group, runs, index) if run.pk in figures]
        if known:
            tok_s = tuple(v for one in known for v in ((one.mean,) if starts else one.tok_s))
            pooled[index] = Measured(tok_s, known[-1].accept_len, None, known[-1].step_ms)
    rows = []
    for index, point in enumerate(points_of(group)):
        own = _runs_of(group, runs, index)
        how, why = _how(group, index, own, pooled)
        against = None
        if index and index in pooled and 0 in pooled:
            against = compare(
                pooled[0].tok_s, pooled[index].tok_s, pooled_cv=SPREAD, say_repeats=False
            )
        rows.append(PointRow(point, own, pooled.get(index), how, why, against))
    return rows


def _runs_of(group: RunGroup, runs: Sequence[Run], index: int) -> tuple[Run, ...]:
    made = zip(runs, group.plan["made"], strict=True)
    return tuple(run for run, point in made if point == index)


def _how(
    group: RunGroup, index: int, own: Sequence[Run], figures: dict[int, Measured]
) -> tuple[str, str]:
    if any(run.state not in Run.ENDED for run in own):
        return "under way", ""
    if index in figures:
        return "measured", ""
    if str(index) in group.skipped:
        return "left out", str(group.skipped[str(index)])
    if own:
        return "failed", own[-1].reason
    return "to come" if group.state == RunGroup.State.RUNNING else "not measured", ""


def _drift(control: Sequence[Run]) -> Comparison | None:
    """The last measured start of the control beside the first, each as one figure: the spread of
    repeats within a start says nothing of that between starts."""
    figures = _figures([run for run in control if run.state == Run.State.DONE])
    known = [figures[run.pk] for run in control if run.pk in figures]
    if len(known) < 2:
        return None
    return compare((known[0].mean,), (known[-1].mean,), pooled_cv=SPREAD, say_repeats=False)
