import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdebug.measure import acceptance
from specdebug.measure.acceptance import RequestCounts


def test_training_accuracy_as_a_chain_gives_the_published_lengths() -> None:
    lengths = [acceptance.iid_accept_len(0.747, n) for n in (1, 3, 5, 15)]
    assert lengths == pytest.approx([1.747, 2.722, 3.266, 3.915], abs=0.001)


def test_perfect_acceptance_fills_the_window() -> None:
    assert acceptance.iid_accept_len(1.0, 3) == 4
    assert acceptance.iid_accept_len(0.0, 3) == 1


def test_an_accuracy_given_in_per_cent_is_refused() -> None:
    with pytest.raises(ValueError, match="fraction"):
        acceptance.iid_accept_len(74.7, 3)


@settings(deadline=None)
@given(st.floats(0, 1), st.integers(1, 20))
def test_constant_accuracy_is_found_back_from_its_length(accuracy: float, steps: int) -> None:
    length = acceptance.iid_accept_len(accuracy, steps)
    assert acceptance.iid_accept_len(
        acceptance.iid_accuracy(length, steps), steps
    ) == pytest.approx(length, abs=1e-6)


def test_the_story_needs_a_third_after_the_first_position() -> None:
    assert acceptance.constant_tail(0.6, 1.9, 15) == pytest.approx(1 / 3, abs=0.001)


def test_a_tail_below_zero_is_zero() -> None:
    assert acceptance.constant_tail(0.6, 1.4, 15) == pytest.approx(0, abs=1e-9)
    assert acceptance.constant_tail(0.0, 1.4, 15) == 0


def test_a_histogram_gives_conditional_rates_by_position() -> None:
    # 10 verifications: 4 accepted nothing, 3 one, 2 two, 1 three drafts.
    rates = acceptance.conditional_from_histogram([4, 3, 2, 1])
    assert rates == pytest.approx((0.6, 0.5, 1 / 3))


def test_positions_beyond_the_histogram_count_as_refused_when_the_depth_is_known() -> None:
    assert acceptance.conditional_from_histogram([17, 23], num_steps=3) == pytest.approx(
        (23 / 40, 0.0)
    )
    assert acceptance.conditional_from_histogram([17, 23]) == pytest.approx((23 / 40,))


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=2, max_size=8).filter(lambda h: sum(h) > 0))
def test_the_chain_over_conditional_rates_is_the_histograms_mean(histogram: list[int]) -> None:
    mean = 1 + sum(k * c for k, c in enumerate(histogram)) / sum(histogram)
    rates = acceptance.conditional_from_histogram(histogram)
    assert acceptance.chain_accept_len(rates) == pytest.approx(mean)


def test_unconditional_rates_become_conditional_and_stop_at_zero() -> None:
    assert acceptance.conditional_from_unconditional([0.6, 0.2, 0.0, 0.0]) == pytest.approx(
        (0.6, 1 / 3, 0.0)
    )


def test_rounding_never_pushes_a_conditional_rate_above_one() -> None:
    assert acceptance.conditional_from_unconditional([0.2, 0.21]) == pytest.approx((0.2, 1.0))


def test_a_chain_without_positions_accepts_nothing() -> None:
    assert acceptance.chain_accept_len([], 5) == 1


def test_one_run_has_five_accept_lengths_and_each_names_its_formula() -> None:
    requests = [RequestCounts(64, 40, (17, 23)), RequestCounts(16, 12, (8, 4))]
    found = acceptance.accept_lengths(requests, server_average=1.68)
    assert {a.name: a.value for a in found} == pytest.approx(
        {
            "tokens after the first": 78 / 52,
            "tokens per verification": 80 / 52,
            "mean of requests": (64 / 40 + 16 / 12) / 2,
            "histogram": 1 + 27 / 52,
            "server average": 1.68,
        }
    )
    assert len({a.formula for a in found}) == 5


def test_requests_without_verifications_are_left_out() -> None:
    assert acceptance.accept_lengths([RequestCounts(5, 0)]) == ()


def test_histograms_of_different_depth_pool() -> None:
    assert acceptance.pool_histograms([[1, 2], [3, 4, 5], []]) == (4, 6, 5)


def test_an_interval_narrows_with_more_trials_and_covers_the_rate() -> None:
    narrow, wide = (acceptance.position_interval(0.6, n) for n in (1000, 20))
    assert narrow[0] > wide[0]
    assert narrow[1] < wide[1]
    assert narrow[0] < 0.6 < narrow[1]
    assert acceptance.position_interval(0.6, 0) == (0.0, 1.0)
