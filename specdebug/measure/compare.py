"""Comparing two samples of a positive figure honestly; knows no run, no engine, no rig.

Differences are log ratios, so "+5 % then -5 %" is symmetric and throughput splits into parts that
add up. The margin is tested before significance, and "not significant" never reads as "no change".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from specdebug.measure.looks import alpha_of
from specdebug.measure.middle import mean
from specdebug.measure.two_means import known_spread, two_means, variance

__all__ = [
    "Comparison",
    "Split",
    "Verdict",
    "compare",
    "log_sd",
    "percent_of",
    "repeats_for",
    "split_throughput",
]

Verdict = Literal[
    "invalid",
    "unreplicated",
    "regression",
    "improvement",
    "no material change",
    "small change",
    "inconclusive",
]

MARGIN = 0.02
EFFECT = 0.05
MAX_REPEATS = 50
# Configurations do not all spread alike: at .05 a pooled spread errs in .057, at .043 in .050.
POOLED_ALPHA = 0.043


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome of comparing `after` with `before`.

    ratio: geometric mean of after over that of before; low, high: its interval at `level`.
    unreplicated: at least one side is a single figure. repeats: how many per side would show a
    change of `effect` with power 0.8, only for "inconclusive"; None when over MAX_REPEATS.
    """

    verdict: Verdict
    sentence: str
    ratio: float
    low: float | None
    high: float | None
    level: float
    method: str
    n_before: int
    n_after: int
    unreplicated: bool
    repeats: int | None = None

    @property
    def change_percent(self) -> float:
        """Change in per cent, -36.9 for a ratio of 0.631."""
        return 100.0 * (self.ratio - 1.0)


@dataclass(frozen=True, slots=True)
class Split:
    """Throughput change as log ratios: throughput = acceptance - step_time, exactly."""

    throughput: float
    acceptance: float
    step_time: float

    @property
    def sentence(self) -> str:
        return (
            f"throughput {percent_of(self.throughput)}: acceptance {percent_of(self.acceptance)}, "
            f"step time {percent_of(self.step_time)} ({math.exp(self.acceptance):.2f} / "
            f"{math.exp(self.step_time):.2f} = {math.exp(self.throughput):.2f})"
        )


def split_throughput(
    tok_s_before: float, tok_s_after: float, len_before: float, len_after: float
) -> Split:
    """Split a throughput change at equal concurrency; a plain run has accept length 1."""
    total = math.log(tok_s_after / tok_s_before)
    acceptance = math.log(len_after / len_before)
    return Split(total, acceptance, acceptance - total)


def percent_of(log_ratio: float) -> str:
    """A log ratio as a signed change in per cent, "-17.8 %"."""
    return f"{100 * (math.exp(log_ratio) - 1):+.1f} %"


def log_sd(cv: float) -> float:
    """Standard deviation of the logarithm for a coefficient of variation of the figure itself."""
    return math.sqrt(math.log1p(cv * cv))


