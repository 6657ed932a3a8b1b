"""How a sweep stands: the best so far, what cannot win any more and why, what to measure next;
arithmetic over measured points, no record and no engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from specdebug.diagnosis.sweep import Point
from specdebug.eagle.speedup import CostPoint, cost_line
from specdebug.measure.compare import compare

__all__ = ["Bound", "Measured", "Outlook", "outlook"]

# Two starts of one configuration differ by about this much; a bound that is closer decides nothing.
SPREAD = 0.03


@dataclass(frozen=True)
class Measured:
    """A point's figures: tok_s per repeat, the pooled accept length and the acceptance histogram
    (None without speculation), the step time in ms; of a rival, the requests it ran at once."""

    tok_s: tuple[float, ...]
    accept_len: float | None = None
    histogram: tuple[int, ...] | None = None
    step_ms: float | None = None
    label: str = ""
    running: int | None = None

    @property
    def mean(self) -> float:
        return fmean(self.tok_s)


@dataclass(frozen=True)
class Bound:
    """The most that an unmeasured point can reach in tok/s, and the account behind it in words."""

    tok_s: float
    why: str


@dataclass(frozen=True)
class Outlook:
    """best: of each load (requests at once), the index of its best measured point; loads are not
    rivals, for more requests at once always make more tokens. within: indices that noise cannot
    tell from the best of their load, itself included. cannot_win: index -> why. next: what to
    measure now, None when nothing is left that could win.
    """

    best: Mapping[int | None, int]
    within: tuple[int, ...]
    cannot_win: Mapping[int, str]
    next: int | None


def outlook(
    points: Sequence[Point],
    measured: Mapping[int, Measured],
    *,
    out: Sequence[int] = (),
    rival: Measured | None = None,
) -> Outlook:
    """Judge the points by what is measured of them.

    `out`: points that are not to be measured whatever they promise, for they failed. `rival`: what
    must be beaten as well, the run without a draft.
    """
    best: dict[int | None, int] = {}
    for index, one in measured.items():
        load = points[index].concurrency
        if load not in best or one.mean > measured[best[load]].mean:
            best[load] = index
    cannot: dict[int, str] = {}
    bounds: dict[int, Bound] = {}
    left = [i for i in range(len(points)) if i not in measured and i not in out]
    for index in left:
        found = bound(points, measured, index)
        if found is None:
            continue
        bounds[index] = found
        floor, holder = _floor(points, measured, best, rival, points[index].concurrency)
        if floor is not None and found.tok_s < floor * (1 - SPREAD):
            cannot[index] = (
                f"at most {found.tok_s:.3g} tok/s ({found.why}), and {holder} has {floor:.3g}"
            )
    return Outlook(
        best=best,
        within=_within(points, measured, best),
        cannot_win=cannot,
        next=_next(points, measured, [i for i in left if i not in cannot], bounds),
    )


def _floor(
    points: Sequence[Point],
    measured: Mapping[int, Measured],
    best: Mapping[int | None, int],
    rival: Measured | None,
    load: int | None,
) -> tuple[float | None, str]:
    """What is to be beaten at a load, and whose it is."""
    if rival is not None and rival.running not in (None, load):
        rival = None
    index = best.get(load)
    if index is not None and (rival is None or measured[index].mean >= rival.mean):
        return measured[index].mean, points[index].name
    if rival is not None:
        return rival.mean, rival.label or "the run without a draft"
    return None, ""


def bound(points: Sequence[Point], measured: Mapping[int, Measured], index: int) -> Bound | None:
    """The most that point `index` can reach; None where its family does not tell.

    Accept length: a shallower chain accepts what the measured one accepted of its first positions;
    of a deeper one, every further draft is granted wherever the measured chain was accepted whole.
    Step time: on the family's cost line, and never shorter than that of a shallower chain.
    """
    steps = points[index].steps
    if steps is None:
        return None
    family = {
        points[i].steps or 0: one
        for i, one in measured.items()
        if points[i].family == points[index].family
        and points[i].steps
        and one.histogram
        and sum(one.histogram)
        and one.step_ms
    }
    if not family:
        return None
    length = min(_longest(one.histogram or (), depth, steps) for depth, one in family.items())
    times = [one.step_ms or 0.0 for depth, one in family.items() if depth <= steps]
    line = cost_line([CostPoint(depth, one.step_ms or 0.0) for depth, one in family.items()])
    if line is not None and line.slope_ms > 0:
        times.append(line.at(steps) - line.residual_ms)
    shortest = max(times, default=0.0) * (1 - SPREAD)
    if shortest <= 0:
        return None
    length = min(length * (1 + SPREAD), steps + 1.0)
    running = points[index].concurrency or 1
    return Bound(
        1000.0 * length * running / shortest,
        f"{length:.3g} tokens a step at best, in {shortest:.3g} ms or more",
    )


def _longest(histogram: Sequence[int], depth: int, steps: int) -> float:
    """The longest accept length that a chain of `steps` can have, by a measured one of `depth`."""
    total = sum(histogram)
    reached = [sum(histogram[k:]) / total for k in range(1, depth + 1)]
    length = 1.0 + sum(reached[:steps])
    return length + max(0, steps - depth) * (reached[-1] if reached else 1.0)


def _within(
    points: Sequence[Point], measured: Mapping[int, Measured], best: Mapping[int | None, int]
) -> tuple[int, ...]:
    found = []
    for index, one in measured.items():
        first = best[points[index].concurrency]
        told = compare(measured[first].tok_s, one.tok_s, pooled_cv=SPREAD, say_repeats=False)
        if index == first or told.high is None or told.high >= 1.0:
            found.append(index)
    return tuple(sorted(found))


def _next(
    points: Sequence[Point],
    measured: Mapping[int, Measured],
    left: Sequence[int],
    bounds: Mapping[int, Bound],
) -> int | None:
    """The ends of a family first, because its cost line comes from them; then what promises most;
    what promises nothing in particular in its order."""
    for index in left:
        family, steps = points[index].family, points[index].steps
        if steps is None:
            return index
        depths = [p.steps for p in points if p.family == family and p.steps is not None]
        if steps in (min(depths), max(depths)):
            return index
    return max(left, key=lambda i: bounds[i].tok_s if i in bounds else float("inf"), default=None)
