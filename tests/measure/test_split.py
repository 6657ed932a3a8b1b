import math
import random

import pytest

from specdebug.measure.split import Side, split_sides


def repeats(middle: float, cv: float, n: int, seed: int) -> tuple[float, ...]:
    draw = random.Random(seed)
    return tuple(middle * math.exp(draw.gauss(0, cv)) for _ in range(n))


def test_the_parts_add_up_and_each_has_its_own_interval() -> None:
    found = split_sides(
        Side(repeats(90, 0.01, 5, 1), (1.0,)),
        Side(repeats(57, 0.01, 5, 2), repeats(1.6, 0.005, 5, 3)),
    )
    whole = found.acceptance.value - found.step_time.value
    assert found.throughput.value == pytest.approx(whole)
    for part in (found.throughput, found.acceptance, found.step_time):
        assert part.low is not None
        assert part.high is not None
        assert part.low < part.value < part.high
    assert found.level == 0.95
    assert "acceptance +6" in found.sentence


def test_an_acceptance_that_repeats_exactly_has_no_width() -> None:
    found = split_sides(
        Side(repeats(90, 0.01, 5, 1), (1.0,)), Side(repeats(57, 0.01, 5, 2), (1.6,) * 5)
    )
    assert found.acceptance.low == found.acceptance.high == pytest.approx(math.log(1.6))
    assert str(found.acceptance) == "+60.0 %"


def test_single_figures_have_an_interval_only_where_a_spread_is_known() -> None:
    before, after = Side((90.0,), (1.0,)), Side((56.8,), (1.6,))
    bare = split_sides(before, after)
    assert bare.throughput.low is None
    assert "no interval" in bare.sentence
    known = split_sides(before, after, pooled_cv=0.03)
    assert known.throughput.low is not None
    assert known.acceptance.low is None, "one accept length says nothing of its spread"
    assert known.step_time.low is None


def test_the_interval_of_a_part_holds_the_truth_as_often_as_it_says() -> None:
    held = 0
    for seed in range(300):
        found = split_sides(
            Side(repeats(90, 0.03, 5, 3 * seed), (1.0,)),
            Side(repeats(57, 0.03, 5, 3 * seed + 1), repeats(1.6, 0.02, 5, 3 * seed + 2)),
        )
        truth = math.log(1.6 / 57 * 90)
        assert found.step_time.low is not None
        assert found.step_time.high is not None
        held += found.step_time.low <= truth <= found.step_time.high
    assert 0.91 <= held / 300 <= 0.99


@pytest.mark.parametrize(
    "side", [Side((), (1.0,)), Side((1.0, 2.0), (1.0, 1.0, 1.0)), Side((0.0,), (1.0,))]
)
def test_figures_that_do_not_fit_are_refused(side: Side) -> None:
    with pytest.raises(ValueError):
        split_sides(Side((1.0,), (1.0,)), side)
