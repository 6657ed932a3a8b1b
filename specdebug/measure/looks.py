"""What one look at figures may spend, so that all looks at a question together call a change that
is none at most once in twenty; and which figures several starts give. Knows no run and no record.

The figures that were planned in advance are judged once, at 95 %. Every other look at the same
question, before the plan is complete or after it, is taken at 99.9 % and further looks at more.
Sizes were simulated (`benchmarks/compare_rules.py`, docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from specdebug.measure.middle import mean

__all__ = ["FEW", "alpha_of", "extra_looks", "figures_of"]

# Up to FEW figures a side the planned look errs in .043 (3) to .050 (5) at .05; at .048 Welch's t
# errs in .043 (6) to .047 (20), which leaves the same room for later looks.
PLANNED, FEW = 0.05, 5
PLANNED_OF_MANY = 0.048
# Three further looks at .001 add .001 to .002 to that; each one beyond them spends half as much.
EXTRA = 0.001
EXTRA_LOOKS = 3


def alpha_of(n: int, extra: int = 0) -> float:
    """Two-sided error of one interval with `n` figures on the smaller side.

    extra: 0 for the look at what was planned; k for the k-th look that was not.
    """
    if extra < 0 or n < 1:
        raise ValueError(f"{n} figures and {extra} looks more: neither can be")
    if extra == 0:
        return PLANNED if n <= FEW else PLANNED_OF_MANY
    return EXTRA / 2.0 ** max(extra - EXTRA_LOOKS, 0)


def extra_looks(ended: int, planned: int) -> int:
    """Which look it is when `ended` of `planned` starts have ended; 0: the planned one."""
    if ended == planned:
        return 0
    return ended if ended < planned else ended - planned


def figures_of(starts: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The figures of several starts: of three or more starts the mean of each, because repeats
    within a start hang together; of fewer all repeats. Starts without figures are left out."""
    values = [tuple(v) for v in starts if v]
    if len(values) >= 3:
        return tuple(mean(v) for v in values)
    return tuple(v for own in values for v in own)
