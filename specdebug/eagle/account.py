"""The account of a speculative step, with ranges: what each part costs and what would pay; no I/O.

A step is taken as `fixed + slope * num_steps` milliseconds. The slope holds one forward of the
draft and the verification of one more token: runs at several num_steps cannot tell the two apart.
Figures are milliseconds per step and output tokens per second over all running requests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specdebug.eagle.speedup import break_even_accept_len, ceiling_tok_s

__all__ = ["Account", "Depth", "Part", "Range", "StepFit", "StepPoint", "fit_steps", "whole_step"]

# Two-sided 95 % of a normal distribution, where the spread is taken as known.
FACTOR = 1.96
ACCEPTANCE = "acceptance at the plain step's cost"


@dataclass(frozen=True, slots=True)
class Range:
    """A figure with the interval that it lies in, 95 % where a spread was measured."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    def minus(self, other: Range) -> Range:
        """The difference of two figures with independent errors."""
        low = math.hypot(self.value - self.low, other.high - other.value)
        high = math.hypot(self.high - self.value, other.value - other.low)
        value = self.value - other.value
        return Range(value, value - low, value + high)


@dataclass(frozen=True, slots=True)
class StepPoint:
    """The step time of one run at num_steps (0: without a draft).

    error_ms: standard error of its mean; n: repeats behind it.
    """

    num_steps: int
    ms: float
    error_ms: float
    label: str = ""
    n: int = 1


@dataclass(frozen=True, slots=True)
class StepFit:
    """The line through the step times. covariance: of (fixed, slope) in ms squared.

    checked: more than two depths lie on it, so that something could have contradicted the line.
    excess: distance of the points from the line in units of their own errors, at least 1; all
    ranges are widened by it.
    """

    fixed_ms: float
    slope_ms: float
    covariance: tuple[float, float, float]
    points: tuple[StepPoint, ...]
    factor: float
    checked: bool
    excess: float

    @property
    def fixed(self) -> Range:
        """Milliseconds of a step that do not depend on num_steps."""
        return self._range(self.fixed_ms, self.covariance[0])

    @property
    def slope(self) -> Range:
        """Milliseconds of one more draft step with the verification of its token."""
        return self._range(self.slope_ms, self.covariance[2])

    def at(self, num_steps: int, new_run: float = 0.0) -> Range:
        """Step time at num_steps; new_run: relative error with which a further run would repeat."""
        fixed, mixed, slope = self.covariance
        value = self.fixed_ms + self.slope_ms * num_steps
        variance = fixed + 2 * num_steps * mixed + num_steps**2 * slope
        return self._range(value, variance + (new_run * value) ** 2)

    @property
    def deepest(self) -> int:
        return max(p.num_steps for p in self.points)

    def _range(self, value: float, variance: float) -> Range:
        reach = self.factor * math.sqrt(max(variance, 0.0))
        return Range(value, value - reach, value + reach)


def fit_steps(points: Sequence[StepPoint], factor: float = FACTOR) -> StepFit | None:
    """Weighted least squares over runs with a draft; None with fewer than two depths.

    factor: standard errors in a range, Student's where the spread rests on few repeats. Raises
    ValueError on a step time or error that is not a positive number.
    """
    used = tuple(p for p in points if p.num_steps > 0)
    for p in used:
        if not (p.ms > 0 and p.error_ms > 0 and math.isfinite(p.ms + p.error_ms)):
            raise ValueError(f"{p.label or p.num_steps}: step time {p.ms!r} +- {p.error_ms!r} ms")
    depths = len({p.num_steps for p in used})
    if depths < 2:
        return None
    weights = [1 / p.error_ms**2 for p in used]
    w = math.fsum(weights)
    wx = math.fsum(v * p.num_steps for v, p in zip(weights, used, strict=True))
    wxx = math.fsum(v * p.num_steps**2 for v, p in zip(weights, used, strict=True))
    wy = math.fsum(v * p.ms for v, p in zip(weights, used, strict=True))
    wxy = math.fsum(v * p.num_steps * p.ms for v, p in zip(weights, used, strict=True))
    whole = w * wxx - wx * wx
    fixed, slope = (wxx * wy - wx * wxy) / whole, (w * wxy - wx * wy) / whole
    rest = math.fsum(
        v * (p.ms - fixed - slope * p.num_steps) ** 2 for v, p in zip(weights, used, strict=True)
    )
    freedom = len(used) - 2
    excess = max(1.0, math.sqrt(rest / freedom)) if freedom > 0 else 1.0
    spread = excess**2 / whole
    return StepFit(
        fixed,
        slope,
        (wxx * spread, -wx * spread, w * spread),
        used,
        factor,
        depths > 2,
        excess,
    )


