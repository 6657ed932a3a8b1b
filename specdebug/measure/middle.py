"""Mean and median. Those of `statistics` are the same; importing it (fractions, decimals, random
numbers) takes a tenth of the time in which `specdebug check` reads a small log."""

import math
from collections.abc import Iterable

__all__ = ["mean", "median"]


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean. Raises ZeroDivisionError without values."""
    figures = list(values)
    return math.fsum(figures) / len(figures)


def median(values: Iterable[float]) -> float:
    """The middle figure, the mean of the middle two of an even number. Raises IndexError without
    values."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
