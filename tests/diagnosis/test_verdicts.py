import pytest

from specdebug.diagnosis.verdicts import (
    AppliedCheck,
    Goal,
    LogFacts,
    OpenFinding,
    Prediction,
    Undecided,
    applied_verdict,
    closing_obstacles,
    goal_status,
    prediction_verdict,
    with_latest,
)

STEPS = AppliedCheck("effective-equals", "speculative_num_steps", 15)
TOKENS = AppliedCheck("effective-equals", "speculative_num_draft_tokens", 16)


def test_without_a_check_nothing_is_known_but_what_is_not_in_force_is_named() -> None:
    known = {"speculative_num_draft_tokens": 2, "speculative_num_steps": 1}
    asked = {"speculative_num_draft_tokens": 16, "speculative_num_steps": "1", "model": "m"}
    found = applied_verdict([], known, asked=asked)
    assert found.applied == "unknown"
    assert found.reason == (
        "No check was registered that would show the change; "
        "but speculative_num_draft_tokens is 2, not 16 as asked."
    )
    quiet = applied_verdict([], known, asked={"speculative_num_steps": 1})
    assert quiet.reason == "No check was registered that would show the change."


def test_a_change_is_applied_when_all_effective_arguments_say_so() -> None:
    found = applied_verdict(
        [STEPS, TOKENS], {"speculative_num_steps": 15, "speculative_num_draft_tokens": 16}
    )
    assert found.applied == "yes"
    assert "15" in found.reason


def test_one_argument_that_differs_means_not_applied() -> None:
    found = applied_verdict(
        [STEPS, TOKENS], {"speculative_num_steps": 15, "speculative_num_draft_tokens": 2}
    )
    assert found.applied == "no"
    assert "is 2" in found.reason


def test_an_argument_nobody_saw_leaves_it_unknown() -> None:
    assert applied_verdict([STEPS], None).applied == "unknown"
    assert applied_verdict([STEPS], {}).applied == "unknown"
    assert applied_verdict([], {"a": 1}).applied == "unknown"


@pytest.mark.parametrize(
    ("value", "expected"), [("15", 15), (15.0, 15), (True, "true"), ([1], [1])]
)
def test_equal_values_in_other_types_are_equal(value: object, expected: object) -> None:
    check = AppliedCheck("effective-equals", "k", expected)
    assert applied_verdict([check], {"k": value}).applied == "yes"


def test_true_is_not_the_number_one() -> None:
    check = AppliedCheck("effective-equals", "k", 1)
    assert applied_verdict([check], {"k": True}).applied == "no"


def test_an_absent_warning_proves_something_in_a_whole_log_only() -> None:
    check = AppliedCheck("log-absent", "is adjusted")
    assert applied_verdict([check], None, LogFacts(("ready",), whole=True)).applied == "yes"
    assert applied_verdict([check], None, LogFacts(("ready",), whole=False)).applied == "unknown"
    assert applied_verdict([check], None, LogFacts(("x is adjusted y",))).applied == "no"
    assert applied_verdict([check], None).applied == "unknown"


def test_a_present_line_proves_itself_and_a_missing_one_needs_the_whole_log() -> None:
    check = AppliedCheck("log-present", "Capture draft")
    assert applied_verdict([check], None, LogFacts(("Capture draft end",))).applied == "yes"
    assert applied_verdict([check], None, LogFacts((), whole=True)).applied == "no"
    assert applied_verdict([check], None, LogFacts(())).applied == "unknown"


def test_captured_layers_are_compared_in_order() -> None:
    check = AppliedCheck("captured-layers", expected=["embed", 3, 31])
    assert applied_verdict([check], None, None, [0, 3, 31]).applied == "yes"
    assert applied_verdict([check], None, None, [3, 0, 31]).applied == "no"
    assert applied_verdict([check], None).applied == "unknown"


UP = Prediction("tok_s", "R1", "up")


def test_the_storys_prediction_is_refuted_and_says_that_the_spread_is_assumed() -> None:
    found = prediction_verdict(UP, [46.7], [56.8])
    assert found.outcome == "refuted"
    assert "assumed spread of 3 %" in found.reason
    assert "unreplicated" in found.reason


def test_a_clear_rise_is_supported_and_a_hint_is_undecided() -> None:
    assert prediction_verdict(UP, [70.0], [56.8]).outcome == "supported"
    assert prediction_verdict(UP, [58.0], [56.8]).outcome == "undecided"


def test_a_fall_can_be_predicted() -> None:
    assert (
        prediction_verdict(Prediction("step_ms", "R1", "down"), [20], [28]).outcome == "supported"
    )


