import random

import pytest

from specdebug.measure.compare import compare, repeats_for, split_throughput


def repeats(middle: float, cv: float, n: int, seed: int) -> list[float]:
    draw = random.Random(seed)
    return [middle * draw.lognormvariate(0, cv) for _ in range(n)]


def test_a_clear_loss_is_a_regression() -> None:
    found = compare(repeats(100, 0.01, 5, 1), repeats(90, 0.01, 5, 2))
    assert found.verdict == "regression"
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.9 < found.high
    assert not found.unreplicated


def test_a_clear_gain_is_an_improvement() -> None:
    assert compare(repeats(100, 0.01, 5, 1), repeats(110, 0.01, 5, 2)).verdict == "improvement"


def test_for_a_time_up_is_worse() -> None:
    before, after = repeats(10, 0.01, 5, 1), repeats(11, 0.01, 5, 2)
    assert compare(before, after, higher_is_better=False).verdict == "regression"


def test_a_tight_interval_around_one_is_no_material_change() -> None:
    found = compare(repeats(100, 0.004, 8, 1), repeats(100.2, 0.004, 8, 2))
    assert found.verdict == "no material change"


def test_a_difference_that_straddles_the_margin_is_small() -> None:
    found = compare(repeats(100, 0.004, 8, 3), repeats(98, 0.004, 8, 4))
    assert found.verdict == "small change"


def test_a_wide_interval_is_inconclusive_and_asks_for_repeats() -> None:
    found = compare([100, 104, 97], [99, 95, 103])
    assert found.verdict == "inconclusive"
    assert "no change" not in found.sentence
    assert found.repeats is not None
    assert "more repeats" in found.sentence


def test_a_hopeless_spread_says_that_repeats_will_not_do() -> None:
    found = compare([100, 140, 70], [90, 130, 75])
    assert found.verdict == "inconclusive"
    assert found.repeats is None
    assert "more than 50" in found.sentence


def test_single_figures_without_a_spread_give_no_verdict() -> None:
    found = compare([90], [54.8])
    assert (found.verdict, found.low) == ("unreplicated", None)
    assert found.change_percent == pytest.approx(-39.1, abs=0.05)


def test_single_figures_with_a_spread_of_three_per_cent_judge_the_story() -> None:
    assert compare([56.8], [46.7], pooled_cv=0.03).verdict == "regression"
    third = compare([56.8], [54.8], pooled_cv=0.03)
    assert third.verdict == "inconclusive"
    assert third.unreplicated


def test_a_pooled_spread_of_few_degrees_of_freedom_widens_the_interval() -> None:
    known = compare([100], [90], pooled_cv=0.03)
    few = compare([100], [90], pooled_cv=0.03, pooled_df=4)
    assert few.low is not None
    assert known.low is not None
    assert few.low < known.low


def test_invalid_runs_are_never_judged() -> None:
    found = compare([100, 101, 99], [50, 51, 49], invalid="effective arguments differ")
    assert found.verdict == "invalid"
    assert "effective arguments differ" in found.sentence


def test_looking_again_widens_the_interval() -> None:
    before, after = repeats(100, 0.02, 6, 1), repeats(97, 0.02, 6, 2)
    once, twice = compare(before, after), compare(before, after, extra=1)
    assert twice.low is not None
    assert once.low is not None
    assert twice.low < once.low


def test_identical_figures_are_no_material_change() -> None:
    assert compare([100, 100, 100], [100, 100, 100]).verdict == "no material change"


@pytest.mark.parametrize("bad", [[], [0.0], [-1.0], [float("nan")], [float("inf")]])
def test_figures_that_are_no_positive_numbers_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError):
        compare([100.0], bad)


def test_false_alarms_stay_near_the_level() -> None:
    draw = random.Random(7)
    alarms = 0
    for _ in range(200):
        a, b = ([100 * draw.lognormvariate(0, 0.03) for _ in range(5)] for _ in range(2))
        found = compare(a, b, margin=1e-9, say_repeats=False)
        alarms += found.low is not None and not found.low <= 1 <= (found.high or 0)
    assert alarms / 200 < 0.10  # nominal .05, three standard errors above it


def test_repeats_needed_match_the_simulated_table() -> None:
    assert [repeats_for(0.05, cv) for cv in (0.01, 0.02, 0.03)] == [3, 4, 8]


def test_throughput_splits_exactly_into_acceptance_and_step_time() -> None:
    found = split_throughput(90, 56.8, 1.0, 1.6)
    assert found.throughput == pytest.approx(found.acceptance - found.step_time)
    assert found.sentence == (
        "throughput -36.9 %: acceptance +60.0 %, step time +153.5 % (1.60 / 2.54 = 0.63)"
    )


def test_the_interval_names_its_level() -> None:
    before, after = repeats(100, 0.02, 6, 1), repeats(97, 0.02, 6, 2)
    assert "95.2 % interval" in compare(before, after).sentence
    assert "95 % interval" in compare(before[:5], after[:5]).sentence
    assert "99.9 % interval" in compare(before, after, extra=2).sentence


def test_repeats_that_are_lacking_are_counted_at_the_level_they_would_be_judged_at() -> None:
    before, after = repeats(100, 0.03, 5, 3), repeats(98, 0.03, 5, 4)
    found = compare(before, after)
    assert found.verdict == "inconclusive"
    assert "judged at 99.9 %" in found.sentence
    assert found.repeats is not None
    assert found.repeats > len(before)


def test_the_pooled_spread_replaces_the_runs_own_when_preferred() -> None:
    before, after = repeats(100, 0.03, 5, 1), repeats(95, 0.03, 5, 2)
    own = compare(before, after, pooled_cv=0.03, pooled_df=30)
    pooled = compare(before, after, pooled_cv=0.03, pooled_df=30, prefer_pooled=True)
    assert "Student" in own.method
    assert "elsewhere" in pooled.method
    assert pooled.level == pytest.approx(0.957)


def test_inconclusive_names_the_repeats_for_the_registered_effect() -> None:
    five = compare([100, 104, 97], [99, 95, 103])
    ten = compare([100, 104, 97], [99, 95, 103], effect=0.10)
    assert five.repeats is not None
    assert ten.repeats is not None
    assert ten.repeats < five.repeats
    assert "10 %" in ten.sentence
