import pytest

from specdebug.diagnosis.advice import advise
from specdebug.diagnosis.facts import Case, Measured, case_from_rows
from specdebug.diagnosis.next_run import NextRun, Spent, cost_of, next_run, without_speculation


def story(*more: Measured) -> Case:
    return case_from_rows(
        runs=[
            Measured("R0", "rows", speculative=False, tok_s=(90.0,)),
            Measured("R1", "rows", num_steps=1, topk=1, tok_s=(56.8,), accept_len=1.6),
            Measured("R2", "rows", num_steps=15, topk=1, tok_s=(46.7,), accept_len=1.9),
            *more,
        ]
    )


def planned(case: Case, key: str) -> NextRun | None:
    return next(next_run(a, case) for a in advise(case) if a.key == key)


def test_every_advice_has_a_kind_of_its_own() -> None:
    found = advise(story(Measured("R3", "rows", speculative=True, tok_s=(54.8,))))
    keys = [a.key for a in found]
    assert all(keys)
    assert len(keys) == len(set(keys))


def test_the_best_depth_is_planned_with_its_predicted_interval() -> None:
    found = planned(story(), "best-depth")
    assert found is not None
    assert found.of == found.baseline == "R1"
    assert found.flags == {"--speculative-num-steps": 3, "--speculative-num-draft-tokens": 4}
    assert found.low is not None
    assert found.high is not None
    assert found.low < 62.3 / 56.8 < found.high
    assert found.metric == "tok_s"


def test_a_missing_accept_length_is_planned_as_the_same_run_again() -> None:
    case = story(Measured("R3", "rows", speculative=True, tok_s=(54.8,)))
    found = planned(case, "accept-length")
    assert found is not None
    assert found.of == "R3"
    assert not found.flags
    assert found.direction == "within"


def test_the_overhead_is_looked_for_with_recorded_step_times() -> None:
    found = planned(story(), "overhead")
    assert found is not None
    assert found.env == {"SGLANG_RECORD_STEP_TIME": "1"}


def test_a_missing_baseline_is_the_run_without_its_draft() -> None:
    case = case_from_rows(
        runs=[Measured("R1", "rows", num_steps=1, topk=1, tok_s=(56.8,), accept_len=1.6)]
    )
    found = planned(case, "plain-run")
    assert found is not None
    assert found.plain
    assert found.direction == "down"


def test_a_second_depth_without_a_line_predicts_the_step_time_widely() -> None:
    case = case_from_rows(
        runs=[
            Measured("R0", "rows", speculative=False, tok_s=(90.0,)),
            Measured("R1", "rows", num_steps=1, topk=1, tok_s=(56.8,), accept_len=1.6),
        ]
    )
    found = planned(case, "second-depth")
    assert found is not None
    assert (found.metric, found.flags["--speculative-num-steps"]) == ("step_ms", 5)


def test_what_needs_a_hand_plans_no_run() -> None:
    assert planned(story(), "release") is None


def test_speculation_is_taken_out_of_arguments_in_either_form() -> None:
    argv = "--model-path m --speculative-algorithm EAGLE3 --speculative-num-steps=3 --tp-size 8"
    assert without_speculation(argv.split()) == ["--model-path", "m", "--tp-size", "8"]
    assert without_speculation(["--speculative-token-map", "f", "g"]) == []


@pytest.mark.parametrize(
    ("effort", "minutes"),
    [("no run", 0), ("one request", 80.8), ("one run", 88), ("several runs", 208)],
)
def test_what_an_experiment_costs_is_taken_from_earlier_starts(effort: str, minutes: float) -> None:
    spent = [Spent(600, 60, gpus=8)]
    found = cost_of(effort, spent)  # type: ignore[arg-type]
    assert found is not None
    assert found.gpu_minutes == pytest.approx(minutes)
    assert found.n == 1


def test_without_an_earlier_start_nothing_is_said_of_the_cost() -> None:
    assert cost_of("one run", []) is None
    mixed = cost_of("one run", [Spent(60, 60), Spent(60, 60), Spent(600, 60)])
    assert mixed is not None
    assert (mixed.gpu_minutes, mixed.most, mixed.n) == (2.0, 11.0, 3)
