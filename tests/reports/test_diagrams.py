"""The report's drawings: well-formed, told in words, split where a page is too short."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from experiments.reports import course, diagrams, document, fonts, svg
from experiments.reports.document import Document


@pytest.fixture
def told(kimi_document: Document) -> Any:
    return json.loads(document.canonical(kimi_document.body))["post_mortem"]


def drawn(told: Any) -> list[diagrams.Diagram]:
    found = course.course(told)
    assert found is not None
    return [
        found,
        *diagrams.throughput(told),
        *diagrams.reaches(told),
        *diagrams.waterfalls(told),
    ]


def test_each_is_well_formed_and_says_its_content(told: Any) -> None:
    for one in drawn(told):
        root = ElementTree.fromstring(one.svg)  # noqa: S314 (our own)
        assert root.get("role") == "img"
        assert root[0].text == one.says
        assert len(one.says) > 60
        assert "style" not in one.svg
        assert "<script" not in one.svg


def test_nothing_is_drawn_outside(told: Any) -> None:
    for one in drawn(told):
        root = ElementTree.fromstring(one.svg)  # noqa: S314
        _, _, width, height = (float(v) for v in root.get("viewBox", "").split())
        for mark in root.iter():
            for name, most in (("x", width), ("cx", width), ("y", height), ("cy", height)):
                if (value := mark.get(name)) is not None:
                    assert 0 <= float(value) <= most, (one.title, mark.attrib)


def test_marks_stand_where_their_figures_are(told: Any) -> None:
    root = ElementTree.fromstring(diagrams.throughput(told)[0].svg)  # noqa: S314
    bars = [m for m in root.iter() if m.tag.endswith("rect")]
    widths = [float(bar.get("width", "")) for bar in bars]
    assert widths[1] / widths[0] == pytest.approx(56.8 / 90, abs=0.002)
    assert widths[2] / widths[0] == pytest.approx(46.7 / 90, abs=0.002)


def test_markup_in_a_label_stays_text(told: Any) -> None:
    told["runs"][1]["label"] = '"><script>alert(1)</script>'
    told["bugs"][0]["title"] = "<b>&</b>"
    for one in drawn({**told, "steps": told["steps"]}):
        assert "<script>" not in one.svg
        ElementTree.fromstring(one.svg)  # noqa: S314


def test_many_runs_become_several_drawings_that_fit_a_page(told: Any) -> None:
    told["runs"] = [{**told["runs"][1], "label": f"R{n}"} for n in range(100)]
    found = diagrams.throughput(told)
    assert len(found) == 3
    assert [f.title for f in found][1] == "Throughput by run, R36 to R71"
    for one in found:
        height = float(ElementTree.fromstring(one.svg).get("height", ""))  # noqa: S314
        assert height < 800


def test_of_many_gap_accounts_the_first_best_and_last_are_drawn(told: Any) -> None:
    gap = told["gaps"][0]
    told["gaps"] = [
        {"run": f"R{n}", "account": {**gap["account"], "measured_tok_s": 40.0 + (n == 5)}}
        for n in range(9)
    ]
    assert [g["run"] for g in diagrams.chosen_gaps(told)] == ["R0", "R5", "R8"]


def test_an_investigation_in_which_nothing_happened_has_no_course(told: Any) -> None:
    assert course.course({**told, "steps": []}) is None
    assert diagrams.throughput({**told, "runs": []}) == []


def test_colours_come_from_the_tokens_for_light() -> None:
    assert svg.colours()["critical"] == "#a8320a"
    assert svg.colours()["sheet"] == "#fdfdfb"


def test_a_font_of_this_machine_has_latin_and_none_has_what_is_no_character(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert fonts.has("é")
    if fonts._library() is not None:
        assert not fonts.has("\U0003fffd")
    monkeypatch.setattr(fonts, "has", lambda character: character != "\U00010380")
    assert fonts.missing("plain text, ä, ß and\u200b 🎉") == []
    assert fonts.missing("x\U00010380y\U00010380") == ["\U00010380"]
    words = fonts.in_words(["\U00010380"] * 30)
    assert "U+10380 ugaritic letter alpa" in words
    assert "and 6 more" in words
    assert fonts.in_words([]) == ""
