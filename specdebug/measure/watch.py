"""The newest run of a series against the recent ones: noise, worth a look, or a change; no rig.

A single run outside what the recent ones allow is looked at and alarms nobody. Two in a row that
both lie beyond the margin on one side, and whose mean the recent ones do not allow, are a change.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from specdebug.measure.history import steady_since

__all__ = ["Newest", "judge_newest"]

RECENT = 20
LEAST = 4
LEVEL = 0.99
# Of the mean of CONFIRM runs: about 1 false alarm in 1,000 steady runs (docs/statistics.md).
CHANGE_LEVEL = 0.995
CONFIRM = 2
MARGIN = 0.02

State = Literal["too few", "steady", "look", "regression", "improvement"]


@dataclass(frozen=True, slots=True)
class Newest:
    """What the newest figure is against the recent ones, all in the figures' unit.

    level: geometric mean of the n recent figures; low, high: where LEVEL of single new figures lie
    if nothing changed. since: index of the first figure of the change, None without one.
    """

    state: State
    value: float
    level: float | None
    low: float | None
    high: float | None
    n: int
    since: int | None = None

    @property
    def percent(self) -> float | None:
        """The newest figure against the level, in per cent."""
        return None if self.level is None else 100.0 * (self.value / self.level - 1.0)

    @property
    def sentence(self) -> str:
        if self.level is None or self.low is None or self.high is None:
            return (
                f"{self.value:.4g}, too few runs to judge it: that takes {LEAST} of one level "
                f"before the last {CONFIRM}, and there {'is' if self.n == 1 else 'are'} {self.n}."
            )
        words = {
            "steady": "nothing that the recent runs do not show as well",
            "look": "outside what the recent runs allow, once: run it again before believing it",
        }
        said = words.get(self.state, f"{self.state}, shown by {CONFIRM} runs in a row")
        return (
            f"{self.value:.4g}, {self.percent:+.1f} % against {self.level:.4g} of the {self.n} "
            f"recent runs ({100 * LEVEL:.0f} % of single runs lie in {self.low:.4g} to "
            f"{self.high:.4g}): {said}."
        )


def judge_newest(
    values: Sequence[float], *, higher_is_better: bool = True, margin: float = MARGIN
) -> Newest:
    """Judge the last of `values`, one positive figure per run, oldest first.

    The recent runs are up to RECENT of the present level, without the last CONFIRM. Raises
    ValueError on an empty series or on figures that are not positive numbers.
    """
    if not values:
        raise ValueError("a series without runs has no newest one")
    for value in values:
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"a series holds positive numbers only, got {value!r}")
    fresh, before = list(values[-CONFIRM:]), list(values[:-CONFIRM])
    recent = before[max(steady_since(before), len(before) - RECENT) :] if before else []
    if len(recent) < LEAST:
        return Newest("too few", values[-1], None, None, None, len(recent))
    from scipy.stats import t

    logs = [math.log(v) for v in recent]
    middle = statistics.fmean(logs)
    away = [math.log(v) - middle for v in fresh]
    spread, freedom = statistics.stdev(logs), len(logs) - 1
    reach = float(t.ppf((1 + LEVEL) / 2, freedom)) * spread * math.sqrt(1 + 1 / len(logs))
    factor = float(t.ppf((1 + CHANGE_LEVEL) / 2, freedom)) * spread
    reach_of_mean = factor * math.sqrt(1 / CONFIRM + 1 / len(logs))
    state: State = "look" if abs(away[-1]) > reach and _side(away[-1], margin) else "steady"
    since = None
    sides = {_side(v, margin) for v in away}
    # Drawn in, so that one very slow run beside an ordinary one does not pass for two.
    drawn_in = [min(max(v, -reach), reach) for v in away]
    if len(sides) == 1 and 0 not in sides and abs(statistics.fmean(drawn_in)) > reach_of_mean:
        state = "improvement" if (away[-1] > 0) == higher_is_better else "regression"
        since = len(values) - CONFIRM
    return Newest(
        state,
        values[-1],
        math.exp(middle),
        math.exp(middle - reach),
        math.exp(middle + reach),
        len(recent),
        since,
    )


def _side(difference: float, margin: float) -> int:
    """1 above the margin, -1 below it, 0 within."""
    return int(difference > math.log1p(margin)) - int(difference < math.log1p(-margin))
