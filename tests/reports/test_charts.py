"""Charts: the figures that go in are the figures that are drawn."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.reports import charts


def frame(count: int, **columns: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(
        {
            "line": range(1, count + 1),
            "rank": "",
            "t": [float(i) for i in range(count)],
            "tok_s": [50.0 + i % 3 for i in range(count)],
            "accept_len": 1.6,
            "in_repeat": [i > 1 for i in range(count)],
        }
        | columns
    )


def values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that are drawn."""
    return max(spec["datasets"].values(), key=len)  # type: ignore[no-any-return]


def test_every_decode_line_is_drawn_and_warm_up_is_named() -> None:
    rows = values(charts.spec(charts.series(frame(10), "tok_s")))
    assert [row["tok_s"] for row in rows] == [50.0 + i % 3 for i in range(10)]
    assert [row["stretch"] for row in rows].count("warm-up or idle") == 2
    assert rows[-1]["line"] == 10


def test_lines_without_the_figure_are_left_out() -> None:
    gaps = [None if i == 4 else 1.5 for i in range(10)]
    rows = values(charts.spec(charts.series(frame(10, accept_len=gaps), "accept_len")))
    assert len(rows) == 9


def test_long_series_are_averaged_and_say_so() -> None:
    count = 5 * charts.MOST_POINTS
    spec = charts.spec(charts.series(frame(count), "tok_s"))
    rows = values(spec)
    assert len(rows) <= charts.MOST_POINTS + 1
    title = spec["layer"][0]["encoding"]["x"]["title"]
    assert "mean of 5 lines a point" in title


def test_a_log_without_times_keeps_its_order() -> None:
    spec = charts.spec(charts.series(frame(5, t=None), "tok_s"))
    assert [row["second"] for row in values(spec)] == [0, 1, 2, 3, 4]
    assert "in order" in spec["layer"][0]["encoding"]["x"]["title"]


def test_lines_of_one_second_are_spread_over_it() -> None:
    rows = values(charts.spec(charts.series(frame(4, t=[7.0, 7.0, 7.0, 8.0]), "tok_s")))
    assert [round(row["second"], 2) for row in rows] == [0.0, 0.33, 0.67, 1.0]


def test_an_empty_log_makes_an_empty_chart() -> None:
    spec = charts.spec(charts.series(frame(0), "tok_s"))
    assert all(rows == [] for rows in spec["datasets"].values())


def test_the_baseline_is_a_rule_with_its_words() -> None:
    spec = charts.spec(charts.series(frame(5), "tok_s", reference=90.0, says="R0: 90"))
    rule, text = spec["layer"][-2:]
    assert rule["encoding"]["y"] == {"datum": 90.0}
    assert text["mark"]["text"] == "R0: 90"


def test_a_spec_brings_no_colours_of_its_own() -> None:
    chart = charts.runs_against([charts.RunFigures("R0", (90.0,))], "tok_s", reference=90.0)
    spec = charts.spec(chart)
    assert "config" not in spec
    assert "#" not in str(spec).replace("schema", "")


@pytest.mark.parametrize("hostile", ["</script><b>", "R'); alert(1); ('"])
def test_svg_holds_the_figures_and_is_the_same_twice(hostile: str) -> None:
    runs = [charts.RunFigures("R0", (90.0,)), charts.RunFigures(hostile, (56.0, 57.6))]
    drawn = charts.svg(charts.runs_against(runs, "tok_s", reference=90.0, says="goal 90"))
    charts._drawn.cache_clear()
    again = charts.svg(charts.runs_against(runs, "tok_s", reference=90.0, says="goal 90"))
    assert drawn == again
    assert "56.8" in drawn
    assert "goal 90" in drawn
    assert "<b>" not in drawn


def test_a_waterfall_starts_each_part_where_the_last_one_ended() -> None:
    falls = [
        charts.Fall("baseline", 0.0, 90.0),
        charts.Fall("acceptance", 90.0, 144.0),
        charts.Fall("draft", 144.0, 130.0),
        charts.Fall("measured", 0.0, 56.8),
    ]
    spec = charts.spec(charts.waterfall(falls))
    rows = values(spec)
    assert [row["change"] for row in rows] == [90.0, 54.0, -14.0, 56.8]
    assert [row["tone"] for row in rows] == ["figure", "won", "lost", "figure"]


def test_reaches_draw_what_is_known_only() -> None:
    spec = charts.spec(charts.reaches([charts.Reach("R1", 1.6, None, 2.0)]))
    text = str(spec)
    assert "'value': 1.6" in text
    assert "'draws level with the baseline', 'value'" not in text
