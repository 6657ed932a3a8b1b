"""Which t test is taken, and that it is the one scipy has."""

from __future__ import annotations

import math

import pytest
from scipy.stats import ttest_ind

from specdebug.measure.two_means import two_means

FEW = ([4.60, 4.63, 4.58, 4.61, 4.64], [4.55, 4.57, 4.52, 4.58, 4.54])
MANY = ([*FEW[0], 4.62], [*FEW[1], 4.53])
APART = (FEW[0], [4.3, 4.9, 4.1, 4.7, 4.5])


@pytest.mark.parametrize(
    ("sides", "student"),
    [
        (FEW, True),
        (MANY, False),
        ((FEW[0], FEW[1][:4]), False),
        (APART, False),  # spreads more than a factor of three apart
    ],
)
def test_student_is_taken_for_few_and_alike_and_welch_for_all_else(
    sides: tuple[list[float], list[float]], student: bool
) -> None:
    before, after = sides
    found = two_means(before, after)
    assert found.method == ("Student's t on logs" if student else "Welch's t on logs")
    real = ttest_ind(after, before, equal_var=student).confidence_interval(0.95)
    assert found.interval(0.05) == pytest.approx((real.low, real.high))


def test_sides_without_any_spread_have_an_interval_of_one_point() -> None:
    found = two_means([1.0, 1.0, 1.0], [1.5, 1.5, 1.5])
    assert found.interval(0.05) == (0.5, 0.5)


def test_one_side_without_spread_leaves_the_other_ones_freedom() -> None:
    found = two_means([0.0, 0.0, 0.0], [0.1, 0.2, 0.3])
    assert found.method == "Welch's t on logs"
    assert found.freedom == pytest.approx(2)
    assert found.error == pytest.approx(0.1 / math.sqrt(3))
