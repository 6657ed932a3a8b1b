"""A hypothesis after it was stated: prediction, checks, links, overruling; and closing."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from experiments import lifecycle
from experiments.models import Investigation, Verdict
from tests.pages.conftest import Story


def page(browser: Client, story: Story) -> str:
    return browser.get(story.hypothesis.get_absolute_url()).content.decode()


def where(story: Story, name: str, *more: int) -> str:
    return reverse(name, args=[story.investigation.slug, story.hypothesis.number, *more])


PREDICTION = {
    "metric": "tok_s",
    "direction": "within",
    "low": "0.7",
    "high": "0.9",
    "margin": "0.02",
}


def test_an_unfrozen_prediction_is_changed_in_place(browser: Client, story: Story) -> None:
    values = PREDICTION | {"baseline": story.baseline.pk}
    assert browser.post(where(story, "prediction"), values).status_code == 302
    only = story.hypothesis.predictions.get()
    assert (only.version, only.low, only.high) == (1, 0.7, 0.9)


def test_a_frozen_prediction_gets_a_new_version_and_both_are_shown(
    browser: Client, story: Story
) -> None:
    story.hypothesis.predictions.update(frozen_at=story.hypothesis.created_at)
    form = browser.get(where(story, "prediction")).content.decode()
    assert "becomes version 2" in form
    browser.post(where(story, "prediction"), PREDICTION | {"baseline": story.baseline.pk})
    assert [p.version for p in story.hypothesis.predictions.all()] == [1, 2]
    shown = page(browser, story)
    assert "Version 2" in shown
    assert "Version 1" in shown
    assert shown.index("Version 2") < shown.index("Version 1")


def test_an_empty_interval_is_refused_and_nothing_is_lost(browser: Client, story: Story) -> None:
    values = PREDICTION | {"baseline": story.baseline.pk, "low": "0.9", "high": "0.7"}
    answer = browser.post(where(story, "prediction"), values)
    assert answer.status_code == 200
    assert "is empty or not above zero" in answer.content.decode()
    assert 'value="0.9"' in answer.content.decode()
    assert story.hypothesis.predictions.get().direction == "up"


def test_a_check_is_added_and_a_bad_one_is_refused(browser: Client, story: Story) -> None:
    bad = browser.post(where(story, "applied-check"), {"kind": "captured-layers", "expected": "3"})
    assert "must be a list" in bad.content.decode()
    good = {"kind": "captured-layers", "expected": '["embed", 3, 31]'}
    assert browser.post(where(story, "applied-check"), good).status_code == 302
    assert "embed" in page(browser, story)


def test_hypotheses_are_linked_once_however_often_it_is_asked(
    browser: Client, story: Story
) -> None:
    other = lifecycle.add_hypothesis(investigation=story.investigation, claim="Fewer drafts help")
    values = {"kind": "ruled-out", "hypothesis": other.pk}
    assert (
        "Select a valid choice"
        in browser.post(where(story, "hypothesis-link"), values).content.decode()
    )
    for _ in range(2):
        browser.post(where(story, "hypothesis-link"), values | {"kind": "rules-out"})
    assert story.hypothesis.links.count() == 1
    assert "Fewer drafts help" in page(browser, story)


def test_a_verdict_is_overruled_with_a_reason_and_its_history_stays(
    browser: Client, story: Story
) -> None:
    address = where(story, "overrule", 1)
    silent = {"applied": "yes", "outcome": "undecided", "reason": ""}
    assert "required" in browser.post(address, silent).content.decode()
    same = {"applied": "no", "outcome": "refuted", "reason": "I agree"}
    assert "stands already" in browser.post(address, same).content.decode()
    assert Verdict.objects.count() == 1
    said = silent | {"reason": "The client had changed in between."}
    assert browser.post(address, said).status_code == 302
    old, new = Verdict.objects.order_by("pk")
    assert (old.in_force, new.in_force, new.decided_by) == (False, True, "ada")
    shown = page(browser, story)
    assert "The client had changed in between." in shown
    assert "16 expected" in shown, "the verdict of the rules stays in the history"
    assert "Hand it back" in shown


def test_a_verdict_handed_back_is_drawn_again_by_the_rules(browser: Client, story: Story) -> None:
    said = {"applied": "yes", "outcome": "supported", "reason": "I believe it."}
    browser.post(where(story, "overrule", 1), said)
    assert browser.post(where(story, "hand-back", 1)).status_code == 302
    standing = Verdict.objects.get(in_force=True)
    assert standing.decided_by == ""
    assert standing.applied == "unknown", "its check was registered after the run"
    assert Verdict.objects.filter(decided_by="ada", in_force=False).count() == 1


def test_overruling_after_a_run_without_a_verdict_is_not_found(
    browser: Client, story: Story
) -> None:
    assert browser.get(where(story, "overrule", 0)).status_code == 404


def test_resolving_is_refused_with_the_list_of_what_is_left(browser: Client, story: Story) -> None:
    address = reverse("investigation-close", args=[story.investigation.slug])
    shown = browser.get(address).content.decode()
    for left in ("Goal not met", "draft-tokens-overridden (high) is open"):
        assert left in shown
    answer = browser.post(address, {"outcome": "resolved", "name": "ada", "reason": ""})
    assert answer.status_code == 409
    assert "see what is left" in answer.content.decode()
    assert Investigation.objects.get().state == "open"


@pytest.mark.parametrize(
    ("name", "reason", "says"),
    [("", "Shipped anyway.", "name under the exception is empty"), ("ada", "", "what is left")],
)
def test_an_exception_needs_a_name_and_a_reason(
    browser: Client, story: Story, name: str, reason: str, says: str
) -> None:
    address = reverse("investigation-close", args=[story.investigation.slug])
    answer = browser.post(address, {"outcome": "resolved", "name": name, "reason": reason})
    assert says in answer.content.decode()
    assert Investigation.objects.get().state == "open"


def test_a_signed_exception_closes_it_and_stands_on_its_page(browser: Client, story: Story) -> None:
    address = reverse("investigation-close", args=[story.investigation.slug])
    signed = {"outcome": "resolved", "name": "Grace", "reason": "The draft is retired."}
    assert browser.post(address, signed).status_code == 302
    row = Investigation.objects.get()
    assert (row.state, row.exception_by, row.exception_reason) == (
        "resolved",
        "Grace",
        "The draft is retired.",
    )
    assert "The draft is retired." in browser.get(row.get_absolute_url()).content.decode()
