"""A throughput change split into acceptance and step time, each part with its own interval.

throughput = acceptance - step time as log ratios, exactly, at equal concurrency. A plain run has
accept length 1 without error, so its acceptance part is exact.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from specdebug.measure.compare import POOLED_ALPHA, log_sd, percent_of
from specdebug.measure.looks import alpha_of
from specdebug.measure.two_means import known_spread, two_means

__all__ = ["Part", "Side", "SplitWithRanges", "split_sides"]


@dataclass(frozen=True, slots=True)
class Side:
    """One run's figures: tok/s and accept length of each repeat, in the same order.

    accept_len: one figure for all repeats, or one each; (1.0,) for a plain run.
    """

    tok_s: tuple[float, ...]
    accept_len: tuple[float, ...]

    def logs(self) -> tuple[list[float], list[float], list[float]]:
        """Logarithms of throughput, accept length and step time, one per repeat.

        Raises ValueError where a figure is not above zero or the numbers of figures do not fit.
        """
        lengths = self.accept_len
        if len(lengths) == 1:
            lengths *= len(self.tok_s)
        if not self.tok_s or len(lengths) != len(self.tok_s):
            raise ValueError(f"{len(self.tok_s)} throughputs and {len(lengths)} accept lengths")
        for value in (*self.tok_s, *lengths):
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"a figure is {value!r}; only positive numbers compare")
        speeds = [math.log(v) for v in self.tok_s]
        accepts = [math.log(v) for v in lengths]
        return speeds, accepts, [a - s for a, s in zip(accepts, speeds, strict=True)]


@dataclass(frozen=True, slots=True)
class Part:
    """One part as a log ratio with its interval; low and high None where no spread is known."""

    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{percent_of(self.value)} (no interval: single figures)"
        if self.low == self.high:
            return percent_of(self.value)
        return f"{percent_of(self.value)} ({percent_of(self.low)} to {percent_of(self.high)})"


@dataclass(frozen=True, slots=True)
class SplitWithRanges:
    """The three parts; throughput.value = acceptance.value - step_time.value."""

    throughput: Part
    acceptance: Part
    step_time: Part
    level: float

    @property
    def sentence(self) -> str:
        return (
            f"throughput {self.throughput}: acceptance {self.acceptance}, step time "
            f"{self.step_time}, {100 * self.level:.3g} % intervals"
        )


def split_sides(
    before: Side, after: Side, *, pooled_cv: float | None = None, extra: int = 0
) -> SplitWithRanges:
    """Split the change from `before` to `after`, each part with its interval.

    Three or more repeats a side: a t test on logs (measure/two_means.py). Fewer: pooled_cv for
    throughput and step time, and for acceptance where it was measured in each repeat; a single
    accept length has no interval then, and neither has the step time that is derived from it.
    """
    n = min(len(before.tok_s), len(after.tok_s))
    alpha, few = alpha_of(n, extra), n < 3
    if few:
        alpha = min(alpha, POOLED_ALPHA)
    one, other = before.logs(), after.logs()
    speed, accept, step = (
        _part(one[k], other[k], alpha, pooled_cv if few else None, few) for k in range(3)
    )
    exact = before.accept_len == (1.0,) and after.accept_len == (1.0,)
    blind = few and not exact and min(len(before.accept_len), len(after.accept_len)) < 2
    if blind:
        accept = Part(accept.value, None, None)
        step = Part(step.value, None, None)
    return SplitWithRanges(speed, accept, step, 1 - alpha)


def _part(
    before: list[float], after: list[float], alpha: float, pooled_cv: float | None, few: bool
) -> Part:
    value = statistics.fmean(after) - statistics.fmean(before)
    if few:
        if pooled_cv is None:
            return Part(value, None, None)
        known = known_spread(before, after, log_sd(pooled_cv), None)
        return Part(value, *known.interval(alpha))
    return Part(value, *two_means(before, after).interval(alpha))
