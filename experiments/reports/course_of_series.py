"""The drawing of a watched series: its runs in order, its levels, where they changed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from experiments.queries.history import Series, SeriesRun

WIDTH, HEIGHT, EDGE = 1000.0, 240.0, 12.0


@dataclass(frozen=True)
class Dot:
    run: SeriesRun
    x: float
    y: float
    changed: bool


@dataclass(frozen=True)
class Level:
    x1: float
    x2: float
    y: float
    value: float


@dataclass(frozen=True)
class SeriesDrawing:
    """In units of a box of width by height; low, high: tok/s at its lower and upper edge.

    band: where single new runs are expected, as y and height, None with too few runs.
    """

    width: float
    height: float
    low: float
    high: float
    dots: tuple[Dot, ...]
    levels: tuple[Level, ...]
    band: tuple[float, float] | None
    says: str


def drawing(series: Series) -> SeriesDrawing | None:
    """None for a series without runs."""
    values = [r.tok_s for r in series.runs]
    if not values:
        return None
    newest = series.newest
    ends = list(values)
    if newest is not None and newest.low is not None and newest.high is not None:
        ends += [newest.low, newest.high]
    span = max(max(ends) - min(ends), 0.02 * max(ends))
    low, high = min(ends) - 0.05 * span, max(ends) + 0.05 * span

    def x(index: float) -> float:
        return EDGE + (WIDTH - 2 * EDGE) * (index / max(len(values) - 1, 1))

    def y(value: float) -> float:
        return HEIGHT * (high - value) / (high - low)

    starts = {s.index for s in series.shifts}
    dots = tuple(Dot(r, x(i), y(r.tok_s), i in starts) for i, r in enumerate(series.runs))
    bounds = [0, *sorted(starts), len(values)]
    medians = [s.before for s in series.shifts[:1]] + [s.after for s in series.shifts]
    levels = tuple(
        Level(x(a - 0.4) if a else x(0), x(b - 0.6) if b < len(values) else x(b - 1), y(m), m)
        for (a, b), m in zip(pairwise(bounds), medians, strict=False)
    )
    band = None
    if newest is not None and newest.low is not None and newest.high is not None:
        band = (y(newest.high), y(newest.low) - y(newest.high))
    return SeriesDrawing(WIDTH, HEIGHT, low, high, dots, levels, band, _says(series))


def _says(series: Series) -> str:
    parts = [f"{len(series.runs)} runs from {min(r.tok_s for r in series.runs):.4g} to "]
    parts.append(f"{max(r.tok_s for r in series.runs):.4g} tok/s")
    for shift in series.shifts:
        label = series.runs[shift.index].run.label
        parts.append(f"; {shift.percent:+.1f} % at {label}")
    return "".join(parts) + "."