def test_an_interval_is_held_against_the_measured_one() -> None:
    within = Prediction("tok_s", "R0", "within", 1.1, 1.3)
    assert prediction_verdict(within, [120, 121, 119], [100, 101, 99]).outcome == "supported"
    assert prediction_verdict(within, [100, 101, 99], [100, 101, 99]).outcome == "refuted"
    assert prediction_verdict(within, [110, 112, 108], [100, 101, 99]).outcome == "undecided"


def test_without_any_spread_single_figures_decide_nothing() -> None:
    assert prediction_verdict(UP, [46.7], [56.8], assumed_cv=None).outcome == "undecided"


def test_what_was_not_measured_or_not_applied_is_undecided() -> None:
    assert prediction_verdict(UP, [], [56.8]).outcome == "undecided"
    found = prediction_verdict(UP, [99.0], [56.8], invalid="the change was not applied")
    assert found.outcome == "undecided"
    assert "not applied" in found.reason


def test_a_better_run_can_still_miss_the_goal() -> None:
    found = goal_status(Goal("tok_s", "beat-baseline"), 54.8, 90)
    assert found.met is False
    assert found.ratio == pytest.approx(0.609, abs=0.001)
    assert found.gap == pytest.approx(-35.2)
    assert "0.61 of it" in found.sentence


def test_the_baseline_itself_is_not_beaten_by_an_equal_figure() -> None:
    assert goal_status(Goal("tok_s", "beat-baseline"), 90, 90).met is False
    assert goal_status(Goal("tok_s", "beat-baseline"), 90.1, 90).met is True
    assert goal_status(Goal("tok_s", "beat-baseline", 1.1), 99, 90).met is True


def test_goals_with_a_figure_and_goals_that_cannot_be_judged() -> None:
    assert goal_status(Goal("accept_len", "at-least", 2.5), 2.6).met is True
    assert goal_status(Goal("step_ms", "at-most", 20), 28).met is False
    assert goal_status(Goal("tok_s", "beat-baseline"), 90).met is None
    assert goal_status(Goal("tok_s", "at-least", 9), None).met is None


def test_an_unmet_goal_and_serious_findings_keep_an_investigation_open() -> None:
    unmet = goal_status(Goal("tok_s", "beat-baseline"), 54.8, 90)
    findings = [OpenFinding("dead-draft", "critical"), OpenFinding("too-few-samples", "info")]
    assert len(closing_obstacles(unmet, findings)) == 2
    met = goal_status(Goal("tok_s", "beat-baseline"), 99, 90)
    assert closing_obstacles(met, findings[1:]) == ()


def test_a_prediction_without_a_verdict_stands_in_the_way_and_says_after_which_run() -> None:
    met = goal_status(Goal("tok_s", "beat-baseline"), 99, 90)
    tested = Undecided("H3", "R3", "accept_len of the run was not measured.")
    assert closing_obstacles(met, [], [tested, Undecided("H4")]) == (
        "The prediction of H3 is undecided after R3: accept_len of the run was not measured.",
        "The prediction of H4 is undecided: no run has tested it.",
    )


def test_the_goal_says_where_the_latest_run_is_as_well() -> None:
    found = goal_status(Goal("tok_s", "beat-baseline"), 56.8, 90)
    assert with_latest(found, "R3", 54.8).sentence.endswith(
        "(0.63 of it). The latest run, R3, is at 0.61 of it."
    )
    assert with_latest(found, "R3", None) == found


def test_figures_that_were_topped_up_are_judged_at_a_wider_interval_and_say_so() -> None:
    predicted = Prediction("tok_s", "R0", "up")
    run, base = (104.0, 106.0, 105.0, 103.5), (100.0, 101.0, 99.0, 100.5)
    once = prediction_verdict(predicted, run, base)
    third = prediction_verdict(predicted, run, base, extra=2)
    assert "not planned" not in once.reason
    assert "a look that was not planned and therefore at 99.9 %" in third.reason
    assert once.comparison is not None
    assert third.comparison is not None
    assert third.comparison.low < once.comparison.low  # type: ignore[operator]


def test_undecided_names_the_repeats_for_the_registered_margin() -> None:
    predicted = Prediction("tok_s", "R0", "up", margin=0.10)
    found = prediction_verdict(predicted, (100.0, 112.0, 119.0), (100.0, 104.0, 97.0))
    assert found.outcome == "undecided"
    assert "a change of 10 %" in found.reason


def test_a_prediction_speaks_of_figures_in_the_fields_words() -> None:
    for metric, words in (("tok_s", "throughput"), ("accept_len", "accept length")):
        prediction = Prediction(metric=metric, baseline="R0", direction="up")
        assert str(prediction) == f"{words} rises by more than 2 % against R0"
        told = prediction_verdict(prediction, baseline=[], run=[1.0]).reason
        assert told == f"{words} of R0 was not measured."
