"""The report's tables of comparisons, arguments and commands: each figure once, nothing unsaid."""

from __future__ import annotations

import re
from typing import Any

from django.template.loader import render_to_string

from experiments.reports.document import Document


def cells(html: str) -> list[list[str]]:
    """The body's rows as plain texts."""
    body = html.split("<tbody>")[1].split("</tbody>")[0]
    rows = re.findall(r"<tr.*?</tr>", body, re.S)
    found = (re.findall(r"<t[hd].*?</t[hd]>", row, re.S) for row in rows)
    return [[" ".join(re.sub(r"<[^>]+>", "", cell).split()) for cell in row] for row in found]


def compared(**other: Any) -> dict[str, Any]:
    return {
        "run": "R2",
        "against": "R1",
        "change_percent": -17.8,
        "low_percent": -20.25,
        "high_percent": -15.1,
        "verdict": "regression",
        "rests_on": "95 % interval, Student's t on logs",
        "figures": [3, 5],
        "acceptance_percent": 18.5,
        "step_time_percent": 44.1,
        "blind": "",
        "cause": "cost",
        "sentence": "R2 against R1: all of it.",
        "flagged": True,
        "unreplicated": False,
    } | other


def shown(*rows: dict[str, Any]) -> str:
    told = {"regressions": rows, "baseline": "R0"}
    return render_to_string("reports/_regressions.html", {"told": told})


def test_a_comparison_has_its_interval_its_figures_and_its_parts() -> None:
    html = shown(compared())
    assert cells(html) == [
        [
            *("R2 against R1", "−17.8 %", "−20.2 to −15.1 %", "3, 5", "regression by cost"),
            *("+18.5 %", "+44.1 %"),
        ]
    ]
    assert "95 % interval, Student&#x27;s t on logs." in html
    assert "a: 95 %" not in html


def test_rows_that_rest_on_different_things_are_marked() -> None:
    html = shown(
        compared(),
        compared(run="R3", rests_on="95.7 % interval, a spread of 3.0 % taken from elsewhere"),
        compared(run="R4"),
    )
    assert [row[3] for row in cells(html)] == ["3, 5 a", "3, 5 b", "3, 5 a"]
    assert "a: 95 % interval" in html
    assert "b: 95.7 % interval, a spread of 3.0 % taken from elsewhere." in html


def test_what_is_not_known_is_said_and_no_figure_is_made_up() -> None:
    html = shown(
        compared(acceptance_percent=None, step_time_percent=None, blind="R1", cause="unknown"),
        compared(low_percent=None, high_percent=None, verdict="unreplicated", flagged=False),
    )
    blind, single = cells(html)
    assert blind[4:] == ["regression", "R1: no accept length"]
    assert single[2] == "–"
    assert single[4] == "unreplicated"


def test_of_many_comparisons_none_that_lost_and_none_with_the_baseline_is_left_out() -> None:
    calm = {"verdict": "inconclusive", "flagged": False}
    rows = [compared(run=f"R{n}", against="R0", **calm) for n in range(1, 21)]
    rows += [compared(run=f"R{n}", against=f"R{n - 1}", **calm) for n in range(2, 41)]
    rows += [compared(run="R41", against="R40")]
    html = shown(*rows)
    assert len(cells(html)) == 60
    assert "Left out" not in html
    html = shown(*rows, compared(run="R42", against="R41", flagged=False, verdict="improvement"))
    assert [row[0] for row in cells(html)] == [
        *(f"R{n} against R0" for n in range(1, 21)),
        "R41 against R40",
    ]
    assert "that lost nothing: 39 inconclusive, 1 improvement. The timeline has them." in html


def test_a_version_published_before_the_columns_keeps_its_sentence() -> None:
    old = ("run", "against", "change_percent", "verdict", "cause", "sentence", "flagged")
    html = shown({key: value for key, value in compared().items() if key in old})
    assert cells(html) == [["R2 against R1", "−17.8 %", "regression: R2 against R1: all of it."]]


def test_arguments_left_out_are_counted_by_run(kimi_document: Document) -> None:
    told = {
        "settings": [
            {"run": "R1", "shown": [], "rest": 3},
            {"run": "R2", "shown": [], "rest": 1},
            {"run": "R3", "shown": [], "rest": 3},
        ]
    }
    html = render_to_string("reports/_configuration.html", {"told": told})
    assert "1 argument of R2; 3 arguments of R1, R3." in html
    # The story's own: as many as each run says.
    html = render_to_string("reports/_configuration.html", {"told": kimi_document.told})
    for one in kimi_document.told["settings"]:
        assert re.search(rf"{one['rest']} arguments? of [R0-9, ]*{one['run']}\b", html)


def test_engine_and_host_stand_once_where_all_runs_share_them() -> None:
    def appendix(**where: Any) -> dict[str, Any]:
        run = {"engine": "sglang", "host": "gpu-1", "recorded": False, "title": "t", "command": "c"}
        common = {"where": {"engine": "sglang", "host": "gpu-1", "recorded": False}}
        return {
            "common": common if not where else {},
            "runs": [run | {"label": "R0"}, run | {"label": "R1"} | where],
        }

    shared, apart = (
        render_to_string("reports/_commands.html", {"told": {"appendix": appendix(**where)}})
        for where in ({}, {"host": "gpu-2"})
    )
    assert shared.count("sglang on gpu-1") == 1
    assert (apart.count("sglang on gpu-1"), apart.count("sglang on gpu-2")) == (1, 1)
