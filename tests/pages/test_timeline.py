"""The lane of the investigation's page: order, rails, and what hangs on a run."""

from __future__ import annotations

from typing import Any

from experiments import lifecycle, queries
from experiments.models import Finding, FindingEvent, Run
from experiments.reports import build


def steps_of(story: Any) -> list[Any]:
    page = queries.investigation_page(story.investigation.slug)
    steps: list[Any] = build.story(page)["steps"]
    return steps


def test_steps_stand_in_order_on_the_rail_of_their_kind(story: Any) -> None:
    assert [(step.kind, step.lane) for step in steps_of(story)] == [
        ("run", "deed"),
        ("hypothesis", "thought"),
        ("run", "deed"),
        ("verdict", "result"),
        ("finding", "result"),
        ("source", "result"),
        ("run", "deed"),
    ]


def test_an_event_put_in_between_stands_in_between(story: Any) -> None:
    lifecycle.add_event(
        investigation=story.investigation,
        title="thought",
        kind="belief",
        after=story.baseline.position,
    )
    steps = steps_of(story)
    assert (steps[1].title, steps[1].lane) == ("thought", "thought")


def test_a_regression_is_flagged_on_its_run_and_not_on_the_baseline(story: Any) -> None:
    baseline, slow = (s for s in steps_of(story) if s.kind == "run" and s.value is not None)
    assert (slow.tone, slow.change) == ("bad", "−36.9 % against the baseline")
    assert "regression against R0" in slow.badges[0].words
    assert baseline.tone == ""
    assert [badge.words for badge in baseline.badges] == ["baseline"]


def test_a_faster_run_is_good_and_not_flagged(story: Any) -> None:
    for repeat in story.slow.repeats.all():
        repeat.tok_s *= 3
        repeat.save()
    slow = next(s for s in steps_of(story) if s.anchor == "r1")
    assert slow.tone == "good"
    assert not [badge for badge in slow.badges if "regression" in badge.words]


def test_findings_of_a_run_are_one_step_with_the_gravest_first(story: Any) -> None:
    for severity in ("info", "critical"):
        found = Finding.objects.create(
            investigation=story.investigation,
            code=f"x-{severity}",
            severity=severity,
            confidence="certain",
            statement=severity,
        )
        FindingEvent.objects.create(finding=found, kind="opened", run=story.slow)
    step = next(s for s in steps_of(story) if s.kind == "finding")
    assert [one.severity for one in step.noted] == ["critical", "high", "info"]
    assert (step.title, step.tone) == ("3 findings", "bad")


def test_a_fix_that_was_verified_is_a_step_of_its_own(story: Any) -> None:
    FindingEvent.objects.create(finding=story.finding, kind="fixed", run=story.draft)
    step = steps_of(story)[-1]
    assert (step.title, step.tone) == ("1 finding verified as fixed", "good")


def test_a_failed_run_says_why(story: Any) -> None:
    Run.objects.filter(pk=story.draft.pk).update(state="failed", reason="no such model")
    step = steps_of(story)[-1]
    assert "no such model" in step.showed
    assert step.badges[0].words == "failed"


def test_bars_and_goal_fit_the_scale(story: Any) -> None:
    told = build.story(queries.investigation_page(story.investigation.slug))
    assert told["goal_line"] == 90.0
    assert told["scale"] > 90.0


def test_places_offer_every_step_once(story: Any) -> None:
    page = queries.investigation_page(story.investigation.slug)
    positions = [float(position) for position, _ in build.places(page.dossier)]
    assert positions == sorted(set(positions))
    assert len(positions) == 5
