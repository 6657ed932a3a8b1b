import math
import random

import pytest

from specdebug.measure.watch import judge_newest

pytest.importorskip("ruptures", reason="change points need ruptures")


def steady(n: int, cv: float = 0.02, seed: int = 1) -> list[float]:
    draw = random.Random(seed)
    return [100 * math.exp(draw.gauss(0, cv)) for _ in range(n)]


def test_one_slow_run_is_looked_at_and_alarms_nobody() -> None:
    found = judge_newest([*steady(15), 80.0])
    assert found.state == "look"
    assert "run it again" in found.sentence
    assert found.since is None


def test_two_slow_runs_in_a_row_are_a_regression() -> None:
    found = judge_newest([*steady(15), 90.0, 91.0])
    assert found.state == "regression"
    assert found.since == 15
    assert found.n == 15
    assert found.percent == pytest.approx(-9, abs=2)


def test_two_slow_runs_apart_are_no_regression() -> None:
    assert judge_newest([*steady(15), 90.0, 100.0]).state == "steady"


def test_for_a_time_up_is_a_regression() -> None:
    assert judge_newest([*steady(15), 110, 111], higher_is_better=False).state == "regression"
    assert judge_newest([*steady(15), 110, 111]).state == "improvement"


def test_a_change_within_the_margin_is_steady_however_quiet_the_rig() -> None:
    assert judge_newest([*steady(15, cv=0.001), 98.9, 98.8]).state == "steady"
    assert judge_newest([*steady(15, cv=0.001), 96.9, 96.8]).state == "regression"


def test_few_runs_say_nothing_and_say_so() -> None:
    found = judge_newest([100.0, 101.0, 50.0, 50.0])
    assert found.state == "too few"
    assert "too few" in found.sentence


def test_runs_before_a_shift_of_the_rig_do_not_count_as_recent() -> None:
    found = judge_newest([*(1.3 * v for v in steady(15)), *steady(12, seed=2), 100.0, 99.0])
    assert found.state == "steady"
    assert found.n <= 13


@pytest.mark.parametrize("bad", [[], [0.0], [1.0, float("nan")]])
def test_figures_that_are_no_positive_numbers_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError):
        judge_newest(bad)


def test_noise_does_not_cry_wolf_and_losses_of_a_tenth_are_called() -> None:
    draw = random.Random(3)
    cried = called = 0
    for seed in range(200):
        y = steady(draw.randint(12, 30), draw.uniform(0.01, 0.03), seed)
        cried += judge_newest(y).state in ("regression", "improvement")
        called += judge_newest([*y[:-2], 0.9 * y[-2], 0.9 * y[-1]]).state == "regression"
    assert cried <= 4  # about 3 in 1,000 are expected; 4 in 200 has a chance of 1 in 100
    assert called >= 180
