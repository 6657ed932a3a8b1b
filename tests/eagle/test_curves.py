from pathlib import Path

import pytest

from specdebug.eagle.curves import curve_from, curves_for, parse_points, shipped_curves


def test_shipped_curves_name_target_source_and_conditions() -> None:
    found = shipped_curves()
    assert len(found) >= 12
    for curve in found:
        assert curve.names
        assert "InferenceX" in curve.source
        assert "coding prompts" in curve.about
        assert not curve.ours
    kimi = curves_for(["moonshotai/Kimi-K2.5"], found)
    assert [c.at(1) for c in kimi] == [1.83, 1.80]
    assert [c.at(8) for c in kimi] == [3.77, 3.51]


def test_shipped_figures_are_those_of_the_source(shared: Path) -> None:
    folder = shared / "data" / "golden_accept_length"
    theirs = [
        float(line.split(":")[1])
        for path in sorted(folder.glob("*.yaml"))
        for line in path.read_text().splitlines()
        if line.startswith("    ")
    ]
    ours = [v for curve in shipped_curves() for v in curve.accept_len.values()]
    assert sorted(ours) == sorted(theirs)


def test_beyond_the_end_the_last_figure_stands_and_before_the_start_none() -> None:
    curve = curve_from({"target": "T", "accept_len": {"2": 2.1, "3": 2.4}})
    assert curve.at(9) == 2.4
    assert curve.at(1) is None


def test_the_longer_name_wins() -> None:
    found = curves_for(["deepseek-ai/DeepSeek-V4-Pro-0813"], shipped_curves())
    assert {c.target for c in found} == {"DeepSeek-V4-Pro-0813"}
    other = curves_for(["deepseek-ai/DeepSeek-V4-Pro"], shipped_curves())
    assert {c.target for c in other} == {"DeepSeek-V4-Pro"}


def test_a_curve_of_another_method_is_none_and_one_without_a_method_serves_all() -> None:
    mine = curve_from({"target": "Kimi-K2.5", "accept_len": {1: 1.7}})
    assert curves_for(["kimi-k2.5"], [*shipped_curves(), mine], "mtp") == [mine]
    assert curves_for(["llama"], shipped_curves()) == []


@pytest.mark.parametrize(
    "text", ["1: 1.83, 2: 2.43", "1: 1.83\n2: 2.43\n", "1=1,83; 2=2,43", " 2:2.43,1:1.83"]
)
def test_points_are_read_as_people_write_them(text: str) -> None:
    assert parse_points(text) == {1: 1.83, 2: 2.43}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "at least one point"),
        ("1: 1.8, two: 2", "not like 1: 1.83"),
        ("1: 1.8\n1: 1.9", "twice"),
        ("1: 2.5", "between 1 and 2"),
        ("1: 0.8", "between 1 and 2"),
        ("0: 1", "1 to 64"),
        ("3: nan", "not like"),
    ],
)
def test_what_is_no_curve_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_points(text)


def test_a_stored_curve_that_is_broken_says_how() -> None:
    with pytest.raises(ValueError, match="name of its target"):
        curve_from({"accept_len": {1: 1.5}})
    with pytest.raises(ValueError, match="not a mapping"):
        curve_from({"target": "T", "accept_len": [1.5]})
