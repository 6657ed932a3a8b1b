"""What each look may spend, and which figures several starts give."""

import pytest

from specdebug.measure.looks import alpha_of, extra_looks, figures_of


def test_what_was_planned_is_judged_at_95_per_cent_and_a_little_more_of_many_figures() -> None:
    assert [alpha_of(n) for n in (1, 3, 5, 6, 20)] == [0.05, 0.05, 0.05, 0.048, 0.048]


def test_every_look_that_was_not_planned_spends_little_and_never_more_than_the_one_before() -> None:
    spent = [alpha_of(5, k) for k in range(1, 40)]
    assert spent[:3] == [0.001, 0.001, 0.001]
    assert spent == sorted(spent, reverse=True)
    assert sum(spent) < 0.0121


@pytest.mark.parametrize(("n", "extra"), [(0, 0), (5, -1)])
def test_no_figures_and_looks_below_none_are_refused(n: int, extra: int) -> None:
    with pytest.raises(ValueError, match="neither"):
        alpha_of(n, extra)


def test_the_planned_look_is_the_one_at_which_the_plan_is_complete() -> None:
    assert [extra_looks(ended, 1) for ended in (1, 2, 3)] == [0, 1, 2]
    assert [extra_looks(ended, 3) for ended in (1, 2, 3, 4)] == [1, 2, 0, 1]


def test_two_starts_give_all_their_repeats_and_three_give_a_mean_each() -> None:
    assert figures_of([(1.0, 3.0)]) == (1.0, 3.0)
    assert figures_of([(1.0, 3.0), (5.0,)]) == (1.0, 3.0, 5.0)
    assert figures_of([(1.0, 3.0), (), (5.0,), (6.0, 8.0)]) == (2.0, 5.0, 7.0)
    assert figures_of([]) == ()