@dataclass(frozen=True, slots=True)
class Part:
    """What one part of the step takes (-) or gives (+), in tok/s, and its milliseconds a step.

    reached: throughput after this part and all before it. ms: None for acceptance.
    """

    name: str
    tok_s: Range
    reached: float
    ms: Range | None = None


def _gain(baseline: Range, accept_len: Range) -> Range:
    """What acceptance would give if a step cost what a plain one does, in the baseline's unit."""
    value = baseline.value * (accept_len.value - 1)
    low = math.hypot(
        (accept_len.value - 1) * (baseline.value - baseline.low),
        baseline.value * (accept_len.value - accept_len.low),
    )
    high = math.hypot(
        (accept_len.value - 1) * (baseline.high - baseline.value),
        baseline.value * (accept_len.high - accept_len.value),
    )
    return Range(value, value - low, value + high)


def whole_step(baseline: Range, accept_len: Range, tok_s: Range) -> tuple[Part, Part]:
    """From the baseline to a measured figure where the step is not shared out: what acceptance
    gives at the plain step's cost, and what the longer step takes as a whole, in tok/s."""
    ideal = baseline.value * accept_len.value
    gain = _gain(baseline, accept_len)
    loss = tok_s.value - ideal
    low = math.hypot(
        tok_s.value - tok_s.low,
        accept_len.value * (baseline.high - baseline.value),
        baseline.value * (accept_len.high - accept_len.value),
    )
    high = math.hypot(
        tok_s.high - tok_s.value,
        accept_len.value * (baseline.value - baseline.low),
        baseline.value * (accept_len.value - accept_len.low),
    )
    return (
        Part(ACCEPTANCE, gain, ideal),
        Part("all added step time", Range(loss, loss - low, loss + high), tok_s.value),
    )


@dataclass(frozen=True, slots=True)
class Depth:
    """What is predicted for one num_steps. measured: a run at this depth is behind the account.

    beyond: deeper than any run, so that both lines are continued past what was seen.
    """

    num_steps: int
    accept_len: Range
    step_ms: Range
    tok_s: Range
    measured: bool
    beyond: bool


