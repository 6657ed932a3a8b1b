"""The drawing of a watched series: its runs in order, its levels, where they changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from experiments.queries.history import Series
from experiments.reports.drawing import Drawing
from experiments.reports.plots import Plot, ticks

BOTTOM, LEFT, RIGHT = 220.0, 6.0, 98.0
MOST_LABELS = 12  # runs named under the axis


def course_of(series: Series) -> Plot | None:
    """tok/s of each run, the median of each level, and the band where single new runs are expected;
    the first run of a new level is ringed and named. None for a series without runs."""
    values = [r.tok_s for r in series.runs]
    if not values:
        return None
    low, high = _ends(series, values)
    drawing = Drawing(BOTTOM + 38, f"Throughput, run by run: {_says(series)}")

    def across(index: float) -> float:
        return LEFT + 1 + (RIGHT - LEFT - 1) * index / max(len(values) - 1, 1)

    def down(value: float) -> float:
        return BOTTOM - (BOTTOM - 10) * (value - low) / (high - low)

    newest = series.newest
    if newest is not None and newest.low is not None and newest.high is not None:
        edge = down(newest.high)
        drawing.rect(
            LEFT, edge, 100 - LEFT, down(newest.low) - edge, "expected", "99 % of new runs"
        )
    for mark in ticks(low, high, 4):
        drawing.line(LEFT, down(mark), 100, down(mark), "grid")
        drawing.text(0, down(mark) + 4, f"{mark:g}", "tick")
    for first, last, median in _levels(series):
        drawing.line(
            across(max(first - 0.4, 0)), down(median), across(last - 0.6), down(median), "line-1"
        )
        drawing.text(across(first), down(median) - 12, f"{median:.1f}", "name")
    starts = {s.index for s in series.shifts}
    every = -(-len(values) // MOST_LABELS)
    for index, one in enumerate(series.runs):
        x, says = across(index), f"{one.run.label}: {one.tok_s:.1f} tok/s, n={one.n}"
        drawing.dot(x, down(one.tok_s), 4.0, "fill-0 dot", says)
        if index in starts:
            drawing.dot(x, down(one.tok_s), 8.0, "ring", says)
        if index in starts or index % every == 0:
            drawing.text(x, BOTTOM + 15, one.run.label, "tick", "middle" if x < 96 else "end")
    drawing.text(LEFT, BOTTOM + 32, "runs in the order they ended", "tick")
    head = ("run", "mean, tok/s", "n", "ended, UTC", "new level")
    table = tuple(
        (
            f"{r.run.investigation.slug}/{r.run.label}",
            round(r.tok_s, 3),
            r.n,
            f"{r.run.ended_at:%Y-%m-%d %H:%M:%S}" if r.run.ended_at else None,
            "yes" if index in starts else "",
        )
        for index, r in enumerate(series.runs)
    )
    return Plot("course", "Throughput, run by run", "tok/s", drawing, head, table)


def _ends(series: Series, values: list[float]) -> tuple[float, float]:
    """Where the axis begins and ends: at the data, since a shift of a per cent must be seen."""
    newest, ends = series.newest, list(values)
    if newest is not None and newest.low is not None and newest.high is not None:
        ends += [newest.low, newest.high]
    span = max(max(ends) - min(ends), 0.02 * max(ends))
    return min(ends) - 0.1 * span, max(ends) + 0.1 * span


def _levels(series: Series) -> Iterator[tuple[int, int, float]]:
    """First run, the one after the last, and median of each level."""
    bounds = [0, *sorted(s.index for s in series.shifts), len(series.runs)]
    medians = [s.before for s in series.shifts[:1]] + [s.after for s in series.shifts]
    for (first, last), median in zip(pairwise(bounds), medians, strict=False):
        yield first, last, median


def _says(series: Series) -> str:
    parts = [f"{len(series.runs)} runs from {min(r.tok_s for r in series.runs):.4g} to "]
    parts.append(f"{max(r.tok_s for r in series.runs):.4g} tok/s")
    for shift in series.shifts:
        label = series.runs[shift.index].run.label
        parts.append(f"; {shift.percent:+.1f} % at {label}")
    return "".join(parts) + "."
