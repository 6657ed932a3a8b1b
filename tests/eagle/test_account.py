import random

import pytest

from specdebug.eagle.account import Account, Range, StepPoint, fit_steps


def exact(value: float) -> Range:
    return Range(value, value, value)


def account(**values: object) -> Account:
    fit = fit_steps([StepPoint(1, 28.17, 0.85), StepPoint(15, 40.69, 1.22)])
    assert fit is not None
    known = {
        "running": 1.0,
        "fit": fit,
        "plain": Range(11.11, 10.5, 11.8),
        "accept_len_at": lambda n: exact(min(1.6 + 0.05 * n, 1.9)),
        "new_run": 0.03,
        "spread": "",
        "deepest_known": 15,
    }
    return Account(**(known | values))  # type: ignore[arg-type]


def test_two_points_fix_the_line_and_their_errors_its_ranges() -> None:
    fit = account().fit
    assert fit.slope.value == pytest.approx(0.894, abs=0.001)
    assert fit.fixed.value == pytest.approx(27.28, abs=0.01)
    assert fit.slope.high - fit.slope.value == pytest.approx(1.96 * (0.85**2 + 1.22**2) ** 0.5 / 14)
    assert not fit.checked


def test_a_point_off_the_line_widens_every_range() -> None:
    on = fit_steps([StepPoint(1, 20, 0.1), StepPoint(3, 22, 0.1), StepPoint(5, 24, 0.1)])
    off = fit_steps([StepPoint(1, 20, 0.1), StepPoint(3, 23, 0.1), StepPoint(5, 24, 0.1)])
    assert on is not None
    assert off is not None
    assert on.checked
    assert on.excess == 1
    assert off.excess > 5
    assert off.slope.high - off.slope.low > 5 * (on.slope.high - on.slope.low)


def test_the_plain_run_is_no_point_of_the_line_and_one_depth_gives_none() -> None:
    assert fit_steps([StepPoint(0, 11, 0.3), StepPoint(1, 28, 0.8)]) is None
    assert fit_steps([StepPoint(1, 27, 0.8), StepPoint(1, 28, 0.8)]) is None


def test_a_step_time_that_is_no_positive_number_is_refused() -> None:
    with pytest.raises(ValueError, match="R1: step time"):
        fit_steps([StepPoint(1, 0.0, 0.5, "R1"), StepPoint(2, 3, 0.5)])


def test_ranges_hold_the_truth_as_often_as_they_say() -> None:
    draw, held = random.Random(1), 0
    for _ in range(400):
        points = [StepPoint(n, draw.gauss(20 + 0.9 * n, 0.5), 0.5) for n in (1, 3, 8)]
        fit = fit_steps(points)
        assert fit is not None
        held += fit.at(5).low <= 24.5 <= fit.at(5).high
    assert held / 400 > 0.93


def test_the_overhead_is_what_neither_a_plain_step_nor_drafting_explains() -> None:
    overhead = account().overhead
    assert overhead is not None
    assert overhead.value == pytest.approx(16.17, abs=0.02)
    assert overhead.low < 15 < 17.5 < overhead.high
    assert account(plain=None).overhead is None


def test_parts_add_up_to_the_measured_figure() -> None:
    parts = account().parts(15, 1.9, 46.7)
    base = account().baseline_tok_s
    assert base is not None
    assert base + sum(p.tok_s.value for p in parts) == pytest.approx(46.7)
    assert parts[-1].reached == pytest.approx(46.7)
    names = [p.name.split()[0] for p in parts]
    assert names == ["acceptance", "draft", "fixed"]
    assert parts[1].ms is not None
    assert parts[1].ms.value == pytest.approx(13.4, abs=0.05)
    assert parts[1].tok_s.low < parts[1].tok_s.value < parts[1].tok_s.high


def test_without_a_baseline_nothing_is_shared_out() -> None:
    assert account(plain=None).parts(15, 1.9, 46.7) == ()
    assert account(plain=None).break_even(15) is None


def test_what_would_reach_the_goal_is_a_length_or_a_step_time() -> None:
    length, ms = account().needs(1, 90)
    assert length == pytest.approx(2.535, abs=0.001)
    assert ms == pytest.approx(1000 * 1.65 / 90)
    assert length > 2, "num_steps 1 cannot accept that many: the ceiling is below the goal"
    assert account().ceiling(1) == pytest.approx(71, abs=0.1)


def test_depths_that_are_not_told_apart_from_the_best_are_named() -> None:
    found = account()
    assert found.best().num_steps in found.as_good()
    assert 15 not in found.as_good()
    sure = account(new_run=0.0, accept_len_at=lambda n: exact(1 + 0.6 * n**0.5))
    assert len(sure.as_good()) <= 15


def test_beyond_the_deepest_run_a_depth_is_marked() -> None:
    assert account().depth(20).beyond
    assert not account().depth(10).beyond
    assert account().depth(15).measured
    assert not account().depth(10).measured


def test_throughput_is_over_all_running_requests() -> None:
    one, eight = account(), account(running=8.0)
    assert eight.depth(3).tok_s.value == pytest.approx(8 * one.depth(3).tok_s.value)
