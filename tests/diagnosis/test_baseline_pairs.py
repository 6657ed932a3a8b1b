"""Which plain run a run with a draft is set against: the one that was measured on the same."""

from __future__ import annotations

from specdebug.diagnosis.case import Input, build_case
from specdebug.diagnosis.checks.costs import against_baseline
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.figures import baseline, baseline_of, cost_points, speculative_runs

HEADER = (
    "| run | dataset | concurrency | num_steps | tok/s | accept len |\n|---|---|---|---|---|---|\n"
)


def case(*rows: str) -> Case:
    return build_case([Input("p.txt", (HEADER + "".join(f"| {r} |\n" for r in rows)).encode())])


def pairs(of: Case) -> list[tuple[float | None, float | None]]:
    return [(base.tok_s, run.tok_s) for base, run in against_baseline(of)]


ONE = "baseline | cnn | 1 | - | 140 | -"
EIGHT = "baseline | cnn | 8 | - | 900 | -"
OTHER = "baseline | mt | 1 | - | 90 | -"


def test_a_run_is_compared_on_the_same_dataset_at_the_same_load() -> None:
    found = case(
        ONE,
        EIGHT,
        OTHER,
        "EAGLE3 | mt | 1 | 3 | 120 | 2.7",
        "EAGLE3 | cnn | 8 | 3 | 800 | 2.1",
        "EAGLE3 | cnn | 1 | 3 | 168 | 2.1",
    )
    assert pairs(found) == [(90.0, 120.0), (900.0, 800.0), (140.0, 168.0)]
    assert [r.label for r in speculative_runs(found)] == [
        "EAGLE3 (mt)",
        "EAGLE3 (cnn)",
        "EAGLE3 (cnn)",
    ]
    first = baseline(found)
    assert first is not None
    assert first.tok_s == 90.0  # that of the run the answer is about


def test_without_a_plain_run_on_the_same_there_is_no_baseline() -> None:
    found = case(ONE, "EAGLE3 | mt | 1 | 3 | 120 | 2.7")
    assert pairs(found) == []
    assert baseline(found) is None
    assert baseline_of(found, speculative_runs(found)[0]) is None


def test_a_plain_run_that_does_not_say_is_everybodys() -> None:
    found = case("baseline | - | 1 | - | 90 | -", "EAGLE3 | mt | 1 | 3 | 120 | 2.7")
    assert pairs(found) == [(90.0, 120.0)]


def test_step_times_of_different_prompts_are_on_no_line() -> None:
    found = case(
        ONE,
        OTHER,
        "EAGLE3 | cnn | 1 | 3 | 168 | 2.1",
        "EAGLE3 | cnn | 1 | 5 | 160 | 2.3",
        "EAGLE3 | mt | 1 | 7 | 120 | 2.7",
    )
    assert [point.num_steps for point in cost_points(found)] == [3, 5]
