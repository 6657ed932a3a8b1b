"""A prediction is registered before its run and cannot be changed behind it."""

from __future__ import annotations

import shlex

import pytest

from experiments import lifecycle
from experiments.models import Hypothesis, HypothesisLink, Investigation, Run, Verdict

DRAFTED = shlex.split("--model-path target --speculative-algorithm EAGLE3")


@pytest.fixture
def hypothesis(investigation: Investigation) -> Hypothesis:
    return lifecycle.add_hypothesis(investigation=investigation, claim="more steps help")


def run_for(hypothesis: Hypothesis) -> Run:
    run = lifecycle.add_run(
        investigation=hypothesis.investigation,
        title="r",
        server_args=DRAFTED,
        hypothesis=hypothesis,
    )
    Run.objects.filter(pk=run.pk).update(state=Run.State.QUEUED)
    claimed = lifecycle.claim_run(run.pk, token="t", worker="w")
    assert claimed is not None
    return claimed


def test_hypotheses_are_numbered_from_one(investigation: Investigation) -> None:
    made = [
        lifecycle.add_hypothesis(investigation=investigation, claim=c).label for c in ("a", "b")
    ]
    assert made == ["H1", "H2"]


def test_links_are_made_with_the_hypothesis_and_once(
    investigation: Investigation, hypothesis: Hypothesis
) -> None:
    second = lifecycle.add_hypothesis(
        investigation=investigation, claim="b", links=[("replaces", hypothesis)]
    )
    lifecycle.link_hypotheses(origin=second, kind="replaces", other=hypothesis)
    assert [str(link) for link in HypothesisLink.objects.all()] == ["H2 replaces H1"]


def test_bad_links_are_refused_and_leave_no_hypothesis_behind(
    investigation: Investigation, hypothesis: Hypothesis
) -> None:
    with pytest.raises(lifecycle.Refused, match="no kind of link"):
        lifecycle.add_hypothesis(
            investigation=investigation, claim="b", links=[("because", hypothesis)]
        )
    assert Hypothesis.objects.count() == 1
    with pytest.raises(lifecycle.Refused, match="itself"):
        lifecycle.link_hypotheses(origin=hypothesis, kind="replaces", other=hypothesis)
    other = lifecycle.create_investigation(title="o", question="q")
    stranger = lifecycle.add_hypothesis(investigation=other, claim="c")
    with pytest.raises(lifecycle.Refused, match="another investigation"):
        lifecycle.link_hypotheses(origin=hypothesis, kind="replaces", other=stranger)


def test_before_the_first_run_a_prediction_is_changed_in_place(
    hypothesis: Hypothesis, baseline: Run
) -> None:
    first = lifecycle.register_prediction(hypothesis=hypothesis, baseline=baseline)
    again = lifecycle.register_prediction(
        hypothesis=hypothesis, baseline=baseline, direction="down"
    )
    assert (again.pk, again.version, again.direction) == (first.pk, 1, "down")


def test_after_the_first_run_a_change_is_a_visible_new_version(
    hypothesis: Hypothesis, baseline: Run
) -> None:
    lifecycle.register_prediction(hypothesis=hypothesis, baseline=baseline)
    run_for(hypothesis)
    changed = lifecycle.register_prediction(
        hypothesis=hypothesis, baseline=baseline, direction="within", low=0.9, high=1.1
    )
    versions = list(hypothesis.predictions.all())
    assert [(p.version, p.direction) for p in versions] == [(1, "up"), (2, "within")]
    assert versions[0].frozen_at is not None
    assert changed.frozen_at is None


def test_registering_the_same_again_makes_no_new_version(
    hypothesis: Hypothesis, baseline: Run
) -> None:
    first = lifecycle.register_prediction(hypothesis=hypothesis, baseline=baseline)
    run_for(hypothesis)
    assert lifecycle.register_prediction(hypothesis=hypothesis, baseline=baseline) == first


