import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.measure.middle import mean, median


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_mean_and_median_are_those_of_statistics(values: list[float]) -> None:
    assert mean(iter(values)) == pytest.approx(statistics.fmean(values), rel=1e-12, abs=1e-9)
    assert median(iter(values)) == statistics.median(values)


def test_no_values_have_no_middle() -> None:
    with pytest.raises(ZeroDivisionError):
        mean([])
    with pytest.raises(IndexError):
        median([])
