"""What the logged accept rate means by release, and the window it betrays."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.accept_rate import accept_rate_formula, accept_rates, infer_window
from specdebug.sglang.releases import KNOWN, Release


@pytest.mark.parametrize(
    ("release", "rule"),
    [
        ("0.5.3", "accept_rate_log_absent"),
        ("0.5.4", "accept_rate_log_v1"),
        ("0.5.5", "accept_rate_log_v1"),
        ("0.5.6", "accept_rate_log_v2"),
        ("0.5.10.post1", "accept_rate_log_v2"),
        ("0.5.11", "accept_rate_log_v3"),
        ("0.5.23", "accept_rate_log_v3"),
        ("0.1.0", "accept_rate_log_absent"),
    ],
)
def test_each_release_has_one_definition(release: str, rule: str) -> None:
    assert accept_rate_formula(Release.parse(release)).rule == rule


def test_definitions_follow_each_other_without_gap() -> None:
    rates = accept_rates()
    for before, after in pairwise(rates):
        at = KNOWN.index(after.since)
        assert KNOWN[at - 1] == before.until


def test_the_storys_line_betrays_a_window_of_two() -> None:
    (reading,) = infer_window(1.60, 0.80, Release.parse("0.5.9"))
    assert reading.window == pytest.approx(2.0)


def test_the_strict_definition_gives_another_window_from_the_same_line() -> None:
    (reading,) = infer_window(1.60, 0.60, Release.parse("0.5.12"))
    assert reading.window == pytest.approx(2.0)


def test_an_unknown_release_leaves_two_readings() -> None:
    readings = infer_window(2.0, 0.5)
    assert [round(reading.window, 3) for reading in readings] == [4.0, 3.0]
    assert str(readings[0].until) == "0.5.10.post1"


def test_a_range_of_releases_narrows_the_readings() -> None:
    old = infer_window(2.0, 0.5, between=(Release.parse("0.5.7"), Release.parse("0.5.10.post1")))
    assert [reading.window for reading in old] == [4.0]
    new = infer_window(2.0, 0.5, between=(Release.parse("0.5.11"), None))
    assert [reading.window for reading in new] == [3.0]


def test_pairs_that_fit_no_definition_give_nothing() -> None:
    assert infer_window(1.6, 0.0) == []
    assert infer_window(0.9, 0.5) == []
    assert infer_window(1.6, 1.6) == []
    assert infer_window(1.6, 0.8, Release.parse("0.5.3")) == []
    assert infer_window(1.0, 0.5, Release.parse("0.5.12")) == []


@given(st.integers(2, 32), st.floats(1.01, 30))
def test_what_a_release_logs_leads_back_to_its_window(window: int, length: float) -> None:
    length = min(length, float(window))
    (old,) = infer_window(length, length / window, Release.parse("0.5.9"))
    (new,) = infer_window(length, (length - 1) / (window - 1), Release.parse("0.5.12"))
    assert old.window == pytest.approx(window)
    assert new.window == pytest.approx(window)
