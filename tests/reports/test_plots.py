"""Plots: where figures land, what is said of them, and that a file needs nothing of the page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from experiments.reports import plots
from experiments.reports.drawing import Drawing
from experiments.reports.plots import Bar, Curve, Fall, Point


def _marks(plot: plots.Plot, tag: str, class_: str = "") -> list[dict[str, str]]:
    found = re.findall(rf"<{tag}((?: [\w-]+=\"[^\"]*\")*)", plot.drawing.inline)
    rows = [dict(re.findall(r"([\w-]+)=\"([^\"]*)\"", some)) for some in found]
    return [row for row in rows if class_ in row.get("class", "")]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0, 0.9, [0, 0.2, 0.4, 0.6, 0.8]),
        (-40, 5, [-40, -30, -20, -10, 0]),
    ],
)
def test_ticks_are_round_and_within(low: float, high: float, expected: list[float]) -> None:
    assert plots.ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(("low", "high"), [(5, 5), (5, 4), (0, float("inf"))])
def test_no_span_has_one_tick(low: float, high: float) -> None:
    assert plots.ticks(low, high) == [low]


def test_a_bar_is_as_long_as_its_mean_and_the_baseline_stands_at_its_own() -> None:
    rows = [Bar("R0 plain", 0, (90.0,), 90.0), Bar("R1 draft", 1, (44.0, 46.0), 45.0)]
    plot = plots.bars("tok_s", "Throughput", "tok/s", rows, reference=90.0)
    first, second = (float(m["width"][:-1]) for m in _marks(plot, "rect", "soft"))
    assert second == pytest.approx(first / 2)
    rule = _marks(plot, "line", "reference")[0]
    assert float(rule["x1"][:-1]) == pytest.approx(first)
    # One figure is no spread: only the replicated run has dots.
    assert len(_marks(plot, "circle")) == 2
    assert plot.rows[1] == ("R1 draft", 45.0, 2, "44 46")
    assert "R1 draft 45.0 tok/s (n = 2)" in plot.drawing.says


def test_an_interval_is_drawn_only_where_there_is_one() -> None:
    rows = [Bar("R1", 1, (), -36.9, "", -40.1, -33.4), Bar("R2", 2, (), 3.0)]
    plot = plots.changes("change", "Throughput against R0", rows, against="R0")
    assert len(_marks(plot, "rect")) == 1
    assert plot.rows == (("R1", -36.9, -40.1, -33.4), ("R2", 3.0, None, None))


def test_labels_at_the_ends_of_curves_do_not_lie_on_each_other() -> None:
    rows = [Curve(f"R{i}", i, (0.6, 0.5 + i / 1000)) for i in range(4)]
    plot = plots.curves("acceptance", "Acceptance", rows, across="position")
    heights = sorted(float(m["y"]) for m in _marks(plot, "text", "name"))
    assert all(b - a >= 12 for a, b in pairwise(heights))
    assert plot.rows[0] == (1, 0.6, 0.6, 0.6, 0.6)


def test_a_waterfall_goes_from_total_to_total() -> None:
    rows = [
        Fall("baseline", 0, 90, total=True),
        Fall("acceptance", 90, 144),
        Fall("draft forwards", 144, 56.8),
        Fall("measured", 0, 56.8, total=True),
    ]
    plot = plots.waterfall("gap", "Account", "tok/s", rows, "all of it.")
    assert [len(_marks(plot, "rect", tone)) for tone in ("total", "won", "lost")] == [2, 1, 1]
    assert plot.rows[1] == ("acceptance", 54.0, None, None, 144.0)
    assert plot.rows[0] == ("baseline", None, None, None, 90.0)
    assert _marks(plot, "line", "whisker") == []


def test_a_part_s_interval_is_drawn_where_it_is_known() -> None:
    rows = [
        Fall("baseline", 0, 90, total=True),
        Fall("acceptance", 90, 144, low=48.7, high=59.5),
        Fall("exact", 144, 140, low=-4.0, high=-4.0),
        Fall("measured", 0, 140, total=True),
    ]
    plot = plots.waterfall("gap", "Account", "tok/s", rows, "all of it.")
    assert plot.rows[1] == ("acceptance", 54.0, 48.7, 59.5, 144.0)
    span, *edges = _marks(plot, "line", "whisker")
    assert len(edges) == 2  # of one part: the other's interval has no width
    top = 149.5
    ends = [float(span[key].rstrip("%")) for key in ("x1", "x2")]
    assert ends == pytest.approx([100 * 138.7 / top, 100], abs=0.1)


def _points(count: int) -> list[Point]:
    return [Point(float(i), 50.0 + i % 3, i + 1, i >= 10) for i in range(count)]


def test_warm_up_is_grey_and_the_rest_has_the_run_s_colour() -> None:
    plot = plots.series("tok_s", "Throughput", "tok/s", _points(40), across="s", hue=3)
    assert len(_marks(plot, "circle", "fill-idle")) == 10
    assert len(_marks(plot, "circle", "fill-3")) == 30
    assert plot.rows[0][3] == "warm-up or idle"


def test_a_long_run_is_averaged_for_the_eye_and_kept_whole_in_the_table() -> None:
    plot = plots.series("tok_s", "Throughput", "tok/s", _points(5000), across="s", hue=3)
    assert len(plot.rows) == 5000
    assert len(_marks(plot, "circle")) <= plots.MOST_POINTS + 2
    assert "each point is the mean of 13 lines" in plot.drawing.inline


def test_one_point_over_no_time_is_drawn_without_a_fault() -> None:
    plot = plots.series("tok_s", "T", "tok/s", [Point(0.0, 0.0, 1, True)], across="s", hue=0)
    assert len(plot.rows) == 1


def test_a_file_stands_alone_and_says_what_it_shows() -> None:
    plot = plots.bars("x", "T", "tok/s", [Bar("R0 <a> & b", 0, (1.0, 2.0), 1.5)])
    text = plot.drawing.file
    root = ET.fromstring(text)  # noqa: S314 (ours)
    assert root[0].text == plot.drawing.says
    assert "var(" not in text
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "#" in text
    assert plot.drawing.png.startswith(b"\x89PNG")


def test_markup_in_a_label_stays_text() -> None:
    drawing = Drawing(10, 'says "<b>"')
    drawing.text(0, 0, "<script>alert(1)</script>", more="<img src=x>")
    drawing.dot(1, 1, 1, "a", 'title "<b>')
    drawing.begin_link('"><script>', "<i>")
    drawing.end_link()
    assert not re.search(r"<(script|img|b|i)\b", drawing.inline)
    ET.fromstring(drawing.file)  # noqa: S314 (ours)


def test_a_drawing_with_links_is_no_single_picture() -> None:
    assert 'role="img"' in Drawing(1, "x").inline
    assert 'role="group"' in Drawing(1, "x", links=True).inline


def test_a_run_keeps_its_colour_by_its_number() -> None:
    assert [plots.hue(n) for n in (0, 7, 8)] == [0, 7, 0]
