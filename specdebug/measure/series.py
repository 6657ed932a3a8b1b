"""Time series of decode lines: which lines count, their middle, and how they move; no parsing.

Columns are sequences of equal length. NaN marks a figure a line does not carry.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specdebug.measure import middle

__all__ = ["Cliff", "Slope", "cliff", "counted", "median", "slope", "spread", "step_times"]


def median(values: Sequence[float]) -> float | None:
    """Median of the finite values, None when there is none."""
    kept = [v for v in values if math.isfinite(v)]
    return middle.median(kept) if kept else None


def spread(values: Sequence[float]) -> float:
    """Largest minus smallest finite value; 0 when there is none."""
    kept = [v for v in values if math.isfinite(v)]
    return max(kept) - min(kept) if kept else 0.0


def step_times(
    accept_len: Sequence[float], running: Sequence[float], throughput: Sequence[float]
) -> list[float]:
    """Step time in ms of each line; NaN where throughput or running is 0.

    A line without accept length (NaN) is a plain decode step and counts as 1 token.
    """
    out: list[float] = []
    for length, batch, tok_s in zip(accept_len, running, throughput, strict=True):
        tokens = 1.0 if math.isnan(length) else length
        out.append(1000.0 * tokens * batch / tok_s if tok_s > 0 and batch > 0 else math.nan)
    return out


def counted(step_ms: Sequence[float], slow: float = 2.0) -> list[bool]:
    """Which lines belong in an average: those whose step time is at most `slow` times the median.

    Judging by step time and not by throughput keeps a stretch in which nothing is accepted: its
    throughput drops, its steps do not get slower. A cold first line has a slow step and goes.
    """
    middle = median(step_ms)
    if middle is None:
        return [False] * len(step_ms)
    return [math.isfinite(v) and v <= slow * middle for v in step_ms]


@dataclass(frozen=True, slots=True)
class Slope:
    """Straight line through points: change of y per unit of x, its t statistic, points used."""

    per_unit: float
    at_zero: float
    t: float
    n: int


def slope(x: Sequence[float], y: Sequence[float]) -> Slope | None:
    """Ordinary least squares; None with fewer than 5 points or when all x are equal."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    n = len(points)
    if n < 5 or len({a for a, _ in points}) < 2:
        return None
    mean_x = math.fsum(a for a, _ in points) / n
    mean_y = math.fsum(b for _, b in points) / n
    sxx = math.fsum((a - mean_x) ** 2 for a, _ in points)
    rate = math.fsum((a - mean_x) * (b - mean_y) for a, b in points) / sxx
    start = mean_y - rate * mean_x
    rest = math.fsum((b - start - rate * a) ** 2 for a, b in points)
    error = math.sqrt(rest / (n - 2) / sxx)
    exact = 0.0 if rate == 0 else math.copysign(math.inf, rate)
    return Slope(rate, start, rate / error if error else exact, n)


@dataclass(frozen=True, slots=True)
class Cliff:
    """A step down in y at x = `at`: medians and number of points on both sides, and a t value."""

    at: float
    before: float
    after: float
    n_before: int
    n_after: int
    t: float


def cliff(x: Sequence[float], y: Sequence[float], least: int = 5) -> Cliff | None:
    """The split of the points, ordered by x, whose two means lie furthest apart in error units.

    None with fewer than `least` points on each side. Reports any split; the caller judges it.
    """
    points = sorted(
        (a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)
    )
    n = len(points)
    if n < 2 * least:
        return None
    total = math.fsum(b for _, b in points)
    squares = math.fsum(b * b for _, b in points)
    best: tuple[float, int] | None = None
    left_sum = left_sq = 0.0
    for i, (_, b) in enumerate(points[:-1], start=1):
        left_sum += b
        left_sq += b * b
        if i < least or n - i < least or points[i][0] == points[i - 1][0]:
            continue
        gap = left_sum / i - (total - left_sum) / (n - i)
        inner = (left_sq - left_sum**2 / i) + (
            (squares - left_sq) - (total - left_sum) ** 2 / (n - i)
        )
        error = math.sqrt(max(inner, 1e-12) / (n - 2) * (1 / i + 1 / (n - i)))
        score = gap / error
        if best is None or score > best[0]:
            best = (score, i)
    if best is None:
        return None
    score, i = best
    return Cliff(
        at=points[i][0],
        before=middle.median(b for _, b in points[:i]),
        after=middle.median(b for _, b in points[i:]),
        n_before=i,
        n_after=n - i,
        t=score,
    )
