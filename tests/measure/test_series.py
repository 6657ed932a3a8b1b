import math
import random

import pytest

from specdebug.measure import series

NAN = math.nan


def test_step_time_counts_tokens_of_all_running_requests() -> None:
    assert series.step_times([2.2], [48], [2917.0]) == pytest.approx([36.2], abs=0.01)


def test_a_plain_line_counts_one_token() -> None:
    assert series.step_times([NAN], [1], [90.0]) == pytest.approx([11.11], abs=0.01)


def test_an_idle_line_has_no_step_time() -> None:
    assert all(math.isnan(t) for t in series.step_times([1.5, 1.5], [0, 1], [90.0, 0.0]))


def test_a_cold_first_line_is_not_counted() -> None:
    assert series.counted([1965.0, 18.6, 18.5, 18.7]) == [False, True, True, True]


def test_a_stretch_that_accepts_nothing_stays_counted() -> None:
    # Throughput falls to a third of the median while each step takes as long as before.
    lengths, tok_s = [3.0] * 10 + [1.0] * 8, [150.0] * 10 + [50.0] * 8
    times = series.step_times(lengths, [1.0] * 18, tok_s)
    assert all(series.counted(times))


def test_nothing_is_counted_where_no_line_has_a_step_time() -> None:
    assert series.counted([NAN, NAN]) == [False, False]


def test_median_and_spread_skip_what_is_absent() -> None:
    assert series.median([NAN, 1.0, 3.0]) == 2.0
    assert series.median([NAN]) is None
    assert series.spread([NAN, 1.0, 3.0]) == 2.0
    assert series.spread([]) == 0.0


def test_a_slope_is_found_with_its_t_value() -> None:
    draw = random.Random(1)
    x = [k / 10 for k in range(60)]
    y = [3 - 0.2 * v + draw.gauss(0, 0.1) for v in x]
    found = series.slope(x, y)
    assert found is not None
    assert found.per_unit == pytest.approx(-0.2, abs=0.03)
    assert found.t < -10


def test_noise_alone_has_a_small_t_value() -> None:
    draw = random.Random(2)
    found = series.slope(list(range(60)), [draw.gauss(2, 0.2) for _ in range(60)])
    assert found is not None
    assert abs(found.t) < 3


def test_too_few_points_or_equal_x_have_no_slope() -> None:
    assert series.slope([1, 2, 3, 4], [1, 2, 3, 4]) is None
    assert series.slope([1] * 6, [1, 2, 3, 4, 5, 6]) is None


def test_a_cliff_is_placed_where_the_values_drop() -> None:
    x = [100.0 * k for k in range(40)]
    y = [2.5 + 0.1 * (k % 3) if k < 20 else 1.2 + 0.05 * (k % 2) for k in range(40)]
    found = series.cliff(x, y)
    assert found is not None
    assert found.at == 2000.0
    assert (found.before, found.after) == pytest.approx((2.6, 1.225))
    assert found.t > 20


def test_a_rise_is_no_cliff() -> None:
    found = series.cliff(list(range(30)), [1.0] * 15 + [2.0] * 15)
    assert found is not None
    assert found.t < 0
