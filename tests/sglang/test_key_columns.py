"""Columns that say what a run was measured on, and the plain run that was measured on the same."""

from __future__ import annotations

import pytest

from specdebug.sglang.benches import BenchReport, read_benches
from specdebug.sglang.key_columns import filled_down, row_keys, said, same_keys


def table(header: str, *rows: str) -> BenchReport:
    lines = [header, "|".join("---" for _ in header.split("|")), *rows]
    return read_benches("\n".join(f"| {line} |" for line in lines))


def keys(report: BenchReport) -> list[tuple[str, ...]]:
    return [tuple(value for _, value in run.keys) for run in report.runs]


@pytest.mark.parametrize(
    ("title", "one", "other"),
    [
        ("dataset", "cnn", "mt-bench"),
        ("task", "math", "chat"),
        ("benchmark", "gsm8k", "mtbench"),
        ("GPU", "H100", "A100"),
        ("GPUs", "4", "8"),
        ("input len", "1024", "8192"),
        ("model", "8B", "32B"),
        ("temperature", "0", "1"),
        ("数据集", "cnn", "mt-bench"),
        ("attention backend", "fa3", "triton"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_column_of_what_was_measured_is_a_key(
    title: str, one: str, other: str, first: bool
) -> None:
    def row(key: str, run: str, rest: str) -> str:
        return f"{key} | {run} | {rest}" if first else f"{run} | {key} | {rest}"

    report = table(
        row(title, "method", "tok/s"),
        row(one, "vanilla", "90"),
        row(other, "vanilla", "140"),
        row(one, "eagle3", "100"),
        row(other, "eagle3", "150"),
    )
    assert keys(report) == [(one,), (other,), (one,), (other,)]
    assert [run.label for run in report.runs] == ["vanilla", "vanilla", "eagle3", "eagle3"]
    assert report.remarks == ()


@pytest.mark.parametrize(
    ("title", "plain", "spec"),
    [
        ("notes", "first try", "second try"),
        ("draft model", "-", "eagle3-head"),
        ("algorithm", "-", "EAGLE3"),
        ("benchmark duration (s)", "60", "90"),
        ("GPU memory (GB)", "60", "71"),
        ("accuracy on gsm8k task", "0.91", "0.90"),
        ("seed", "1", "2"),
    ],
)
def test_notes_figures_and_the_draft_itself_are_no_keys(title: str, plain: str, spec: str) -> None:
    report = table(f"run | {title} | tok/s", f"baseline | {plain} | 90", f"EAGLE3 | {spec} | 57")
    assert keys(report) == [(), ()]


def test_a_dataset_that_is_written_once_is_that_of_the_rows_below() -> None:
    report = table(
        "dataset | run | tok/s",
        "cnn | baseline | 140",
        " | EAGLE3 | 168",
        "mt | baseline | 90",
        " | EAGLE3 | 100",
    )
    assert keys(report) == [("cnn",), ("cnn",), ("mt",), ("mt",)]
    assert filled_down([["", "x"], ["a", "y"], ["", "z"]], (0,)) == [
        ["", "x"],
        ["a", "y"],
        ["a", "z"],
    ]


def test_a_run_that_has_no_plain_run_on_the_same_is_named() -> None:
    rows = ("baseline | cnn | 140", "EAGLE3 | cnn | 168", "EAGLE3 | mt-bench | 120")
    report = table("run | dataset | tok/s", *rows)
    assert report.remarks == ("no plain row was measured on the same as 'EAGLE3' (mt-bench)",)
    assert table("run | dataset | tok/s", *rows[:2]).remarks == ()
    assert table("run | dataset | tok/s", *rows[1:]).remarks == ()  # nobody looks for one


def test_two_runs_in_a_row_were_measured_on_what_the_row_names() -> None:
    report = table("dataset | baseline tok/s | EAGLE3 tok/s", "cnn | 140 | 168", "mt | 90 | 120")
    assert keys(report) == [("cnn",), ("cnn",), ("mt",), ("mt",)]
    lengths = table("input len | baseline tok/s | EAGLE3 tok/s", "1024 | 140 | 168")
    assert [run.keys for run in lengths.runs] == [(("input len", "1024"),)] * 2
    assert row_keys("cnn") == (("row", "cnn"),)
    assert row_keys("EAGLE3 steps=3") == row_keys("steps=3") == row_keys(None) == ()


def test_tables_with_a_plain_run_each_are_kept_apart() -> None:
    one = "cnn:\n| run | tok/s |\n|---|---|\n| baseline | 140 |\n| EAGLE3 | 168 |\n\n"
    two = "mt:\n| run | tok/s |\n|---|---|\n| baseline | 90 |\n| EAGLE3 | 120 |\n"
    assert keys(read_benches(one + two)) == [("1",), ("1",), ("2",), ("2",)]
    alone = two.replace("| baseline | 90 |\n", "")
    assert keys(read_benches(one + alone)) == [(), (), ()]


def test_the_same_is_said_in_the_same_words_or_about_the_same_figure() -> None:
    assert same_keys((("dataset", "CNN"),), (("dataset", "cnn"), ("tp", "8")))
    assert same_keys((("dataset", "cnn"),), ())
    assert same_keys((("input len", "1024"),), (("input len", "1,030"),))
    assert same_keys((("temperature", "0"),), (("temperature", "0.0"),))
    assert not same_keys((("dataset", "cnn"),), (("dataset", "mt"),))
    assert not same_keys((("model", "8B"),), (("model", "8M"),))
    assert not same_keys((("input len", "1024"),), (("input len", "8192"),))


def test_keys_are_said_unless_the_name_says_them() -> None:
    keys = (("dataset", "a"), ("tp", "8"), ("row", "b"), ("table", "1"))
    assert said(keys, "baseline") == "a, tp 8"
    assert said(keys, "run A") == "tp 8"
    assert said(()) == ""
