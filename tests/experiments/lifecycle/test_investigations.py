"""An investigation is resolved by the rules or by a signed exception, and by nothing else."""

from __future__ import annotations

import pytest

from experiments import lifecycle
from experiments.models import Finding, Investigation, Run, Verdict


def finding(investigation: Investigation, severity: str, **values: str) -> Finding:
    return Finding.objects.create(
        investigation=investigation,
        code=values.pop("code", "dead-draft"),
        severity=severity,
        confidence="certain",
        statement="nothing is accepted",
        **values,
    )


def faster(investigation: Investigation, baseline: Run, tok_s: float = 120.0) -> Run:
    return lifecycle.record_run(
        investigation=investigation,
        title="with draft",
        repeats=[lifecycle.RecordedRepeat(tok_s, 2.5)],
        baseline=baseline,
    )


def test_slugs_are_unique_and_never_empty(db: None) -> None:
    made = [
        lifecycle.create_investigation(title=title, question="q").slug
        for title in ("Slow draft", "Slow draft", "Slow draft", "!?", "draft " * 30)
    ]
    assert made[:4] == ["slow-draft", "slow-draft-2", "slow-draft-3", "investigation"]
    assert len(made[4]) <= 80


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"title": "  "}, "title is empty"),
        ({"title": "x" * 201}, "201 characters"),
        ({"question": ""}, "question is empty"),
        ({"goal_metric": "speed"}, "no metric"),
        ({"goal_kind": "win"}, "no goal"),
        ({"goal_value": 0.0}, "above zero"),
        ({"goal_value": float("nan")}, "above zero"),
    ],
)
def test_bad_values_are_refused_with_what_is_wrong(
    db: None, changes: dict[str, object], said: str
) -> None:
    values: dict[str, object] = {"title": "t", "question": "q"} | changes
    with pytest.raises(lifecycle.Refused, match=said):
        lifecycle.create_investigation(**values)  # type: ignore[arg-type]
    assert not Investigation.objects.exists()


def test_an_edit_changes_what_is_given_and_keeps_the_address(investigation: Investigation) -> None:
    lifecycle.edit_investigation(investigation, title="Fast draft", goal_value=1.2)
    investigation.refresh_from_db()
    assert (investigation.title, investigation.goal_value) == ("Fast draft", 1.2)
    assert (investigation.slug, investigation.question) == ("slow-draft", "Is the draft worth it?")


def test_the_baseline_must_be_a_run_of_the_investigation(investigation: Investigation) -> None:
    other = lifecycle.create_investigation(title="other", question="q")
    run = lifecycle.record_run(
        investigation=other, title="r", repeats=[lifecycle.RecordedRepeat(1.0)]
    )
    with pytest.raises(lifecycle.Refused, match="another investigation"):
        lifecycle.edit_investigation(investigation, baseline=run)


def test_an_unmet_goal_keeps_it_open_and_says_what_is_missing(
    investigation: Investigation, baseline: Run
) -> None:
    faster(investigation, baseline, 54.8)
    with pytest.raises(lifecycle.Refused, match="Goal not met") as refused:
        lifecycle.resolve(investigation=investigation)
    assert any("54.8 against the baseline of 90 (0.61 of it)" in o for o in refused.value.obstacles)
    investigation.refresh_from_db()
    assert investigation.state == "open"


def test_without_a_figure_the_goal_cannot_be_judged(investigation: Investigation) -> None:
    assert any("cannot be judged" in o for o in lifecycle.obstacles(investigation))


def test_a_met_goal_with_nothing_open_resolves_it(
    investigation: Investigation, baseline: Run
) -> None:
    faster(investigation, baseline)
    lifecycle.resolve(investigation=investigation)
    assert (investigation.state, investigation.exception_by) == ("resolved", "")
    assert investigation.closed_at is not None


@pytest.mark.parametrize(("severity", "stands"), [("critical", 1), ("high", 1), ("medium", 0)])
def test_only_grave_findings_keep_it_open(
    investigation: Investigation, baseline: Run, severity: str, stands: int
) -> None:
    faster(investigation, baseline)
    finding(investigation, severity)
    assert len(lifecycle.obstacles(investigation)) == stands


@pytest.mark.parametrize("state", ["fixed", "set-aside", "withdrawn"])
def test_a_finding_that_is_no_longer_open_does_not_count(
    investigation: Investigation, baseline: Run, state: str
) -> None:
    faster(investigation, baseline)
    finding(investigation, "critical", state=state)
    assert lifecycle.obstacles(investigation) == ()


def test_an_undecided_prediction_keeps_it_open_until_it_is_decided(
    investigation: Investigation, baseline: Run
) -> None:
    hypothesis = lifecycle.add_hypothesis(investigation=investigation, claim="it helps")
    lifecycle.register_prediction(hypothesis=hypothesis, baseline=baseline)
    run = faster(investigation, baseline)
    assert lifecycle.obstacles(investigation) == (
        "The prediction of H1 is undecided: no run has tested it.",
    )
    Verdict.objects.create(
        hypothesis=hypothesis, run=run, applied="yes", outcome="supported", applied_reason="r"
    )
    assert lifecycle.obstacles(investigation) == ()


def test_a_hypothesis_without_a_prediction_does_not_keep_it_open(
    investigation: Investigation, baseline: Run
) -> None:
    faster(investigation, baseline)
    lifecycle.add_hypothesis(investigation=investigation, claim="a thought")
    assert lifecycle.obstacles(investigation) == ()


def test_a_signed_exception_resolves_it_and_is_kept(
    investigation: Investigation, baseline: Run
) -> None:
    lifecycle.resolve(
        investigation=investigation, exception_by="Ada", exception_reason="the rig is gone"
    )
    assert investigation.state == "resolved"
    assert (investigation.exception_by, investigation.exception_reason) == (
        "Ada",
        "the rig is gone",
    )


@pytest.mark.parametrize(("by", "reason"), [("Ada", ""), ("", "why"), ("  ", "why")])
def test_an_exception_needs_both_name_and_reason(
    investigation: Investigation, by: str, reason: str
) -> None:
    with pytest.raises(lifecycle.Refused):
        lifecycle.resolve(investigation=investigation, exception_by=by, exception_reason=reason)


def test_an_exception_that_was_not_needed_is_not_recorded(
    investigation: Investigation, baseline: Run
) -> None:
    faster(investigation, baseline)
    lifecycle.resolve(investigation=investigation, exception_by="Ada", exception_reason="just so")
    assert investigation.exception_by == ""


def test_closing_twice_is_refused_and_reopening_takes_the_exception_back(
    investigation: Investigation,
) -> None:
    lifecycle.abandon(investigation=investigation, by="Ada", reason="no hardware")
    with pytest.raises(lifecycle.Refused, match="abandoned already"):
        lifecycle.abandon(investigation=investigation, by="Ada", reason="again")
    lifecycle.reopen(investigation=investigation)
    assert (investigation.state, investigation.exception_by) == ("open", "")
    assert investigation.closed_at is None
    with pytest.raises(lifecycle.Refused, match="is open"):
        lifecycle.reopen(investigation=investigation)
