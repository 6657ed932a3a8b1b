"""The story entered as it happened: what stands at its end, and what is still left to do."""

from __future__ import annotations

from typing import Any

import pytest

from experiments import checkup, lifecycle, queries
from experiments.models import Investigation
from experiments.queries import HypothesisFacts, InvestigationPage
from experiments.reports.record import record_of
from experiments.reports.taking_up import offers
from experiments.story.recorded import load_story
from specdebug.diagnosis.timeline import Regression, regressions


@pytest.fixture
def page(db: Any, data_dir: Any) -> InvestigationPage:
    load_story()
    return queries.investigation_page(Investigation.objects.get().slug)


def hypothesis(page: InvestigationPage, label: str) -> HypothesisFacts:
    return next(h for h in page.dossier.hypotheses if h.hypothesis.label == label)


def compared(page: InvestigationPage, run: str, against: str) -> Regression:
    found = regressions(record_of(page.dossier))
    return next(c for c in found if (c.run, c.against) == (run, against))


def test_the_story_ends_as_it_must(page: InvestigationPage) -> None:
    first = hypothesis(page, "H1").verdict
    assert first is not None
    assert (first.applied, first.outcome) == ("yes", "refuted")
    assert first.run.label == "R2"
    assert "speculative_num_draft_tokens is 16" in first.applied_reason

    layers = hypothesis(page, "H3").verdict
    assert layers is not None
    assert (layers.applied, layers.outcome) == ("unknown", "undecided")
    assert "not known" in layers.applied_reason, "no evidence of the captured layers is recorded"
    assert "was not measured" in layers.outcome_reason, "no accept length is recorded for R3"

    worse = compared(page, "R2", "R1")
    assert worse.verdict == "regression"
    assert round(worse.change_percent, 1) == -17.8
    open_ = compared(page, "R3", "R1")
    assert open_.verdict == "inconclusive"
    assert open_.unreplicated
    assert round(open_.change_percent, 1) == -3.5
    assert "3.0 %" in open_.sentence, "the spread that is taken for granted is named"

    goal = page.goal
    assert goal.met is False
    assert goal.latest is not None
    assert goal.latest.run.label == "R3"
    assert goal.latest_ratio == pytest.approx(0.61, abs=0.005)
    assert "R3, is at 0.61 of it" in goal.sentence


def test_it_cannot_be_resolved_and_says_what_is_left(page: InvestigationPage) -> None:
    with pytest.raises(lifecycle.Refused) as refused:
        lifecycle.resolve(investigation=page.investigation)
    left = " ".join(refused.value.obstacles)
    for what in ("Goal not met", "H3 is undecided after R3", "step-overhead-unexplained (high)"):
        assert what in left, what
    assert Investigation.objects.get().state == "open"


def test_the_advice_leads_with_the_accept_length_and_the_unexplained_milliseconds(
    page: InvestigationPage,
) -> None:
    first, second = [o.advice.action for o in offers(page)][:2]
    assert first == "Record the accept length of R3"
    assert second.startswith("Find the unexplained 16 ms of every step")


def test_a_verdict_follows_evidence_that_is_added_and_keeps_its_history(
    page: InvestigationPage,
) -> None:
    """Somebody measures R3 again and writes its accept length down."""
    facts = next(r for r in page.dossier.runs if r.run.label == "R3")
    repeat = facts.run.repeats.get()
    repeat.accept_len, repeat.step_ms = 2.6, 1000 * 2.6 / repeat.tok_s
    repeat.save()
    checkup.recheck(facts.run)
    verdicts = list(hypothesis(page, "H3").hypothesis.verdicts.order_by("pk"))
    assert [v.outcome for v in verdicts] == ["undecided", "supported"]
    assert [v.in_force for v in verdicts] == [False, True]
    after = queries.investigation_page(page.investigation.slug)
    assert not any("H3 is undecided" in left for left in after.obstacles)
