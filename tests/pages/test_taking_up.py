"""From an advice to a registered hypothesis and a queued run, with one click."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from experiments.models import Hypothesis, Investigation, Run
from experiments.story import recorded
from tests.pages.conftest import Story


@pytest.fixture
def open_question(story: Story) -> Story:
    """The story's slow run at num_steps 1: a second depth is the missing term."""
    story.slow.config.update_or_create(
        key="speculative_num_steps", defaults={"effective": 1, "effective_known": True}
    )
    return story


def take(story: Story, key: str = "second-depth") -> str:
    return reverse("advice-take", args=[story.investigation.slug, key])


def test_one_click_registers_the_prediction_and_queues_the_run(
    browser: Client, open_question: Story
) -> None:
    answer = browser.post(take(open_question), follow=True)
    run = Run.objects.order_by("-number").first()
    assert run is not None
    assert run.state == "queued"
    assert run.follows == open_question.slow
    args = run.plan["server_args"]
    assert args[args.index("--speculative-num-steps") + 1] == "5"
    assert args[args.index("--speculative-num-draft-tokens") + 1] == "6"
    hypothesis = run.hypothesis
    assert hypothesis is not None
    prediction = hypothesis.predictions.get()
    assert prediction.baseline == open_question.slow
    assert (prediction.metric, prediction.direction) == ("step_ms", "within")
    assert prediction.registered_at < run.queued_at  # type: ignore[operator]
    assert f"{hypothesis.label} is registered and {run.label} is queued" in answer.content.decode()


def test_a_double_click_makes_one_run(browser: Client, open_question: Story) -> None:
    before = (Run.objects.count(), Hypothesis.objects.count())
    browser.post(take(open_question))
    browser.post(take(open_question))
    assert (Run.objects.count(), Hypothesis.objects.count()) == (before[0] + 1, before[1] + 1)


def test_one_call_of_the_api_does_the_same_and_a_second_call_or_a_click_comes_to_the_same_run(
    browser: Client, open_question: Story
) -> None:
    before = (Run.objects.count(), Hypothesis.objects.count())
    address = f"/api/v1/investigations/{open_question.investigation.slug}/advice"
    (offered,) = [a for a in browser.get(address).json()["items"] if a["key"] == "second-depth"]
    assert offered["startable"]
    assert offered["cost"] == {
        "minutes": pytest.approx(70 / 60),
        "most": pytest.approx(70 / 60),
        "n": 1,
        "on_gpus": False,
    }
    first = browser.post(f"{address}/second-depth/take").json()
    assert (first["queued"], first["claim"]) == (True, offered["claim"])
    second = browser.post(f"{address}/second-depth/take").json()
    assert second == {**first, "queued": False}
    browser.post(take(open_question))
    assert (Run.objects.count(), Hypothesis.objects.count()) == (before[0] + 1, before[1] + 1)
    refused = browser.post(f"{address}/real-prompts/take")
    assert refused.status_code == 409
    assert "no longer follows" in refused.json()["detail"]


def test_a_draft_that_a_crash_left_unqueued_is_queued_by_the_next_click(
    browser: Client, open_question: Story
) -> None:
    browser.post(take(open_question))
    run = Run.objects.order_by("-number")[0]
    Run.objects.filter(pk=run.pk).update(state=Run.State.DRAFT, queued_at=None)
    browser.post(take(open_question))
    run.refresh_from_db()
    assert run.state == "queued"


def test_advice_that_no_longer_follows_starts_nothing(
    browser: Client, open_question: Story
) -> None:
    before = Run.objects.count()
    answer = browser.post(take(open_question, "real-prompts"), follow=True)
    assert "no longer follows from the figures" in answer.content.decode()
    assert Run.objects.count() == before


def test_the_page_shows_what_each_experiment_costs_from_earlier_starts(
    browser: Client, open_question: Story
) -> None:
    page = browser.get(open_question.investigation.get_absolute_url()).content.decode()
    assert "Register and queue it" in page
    # One start of 10 s and 60 s of measuring stand behind it.
    assert "about 1.2 min" in page
    assert "from 1 start)" in page


def test_a_run_from_a_write_up_is_planned_by_hand(browser: Client, db: Any, data_dir: Any) -> None:
    recorded.load_story()
    row = Investigation.objects.get()
    page = browser.get(row.get_absolute_url()).content.decode()
    lead = page.index("Record the accept length of R3")
    assert lead < page.index("Find the unexplained 16 ms")
    assert "R3 was entered without its server arguments" in page
    before = Run.objects.count()
    answer = browser.post(reverse("advice-take", args=[row.slug, "accept-length"]), follow=True)
    assert "without its server arguments" in answer.content.decode()
    assert Run.objects.count() == before
    assert not Hypothesis.objects.filter(recorded=False).exists()