def test_a_run_is_bound_to_the_version_of_its_claim(hypothesis: Hypothesis, baseline: Run) -> None:
    lifecycle.register_prediction(hypothesis=hypothesis, baseline=baseline)
    early = run_for(hypothesis)
    lifecycle.register_prediction(hypothesis=hypothesis, baseline=baseline, margin=0.1)
    late = run_for(hypothesis)
    for run, version in ((early, 1), (late, 2)):
        run.refresh_from_db()
        assert run.prediction is not None
        assert run.prediction.version == version


def test_a_prediction_after_the_run_does_not_bind_it(hypothesis: Hypothesis, baseline: Run) -> None:
    run = run_for(hypothesis)
    lifecycle.register_prediction(hypothesis=hypothesis, baseline=baseline)
    run.refresh_from_db()
    assert run.prediction is None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"metric": "joy"}, "no metric"),
        ({"direction": "sideways"}, "no direction"),
        ({"direction": "within"}, "both bounds"),
        ({"direction": "within", "low": 1.2, "high": 1.1}, "empty"),
        ({"direction": "within", "low": -1.0, "high": 1.1}, "above zero"),
        ({"margin": -0.1}, "margin"),
        ({"margin": float("inf")}, "margin"),
    ],
)
def test_a_prediction_that_cannot_be_judged_is_refused(
    hypothesis: Hypothesis, baseline: Run, values: dict[str, object], said: str
) -> None:
    with pytest.raises(lifecycle.Refused, match=said):
        lifecycle.register_prediction(hypothesis=hypothesis, baseline=baseline, **values)  # type: ignore[arg-type]
    assert not hypothesis.predictions.exists()


def test_a_prediction_needs_a_baseline_of_the_same_investigation(hypothesis: Hypothesis) -> None:
    with pytest.raises(lifecycle.Refused, match="compares with"):
        lifecycle.register_prediction(hypothesis=hypothesis)


def test_a_tested_claim_stays_as_it_was_stated(hypothesis: Hypothesis) -> None:
    lifecycle.edit_hypothesis(hypothesis, claim="reworded", mechanism="m")
    run_for(hypothesis)
    with pytest.raises(lifecycle.Refused, match="stays as it was stated"):
        lifecycle.edit_hypothesis(hypothesis, claim="I always said so", mechanism="")
    hypothesis.refresh_from_db()
    assert hypothesis.claim == "reworded"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"kind": "hope"}, "no kind of check"),
        ({"kind": "effective-equals", "key": " "}, "argument's name is empty"),
        ({"kind": "log-present"}, "text of the line is empty"),
        ({"kind": "captured-layers", "expected": "3,31"}, "must be a list"),
        ({"kind": "captured-layers", "expected": []}, "must be a list"),
    ],
)
def test_a_check_that_cannot_be_made_is_refused(
    hypothesis: Hypothesis, values: dict[str, object], said: str
) -> None:
    with pytest.raises(lifecycle.Refused, match=said):
        lifecycle.add_applied_check(hypothesis=hypothesis, **values)  # type: ignore[arg-type]


def test_overruling_keeps_the_old_verdict_in_the_history(
    hypothesis: Hypothesis, baseline: Run
) -> None:
    old = Verdict.objects.create(
        hypothesis=hypothesis,
        run=baseline,
        applied="yes",
        applied_reason="as logged",
        outcome="undecided",
        outcome_reason="noise",
    )
    new = lifecycle.overrule(verdict=old, by="Ada", reason="seen ten times", outcome="refuted")
    old.refresh_from_db()
    assert (old.in_force, new.in_force) == (False, True)
    assert (new.applied_reason, new.outcome_reason) == ("as logged", "Ada: seen ten times")
    with pytest.raises(lifecycle.Refused, match="no longer in force"):
        lifecycle.overrule(verdict=old, by="Bob", reason="no", outcome="supported")