@dataclass(frozen=True, slots=True)
class Account:
    """What a speculative step costs at one batch size and what it could give.

    running: requests decoded at once. plain: step without a draft, None where no baseline is known.
    accept_len_at: expected accept length by num_steps with its range. new_run: relative error with
    which another run repeats. spread: where the errors come from, in words.
    """

    running: float
    fit: StepFit
    plain: Range | None
    accept_len_at: Callable[[int], Range]
    new_run: float
    spread: str
    deepest_known: int

    @property
    def baseline_tok_s(self) -> float | None:
        return None if self.plain is None else 1000.0 * self.running / self.plain.value

    @property
    def overhead(self) -> Range | None:
        """Fixed milliseconds above a plain step, which neither drafting nor the target explains."""
        return None if self.plain is None else self.fit.fixed.minus(self.plain)

    def depth(self, num_steps: int) -> Depth:
        """Accept length, step time and throughput predicted for a new run at num_steps."""
        length = self.accept_len_at(num_steps)
        step = self.fit.at(num_steps, self.new_run)
        value = self._tok_s(length.value, step.value)
        # Errors of the two factors are independent: relative errors add as squares.
        low = math.hypot(1 - length.low / length.value, step.high / step.value - 1)
        high = math.hypot(length.high / length.value - 1, 1 - max(step.low, 1e-9) / step.value)
        return Depth(
            num_steps,
            length,
            step,
            Range(value, value * max(1 - low, 0.0), value * (1 + high)),
            any(p.num_steps == num_steps for p in self.fit.points),
            num_steps > self.fit.deepest or num_steps > self.deepest_known,
        )

    def depths(self, most: int | None = None) -> tuple[Depth, ...]:
        """Every num_steps from 1 to `most`, by default the deepest that was measured."""
        return tuple(self.depth(n) for n in range(1, (most or self.fit.deepest) + 1))

    def best(self, most: int | None = None) -> Depth:
        """The num_steps with the highest predicted throughput."""
        return max(self.depths(most), key=lambda d: d.tok_s.value)

    def as_good(self, most: int | None = None) -> tuple[int, ...]:
        """Depths that are not told apart from the best one: their ranges reach its value."""
        best = self.best(most)
        return tuple(d.num_steps for d in self.depths(most) if d.tok_s.high >= best.tok_s.value)

    def break_even(self, num_steps: int) -> float | None:
        """Accept length at which num_steps is as fast as the plain run."""
        if self.plain is None:
            return None
        return break_even_accept_len(self.fit.at(num_steps).value, self.plain.value)

    def ceiling(self, num_steps: int) -> float:
        """Throughput of a perfect draft at num_steps."""
        return ceiling_tok_s(num_steps + 1, self.fit.at(num_steps).value, self.running)

    def needs(self, num_steps: int, goal_tok_s: float) -> tuple[float, float]:
        """The accept length, and failing that the step time in ms, that would reach a goal."""
        depth = self.depth(num_steps)
        length = goal_tok_s * depth.step_ms.value / 1000.0 / self.running
        return length, 1000.0 * depth.accept_len.value * self.running / goal_tok_s

    def parts(self, num_steps: int, accept_len: float, tok_s: float) -> tuple[Part, ...]:
        """From the baseline to a measured figure; values add up to the difference exactly.

        First acceptance, as if a step cost what a plain one does; then the loss through the longer
        step, shared by the milliseconds that each part adds. Empty without a baseline, and where
        the step is no longer than a plain one.
        """
        base, overhead = self.baseline_tok_s, self.overhead
        if base is None or overhead is None or self.plain is None:
            return ()
        added = 1000.0 * accept_len * self.running / tok_s - self.plain.value
        if added <= 0:
            return ()
        ideal = base * accept_len
        loss, slope = tok_s - ideal, self.fit.slope
        drafting = Range(*(num_steps * v for v in (slope.value, slope.low, slope.high)))
        rest = added - drafting.value
        scale = loss / added

        def share(ms: Range) -> Range:
            ends = sorted((scale * ms.low, scale * ms.high))
            return Range(scale * ms.value, ends[0], ends[1])

        length = self.accept_len_at(num_steps)
        own = Range(
            accept_len,
            length.low * accept_len / length.value,
            length.high * accept_len / length.value,
        )
        gain = _gain(Range(base, *self._baseline_ends()), own)
        # What is left is what this run has beyond its draft steps; the fit says how surely.
        left = Range(
            rest, rest - (overhead.value - overhead.low), rest + overhead.high - overhead.value
        )
        drafted = share(drafting)
        return (
            Part(ACCEPTANCE, gain, ideal),
            Part(
                "draft forwards with their verification", drafted, ideal + drafted.value, drafting
            ),
            Part("fixed overhead above a plain step", share(left), tok_s, left),
        )

    def _baseline_ends(self) -> tuple[float, float]:
        if self.plain is None:
            raise ValueError("no baseline is known")
        rate = 1000.0 * self.running
        return rate / self.plain.high, rate / max(self.plain.low, 1e-9)

    def _tok_s(self, accept_len: float, step: float) -> float:
        return 1000.0 * accept_len * self.running / step if step > 0 else 0.0
