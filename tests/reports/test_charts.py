"""The chart of courses: the figures that go in are the figures that are drawn."""

from __future__ import annotations

from typing import Any

from experiments.reports import charts


def frame(count: int, run: str = "R1", **columns: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(
        {
            "run": run,
            "line": range(1, count + 1),
            "rank": "",
            "t": [1000.0 + i for i in range(count)],
            "tok_s": [50.0 + i % 3 for i in range(count)],
            "accept_len": 1.6,
            "in_repeat": [i > 1 for i in range(count)],
        }
        | columns
    )


def values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that are drawn."""
    return max(spec["datasets"].values(), key=len)  # type: ignore[no-any-return]


def words(spec: dict[str, Any]) -> str:
    return str(spec["layer"][0]["encoding"]["x"]["title"])


def test_every_decode_line_is_drawn_and_warm_up_is_named() -> None:
    rows = values(charts.courses(frame(10), "tok_s"))
    assert [row["tok_s"] for row in rows] == [50.0 + i % 3 for i in range(10)]
    assert [row["stretch"] for row in rows].count("warm-up or idle") == 2
    assert rows[-1]["line"] == 10


def test_each_run_begins_at_its_own_first_line() -> None:
    import pandas as pd

    two = pd.concat([frame(3), frame(3, "R2", t=[5000.0, 5001.0, 5002.0])], ignore_index=True)
    rows = values(charts.courses(two, "tok_s"))
    assert [(row["run"], row["second"]) for row in rows] == [
        ("R1", 0),
        ("R1", 1),
        ("R1", 2),
        ("R2", 0),
        ("R2", 1),
        ("R2", 2),
    ]


def test_each_line_carries_its_label_at_its_end() -> None:
    import pandas as pd

    two = pd.concat([frame(4), frame(3, "R2", t=[5000.0, 5001.0, 5002.0])], ignore_index=True)
    found = charts.courses(two, "tok_s")
    (layer,) = (part for part in found["layer"] if "text" in part["encoding"])
    last = found["datasets"][layer["data"]["name"]]
    assert [(row["run"], row["second"]) for row in last] == [("R1", 3), ("R2", 2)]


def test_lines_without_the_figure_are_left_out() -> None:
    gaps = [None if i == 4 else 1.5 for i in range(10)]
    assert len(values(charts.courses(frame(10, accept_len=gaps), "accept_len"))) == 9


def test_long_courses_are_averaged_and_say_so() -> None:
    spec = charts.courses(frame(5 * charts.MOST_POINTS), "tok_s")
    assert len(values(spec)) <= charts.MOST_POINTS + 1
    assert "mean of 5 lines a point" in words(spec)


def test_short_courses_say_nothing_of_means() -> None:
    assert "mean" not in words(charts.courses(frame(10), "tok_s"))


def test_a_log_without_times_keeps_its_order() -> None:
    spec = charts.courses(frame(5, t=None), "tok_s")
    assert [row["second"] for row in values(spec)] == [0, 1, 2, 3, 4]
    assert "in order" in words(spec)


def test_lines_of_one_second_are_spread_over_it() -> None:
    rows = values(charts.courses(frame(4, t=[7.0, 7.0, 8.0, 8.0]), "tok_s"))
    assert [row["second"] for row in rows] == [0, 0.5, 1, 1.5]


def test_the_baseline_is_a_rule_with_its_words() -> None:
    spec = charts.courses(frame(4), "tok_s", reference=90.0, says="baseline R0")
    marks = [layer["mark"] for layer in spec["layer"]]
    assert marks[-2]["type"] == "rule"
    assert (marks[-1]["text"], spec["layer"][-1]["encoding"]["y"]) == (
        "baseline R0",
        {"datum": 90.0},
    )
    without = charts.courses(frame(4), "tok_s")["layer"]
    assert [layer["mark"]["type"] for layer in without] == ["line", "circle", "text"]


def test_a_spec_brings_no_colours_of_its_own() -> None:
    spec = charts.courses(frame(4), "tok_s")
    assert "config" not in spec
    assert "#" not in str(spec["layer"])