def repeats_for(effect: float, cv: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Repeats per configuration that show a relative change of `effect` (two-sided t test)."""
    from statsmodels.stats.power import TTestIndPower

    size = math.log1p(effect) / log_sd(cv)
    needed = TTestIndPower().solve_power(effect_size=size, power=power, alpha=alpha)
    return max(2, math.ceil(float(needed)))


def compare(
    before: Sequence[float],
    after: Sequence[float],
    *,
    margin: float = MARGIN,
    pooled_cv: float | None = None,
    pooled_df: int | None = None,
    higher_is_better: bool = True,
    prefer_pooled: bool = False,
    effect: float = EFFECT,
    extra: int = 0,
    invalid: str | None = None,
    what: str = "throughput",
    say_repeats: bool = True,
) -> Comparison:
    """Judge whether `after` differs from `before` by more than `margin`.

    Three or more repeats on both sides: a t test on logs (measure/two_means.py). Fewer, or
    `prefer_pooled`: the spread of earlier configurations on the same rig (`pooled_cv`, with
    pooled_df degrees of freedom; None treats it as known), tested at POOLED_ALPHA. Neither:
    "unreplicated". The warm-up is no repeat and must not be among the figures. extra: which look at
    the question this is beside the planned one (measure/looks.py); its interval is wider. effect:
    the change that an inconclusive answer says the repeats for, judged as the next look would be.
    invalid: why the runs must not be compared at all. say_repeats: work out how many repeats an
    inconclusive answer lacks, which imports statsmodels (seconds when cold). Raises ValueError on
    figures that are not positive numbers or on an empty side.
    """
    logs = [_logs("before", before), _logs("after", after)]
    diff = mean(logs[1]) - mean(logs[0])
    n_before, n_after = len(before), len(after)
    shell = Comparison(
        "invalid",
        invalid or "",
        math.exp(diff),
        None,
        None,
        0.95,
        "none",
        n_before,
        n_after,
        min(n_before, n_after) == 1,
    )
    if invalid is not None:
        return replace(shell, sentence=f"The runs cannot be compared: {invalid}.")
    pooled = pooled_cv is not None and (prefer_pooled or min(n_before, n_after) < 3)
    if not pooled and min(n_before, n_after) < 3:
        text = (
            f"{what} {percent_of(diff)}, but {n_before} and {n_after} figures without a known "
            "run-to-run spread allow no verdict: repeat each run at least 3 times, interleaved."
        )
        return replace(shell, verdict="unreplicated", sentence=text)
    alpha = alpha_of(min(n_before, n_after), extra)
    if pooled and pooled_cv is not None:
        alpha = min(alpha, POOLED_ALPHA)
        spread = log_sd(pooled_cv)
        test = known_spread(logs[0], logs[1], spread, pooled_df)
        method = f"a spread of {100 * pooled_cv:.1f} % taken from elsewhere"
    else:
        test = two_means(logs[0], logs[1])
        spread = math.sqrt(mean([variance(side) for side in logs]))
        method = test.method
    wide = low, high = test.interval(alpha)
    verdict = _verdict(wide, test.interval(0.10), margin, higher_is_better)
    result = replace(
        shell,
        verdict=verdict,
        low=math.exp(low),
        high=math.exp(high),
        level=1 - alpha,
        method=method,
        sentence=(
            f"{what} {percent_of(diff)} ({100 * (1 - alpha):.3g} % interval {percent_of(low)} to "
            f"{percent_of(high)}, {n_before} and {n_after} figures, {method}): {verdict}."
        ),
    )
    if verdict != "inconclusive" or not say_repeats:
        return result
    return _with_repeats(result, spread, effect, alpha_of(1, extra + 1))


def _logs(name: str, values: Sequence[float]) -> list[float]:
    if not values:
        raise ValueError(f"no figure in {name!r}")
    for value in values:
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name!r} holds {value!r}; only positive numbers compare")
    return [math.log(v) for v in values]


def _with_repeats(result: Comparison, spread: float, effect: float, alpha: float) -> Comparison:
    cv = math.sqrt(math.expm1(spread * spread))
    if cv <= 0:
        return result
    try:
        needed = repeats_for(effect, cv, alpha=alpha)
    except ImportError:
        return result
    if needed > MAX_REPEATS:
        more = f" At this spread more than {MAX_REPEATS} repeats would be needed."
        return replace(result, sentence=result.sentence + more)
    lacking = max(needed - min(result.n_before, result.n_after), 1)
    more = (
        f" At this spread {lacking} more repeats per configuration would show a change of "
        f"{100 * effect:.3g} % (added to these, they are judged at {100 * (1 - alpha):.4g} %)."
    )
    return replace(result, sentence=result.sentence + more, repeats=needed)


def _verdict(
    wide: tuple[float, float], narrow: tuple[float, float], margin: float, higher_is_better: bool
) -> Verdict:
    up, down = math.log1p(margin), math.log1p(-margin)
    if wide[0] > up:
        return "improvement" if higher_is_better else "regression"
    if wide[1] < down:
        return "regression" if higher_is_better else "improvement"
    if down < narrow[0] and narrow[1] < up:
        return "no material change"
    if wide[0] > 0 or wide[1] < 0:
        return "small change"
    return "inconclusive"
