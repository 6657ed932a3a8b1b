"""Drift of a rig, seen in the history of one control configuration that never changes.

Never across experiments: there a change is the point. Detection is ruptures' kernel change point
search with a linear kernel; its penalty of 3 ln n came out best on public benchmark histories.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Shift", "clipped", "shifts", "steady_since"]

MIN_SIZE = 4
PENALTY = 3.0
OUTLIER = 4.0


@dataclass(frozen=True, slots=True)
class Shift:
    """The level changes at `index`, the first figure of the new level; before, after: medians."""

    index: int
    before: float
    after: float

    @property
    def percent(self) -> float:
        """Change of the level in per cent."""
        return 100.0 * (self.after / self.before - 1.0)


def _noise(logs: Sequence[float]) -> float:
    """Spread of single figures from their differences, which a shift hardly touches."""
    steps = [abs(b - a) for a, b in pairwise(logs)]
    # 1.4826 turns a median deviation into a standard deviation; differences vary twice as much.
    return 1.4826 * statistics.median(steps) / math.sqrt(2) if steps else 0.0


def clipped(values: Sequence[float]) -> list[float]:
    """Logarithms with single outliers drawn in to OUTLIER spreads around their neighbours.

    One slow run is no drift. A trend loses by it; a control history has none by intention.
    """
    logs = [math.log(v) for v in values]
    spread = _noise(logs)
    out: list[float] = []
    for i, value in enumerate(logs):
        near = logs[max(0, i - 3) : i] + logs[i + 1 : i + 4]
        middle = statistics.median(near) if near else value
        reach = OUTLIER * spread
        out.append(min(max(value, middle - reach), middle + reach))
    return out


def shifts(values: Sequence[float], *, penalty: float = PENALTY) -> tuple[Shift, ...]:
    """Where the level of a control's figures changed, oldest first.

    Fewer than 2 * MIN_SIZE figures, or figures without any spread, give none. Raises ValueError on
    figures that are not positive numbers, ImportError without ruptures.
    """
    for value in values:
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"a history holds positive numbers only, got {value!r}")
    n = len(values)
    if n < 2 * MIN_SIZE:
        return ()
    logs = clipped(values)
    spread = _noise(logs)
    if spread <= 0:
        return ()
    import numpy as np
    import ruptures  # type: ignore[import-untyped,unused-ignore]

    signal = np.array([v / spread for v in logs]).reshape(-1, 1)
    ends = ruptures.KernelCPD(kernel="linear", min_size=MIN_SIZE).fit_predict(
        signal, pen=penalty * math.log(n)
    )
    bounds = [0, *ends]
    levels = [math.exp(statistics.median(logs[a:b])) for a, b in pairwise(bounds)]
    return tuple(
        Shift(index, before, after)
        for index, before, after in zip(bounds[1:-1], levels, levels[1:], strict=False)
    )


def steady_since(values: Sequence[float], margin: float = 0.02) -> int:
    """Index from which the control holds its present level: only later runs compare with today.

    Shifts within `margin` (0.02 is 2 %) do not count.
    """
    material = [s.index for s in shifts(values) if abs(s.after / s.before - 1) > margin]
    return material[-1] if material else 0
