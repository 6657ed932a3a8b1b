"""Drift of a rig, seen in the history of one control configuration that never changes.

Never across experiments: there a change is the point. Detection is ruptures' search with one fixed
setting, chosen on benchmark histories and held against public series (docs/statistics.md).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["ChangePoints", "Shift", "change_points", "clipped", "shifts", "steady_since"]

MIN_SIZE = 4
# Penalties in units of ln n: of a level that jumps, and of a series that wanders.
PENALTY = 3.0
COARSE_PENALTY = 5.0
OUTLIER = 4.0
# Noise is what figures up to so many runs apart differ by: neighbours may share a good hour.
REACH = 5
# Standard errors below the turning points of independent noise at which a series wanders.
WANDERS = -4.0


@dataclass(frozen=True, slots=True)
class Shift:
    """The level changes at `index`, the first figure of the new level; before, after: medians.

    n_before, n_after: figures on the level before and after, up to the next shift.
    """

    index: int
    before: float
    after: float
    n_before: int = 0
    n_after: int = 0

    @property
    def percent(self) -> float:
        """Change of the level in per cent."""
        return 100.0 * (self.after / self.before - 1.0)


@dataclass(frozen=True, slots=True)
class ChangePoints:
    """Indices of the first figure of each new level, oldest first.

    wanders: neighbouring figures go the same way more often than noise around levels does (a trend,
    a season, a random walk). Only coarse levels are looked for then, and they explain little.
    """

    indices: tuple[int, ...]
    wanders: bool


def _middle_spread(differences: Sequence[float]) -> float:
    # 1.4826 turns a median deviation into a standard deviation; differences vary twice as much.
    return 1.4826 * statistics.median(map(abs, differences)) / math.sqrt(2) if differences else 0.0


def _noise(signal: Sequence[float], reach: int = 1) -> float:
    """Spread of single figures from differences up to `reach` apart, which shifts hardly touch."""
    return max(
        _middle_spread([b - a for a, b in zip(signal, signal[lag:], strict=False)])
        for lag in range(1, reach + 1)
    )


def clipped(signal: Sequence[float]) -> list[float]:
    """The signal with single outliers drawn in to OUTLIER spreads around their neighbours.

    One slow run is no drift. A trend loses by it; a control history has none by intention.
    """
    reach = OUTLIER * _noise(signal)
    out: list[float] = []
    for i, value in enumerate(signal):
        near = [*signal[max(0, i - 3) : i], *signal[i + 1 : i + 4]]
        middle = statistics.median(near) if near else value
        out.append(min(max(value, middle - reach), middle + reach))
    return out


def _wanders(signal: Sequence[float]) -> bool:
    """Turning point test: independent noise turns at two thirds of its points."""
    steps = [b - a for a, b in pairwise(signal)]
    centre = statistics.median(steps)
    turns = sum((a - centre) * (b - centre) < 0 for a, b in pairwise(steps))
    points = len(signal) - 2
    error = math.sqrt((16 * len(signal) - 29) / 90)
    return turns - 2 / 3 * points < WANDERS * error


def change_points(values: Sequence[float]) -> ChangePoints:
    """Where the level of a series changes; any finite numbers, equally spaced by run.

    Positive figures are compared as logarithms, so that 3 % is 3 % at any speed. Fewer than
    2 * MIN_SIZE figures, or figures without any spread, give none. Raises ImportError without
    ruptures.
    """
    if len(values) < 2 * MIN_SIZE:
        return ChangePoints((), False)
    signal = [math.log(v) for v in values] if min(values) > 0 else list(values)
    if _wanders(signal):
        return ChangePoints(_coarse(values), True)
    drawn_in = clipped(signal)
    noise = _noise(drawn_in, REACH)
    if noise <= 0:
        return ChangePoints((), False)
    import numpy as np
    import ruptures  # type: ignore[import-untyped,unused-ignore]

    scaled = np.array(drawn_in).reshape(-1, 1) / noise
    search = ruptures.KernelCPD(kernel="linear", min_size=MIN_SIZE)
    ends = search.fit_predict(scaled, pen=PENALTY * math.log(len(signal)))
    return ChangePoints(tuple(int(end) for end in ends[:-1]), False)


def _coarse(values: Sequence[float]) -> tuple[int, ...]:
    """Binary segmentation in units of the whole spread: differences say nothing of the noise."""
    whole = statistics.pstdev(values)
    if whole <= 0:
        return ()
    import numpy as np
    import ruptures

    scaled = (np.array(values) - statistics.fmean(values)).reshape(-1, 1) / whole
    search = ruptures.Binseg(model="l2", min_size=MIN_SIZE, jump=1)
    ends = search.fit_predict(scaled, pen=COARSE_PENALTY * math.log(len(values)))
    return tuple(int(end) for end in ends[:-1])


def shifts(values: Sequence[float]) -> tuple[Shift, ...]:
    """Where the level of a control's figures changed, oldest first.

    Raises ValueError on figures that are not positive numbers, ImportError without ruptures.
    """
    for value in values:
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"a history holds positive numbers only, got {value!r}")
    found = change_points(values)
    bounds = [0, *found.indices, len(values)]
    levels = [statistics.median(values[a:b]) for a, b in pairwise(bounds) if b > a]
    return tuple(
        Shift(
            index=bounds[k],
            before=levels[k - 1],
            after=levels[k],
            n_before=bounds[k] - bounds[k - 1],
            n_after=bounds[k + 1] - bounds[k],
        )
        for k in range(1, len(bounds) - 1)
    )


def steady_since(values: Sequence[float], margin: float = 0.02) -> int:
    """Index from which the control holds its present level: only later runs compare with today.

    Shifts within `margin` (0.02 is 2 %) do not count.
    """
    material = [s.index for s in shifts(values) if abs(s.after / s.before - 1) > margin]
    return material[-1] if material else 0
