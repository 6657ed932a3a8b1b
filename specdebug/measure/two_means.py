"""The interval of a difference of two means by a t test; which test, is decided here alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specdebug.measure.looks import FEW
from specdebug.measure.middle import mean

__all__ = ["TwoMeans", "known_spread", "two_means", "variance"]

# Five figures a side whose true spreads differ by a factor of five: so decided, the test errs in
# .057, Student's alone in .075, Welch's alone in .053 (docs/statistics.md).
ALIKE = 3.0


@dataclass(frozen=True, slots=True)
class TwoMeans:
    """difference: mean of after less that of before; error: its standard error; freedom: degrees of
    freedom of its t, infinite for a normal law. No spread at all leaves an error of 0."""

    difference: float
    error: float
    freedom: float
    method: str

    def interval(self, alpha: float) -> tuple[float, float]:
        """Of the difference, at 1 - alpha."""
        if self.error == 0:
            return self.difference, self.difference
        if math.isinf(self.freedom):
            from statistics import NormalDist  # late: see measure/middle.py

            factor = NormalDist().inv_cdf(1 - alpha / 2)
        else:
            from scipy.special import stdtrit

            factor = float(stdtrit(self.freedom, 1 - alpha / 2))
        reach = factor * self.error
        return self.difference - reach, self.difference + reach


def two_means(before: Sequence[float], after: Sequence[float]) -> TwoMeans:
    """Compare two samples of two or more figures.

    Welch's t, which asks nothing of the spreads. At few figures it errs less than it may and so
    sees less: the same small number on both sides, with spreads within a factor of three, takes
    Student's t. The statistic is the same, only the degrees of freedom differ.
    """
    spreads = [variance(side) for side in (before, after)]
    parts = [spread / len(side) for spread, side in zip(spreads, (before, after), strict=True)]
    difference, error = mean(after) - mean(before), math.sqrt(sum(parts))
    alike = max(spreads) <= ALIKE**2 * min(spreads)
    if error and alike and len(before) == len(after) <= FEW:
        return TwoMeans(difference, error, 2 * len(before) - 2, "Student's t on logs")
    freedom = math.inf
    if error:
        freedom = sum(parts) ** 2 / sum(
            part**2 / (len(side) - 1) for part, side in zip(parts, (before, after), strict=True)
        )
    return TwoMeans(difference, error, freedom, "Welch's t on logs")


def known_spread(
    before: Sequence[float], after: Sequence[float], spread: float, freedom: int | None
) -> TwoMeans:
    """The same with a standard deviation from elsewhere, which has `freedom` degrees of freedom;
    None takes it as exact. One figure a side is enough."""
    return TwoMeans(
        mean(after) - mean(before),
        spread * math.sqrt(1 / len(before) + 1 / len(after)),
        math.inf if freedom is None else freedom,
        "known spread",
    )


def variance(values: Sequence[float]) -> float:
    """Sample variance; `statistics.variance` reckons in fractions, which takes far longer."""
    if min(values) == max(values):
        return 0.0
    middle = mean(values)
    return math.fsum((v - middle) ** 2 for v in values) / (len(values) - 1)
