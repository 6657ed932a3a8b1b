"""How figures, times and values look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from experiments.templatetags import figures, icons


@pytest.mark.parametrize(
    ("value", "shown"), [(56.84, "56.8"), (0.0, "0.0"), (None, "–"), ("", "–")]
)
def test_an_unknown_number_is_a_dash_and_zero_is_zero(value: Any, shown: str) -> None:
    assert figures.number(value) == shown


def test_a_figure_carries_its_unit() -> None:
    assert "1.60" in figures.figure(1.6, "accept_len")
    assert "tok/step" in figures.figure(1.6, "accept_len")
    assert "not known" in figures.figure(None, "tok_s")


@pytest.mark.parametrize(
    ("ratio", "shown"), [(0.631, "−36.9 %"), (1.0, "+0.0 %"), (1.4, "+40.0 %")]
)
def test_a_ratio_as_a_change_has_its_sign(ratio: float, shown: str) -> None:
    assert figures.change(ratio) == shown


def test_values_are_shown_as_written_in_json_and_escaped() -> None:
    assert figures.as_value([2, 30, 58]) == "<code>[2, 30, 58]</code>"
    assert figures.as_value(True) == "<code>true</code>"
    assert figures.as_value("<b>") == "<code>&lt;b&gt;</code>"
    long = figures.as_value("x" * 1000 + '"')
    assert long.count("x") == 1000 + figures.LONGEST_VALUE
    assert "&quot;" in long


def test_a_time_says_when_exactly() -> None:
    when = datetime(2026, 11, 29, 13, 30, 5, tzinfo=UTC)
    assert 'title="2026-11-29 13:30:05 UTC"' in figures.at(when)
    assert "time not known" in figures.at(None)
    assert "30 s ago" in figures.ago(timezone.now() - timedelta(seconds=30))
    assert "3 minutes ago" in figures.ago(timezone.now() - timedelta(seconds=200)).replace(
        "\xa0", " "
    )


@pytest.mark.parametrize(
    ("seconds", "shown"), [(3.25, "3.2 s"), (600, "10.0 min"), (7200, "2.0 h")]
)
def test_durations_choose_their_unit(seconds: float, shown: str) -> None:
    start = timezone.now()
    assert figures.between(start, start + timedelta(seconds=seconds)) == shown
    assert figures.between(None, start) == "–"


def test_three_settings_in_one_cell() -> None:
    assert figures.three((15, 1, 16)) == "15, 1, 16"
    assert figures.three((1, None, 16)) == "1, ?, 16"
    assert figures.three((None, None, None)) == "–"


@pytest.mark.parametrize("name", ["critical", "high", "medium", "info", "refuted", "running"])
def test_every_severity_and_state_has_a_drawing(name: str) -> None:
    assert "<path" in icons.icon(name)
    assert icons.icon(name) != icons.icon("medium") or name == "medium"


def test_a_name_without_a_drawing_is_empty() -> None:
    assert icons.icon("<script>") == ""


@pytest.mark.parametrize(
    ("ratio", "met", "shown"),
    [(0.997, False, "0.9970"), (1.003, True, "1.00"), (0.631, False, "0.63"), (None, False, "–")],
)
def test_a_goal_nearly_met_does_not_read_as_met(ratio: float | None, met: bool, shown: str) -> None:
    assert figures.toward_goal(ratio, met) == shown
