import pytest

from specdebug.eagle.speedup import (
    CostPoint,
    break_even_accept_len,
    ceiling_tok_s,
    cost_line,
    missing_cost_run,
    plain_step_ms,
    step_ms,
)

R1, R2 = step_ms(1.6, 56.8), step_ms(1.9, 46.7)


def test_the_storys_step_times() -> None:
    assert (plain_step_ms(90), R1, R2) == pytest.approx((11.11, 28.17, 40.69), abs=0.01)


def test_step_time_counts_all_running_requests() -> None:
    assert step_ms(2.21, 2927, running=48) == pytest.approx(36.24, abs=0.01)


def test_break_even_and_ceiling_of_the_story() -> None:
    assert break_even_accept_len(R1, plain_step_ms(90)) == pytest.approx(2.54, abs=0.005)
    assert break_even_accept_len(R2, plain_step_ms(90)) == pytest.approx(3.66, abs=0.005)
    assert ceiling_tok_s(2, R1) == pytest.approx(71.0, abs=0.05)


def test_two_depths_split_the_step_into_drafting_and_a_fixed_part() -> None:
    line = cost_line([CostPoint(1, R1), CostPoint(15, R2)], plain_step_ms(90))
    assert line is not None
    assert line.slope_ms == pytest.approx(0.894, abs=0.001)
    assert line.overhead_ms == pytest.approx(16.2, abs=0.05)
    assert line.residual_ms == 0
    assert line.at(15) == pytest.approx(R2)


def test_more_points_show_how_far_they_lie_from_a_line() -> None:
    line = cost_line([CostPoint(1, 20.0), CostPoint(3, 22.0), CostPoint(5, 25.0)])
    assert line is not None
    assert line.residual_ms > 0.2
    assert line.overhead_ms is None


def test_one_depth_gives_no_line_and_names_the_run_that_would() -> None:
    points = [CostPoint(15, R2)]
    assert cost_line(points) is None
    missing = missing_cost_run(points, 11.1)
    assert missing is not None
    assert "num_steps" in missing


def test_a_missing_baseline_is_named_and_a_complete_account_lacks_nothing() -> None:
    points = [CostPoint(1, R1), CostPoint(15, R2)]
    missing = missing_cost_run(points, None)
    assert missing is not None
    assert "without speculation" in missing
    assert missing_cost_run(points, 11.1) is None
    assert "speculative run" in (missing_cost_run([], None) or "")
