"""What people write: each form saves through the record's rules, and says what is wrong."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from experiments.models import Event, Evidence, Finding, Hypothesis, Investigation, Run

RUN = {
    "title": "more steps",
    "engine": "reference",
    "server_args": "--speculative-num-steps 15 --name 'two words'",
    "prompts_per_repeat": 8,
    "max_new_tokens": 96,
    "concurrency": 1,
    "repeats": 3,
    "then": "draft",
}


def test_an_investigation_is_opened_and_its_page_shown(browser: Client) -> None:
    answer = browser.post(
        "/new/",
        {
            "title": "Slow",
            "question": "Why?",
            "goal_metric": "tok_s",
            "goal_kind": "beat-baseline",
            "goal_value": "1.1",
        },
    )
    row = Investigation.objects.get()
    assert answer["Location"] == row.get_absolute_url()
    assert (row.goal_value, str(row.created_by)) == (1.1, "ada")


def test_a_form_with_a_gap_is_shown_again_with_the_reason(browser: Client) -> None:
    answer = browser.post("/new/", {"title": "Slow", "goal_value": "-1"})
    assert answer.status_code == 200
    assert b"This field is required." in answer.content
    assert not Investigation.objects.exists()


def test_the_baseline_is_chosen_among_the_runs(browser: Client, story: Any) -> None:
    row = story.investigation
    address = f"{row.get_absolute_url()}edit/"
    values = {
        "title": "New title",
        "question": "Q",
        "goal_metric": "tok_s",
        "goal_kind": "beat-baseline",
        "goal_value": "1",
    }
    browser.post(address, values | {"baseline": story.slow.pk})
    row.refresh_from_db()
    assert (row.baseline_id, row.title) == (story.slow.pk, "New title")
    answer = browser.post(address, values | {"baseline": 987654})
    assert b"not one of the available choices" in answer.content


def test_a_hypothesis_comes_with_its_prediction_and_check(browser: Client, story: Any) -> None:
    answer = browser.post(
        f"{story.investigation.get_absolute_url()}hypothesis/",
        {
            "claim": "Fewer steps",
            "metric": "tok_s",
            "direction": "within",
            "baseline": story.baseline.pk,
            "low": "0.9",
            "high": "1.1",
            "margin": "0.02",
            "check_kind": "effective-equals",
            "check_key": "speculative_num_steps",
            "check_expected": "3",
        },
    )
    made = Hypothesis.objects.get(number=2)
    assert answer["Location"] == made.get_absolute_url()
    assert made.predictions.get().low == 0.9
    assert made.checks.get().expected == 3


def test_a_prediction_that_makes_no_sense_leaves_no_hypothesis(browser: Client, story: Any) -> None:
    answer = browser.post(
        f"{story.investigation.get_absolute_url()}hypothesis/",
        {
            "claim": "Fewer steps",
            "metric": "tok_s",
            "direction": "within",
            "baseline": story.baseline.pk,
            "low": "1.1",
            "high": "0.9",
            "margin": "0.02",
        },
    )
    assert b"is empty or not above zero" in answer.content
    assert Hypothesis.objects.count() == 1


def test_a_planned_run_keeps_its_arguments_as_a_list(browser: Client, story: Any) -> None:
    answer = browser.post(f"{story.investigation.get_absolute_url()}run/", RUN)
    made = Run.objects.get(number=3)
    assert answer["Location"] == made.get_absolute_url()
    assert made.plan["server_args"] == ["--speculative-num-steps", "15", "--name", "two words"]
    assert made.state == "draft"


def test_an_open_quote_in_the_arguments_is_said(browser: Client, story: Any) -> None:
    address = f"{story.investigation.get_absolute_url()}run/"
    answer = browser.post(address, RUN | {"server_args": "--name 'open"})
    assert b"Not a command line" in answer.content
    answer = browser.post(address, RUN | {"server_args": "--port 1"})
    assert b"host and port are chosen by the worker" in answer.content
    assert Run.objects.count() == 3


def test_a_branch_follows_its_run_and_changes_what_was_edited(browser: Client, story: Any) -> None:
    address = f"{story.slow.get_absolute_url()}branch/"
    assert b"--speculative-num-steps 1" in browser.get(address).content
    browser.post(address, RUN | {"repeats": 5})
    made = Run.objects.get(number=3)
    assert (made.follows_id, made.baseline_id) == (story.slow.pk, story.baseline.pk)
    assert made.plan["workload"]["repeats"] == 5
    assert made.plan["engine"] == "reference"


def test_a_recorded_run_cannot_be_branched_and_says_so(browser: Client, story: Any) -> None:
    answer = browser.get(f"{story.baseline.get_absolute_url()}branch/", follow=True)
    assert b"has no plan to repeat" in answer.content


def test_a_queued_run_is_opened(browser: Client, story: Any) -> None:
    browser.post(f"{story.investigation.get_absolute_url()}run/", RUN | {"then": "queue"})
    assert Run.objects.get(number=3).state == "queued"


def test_repeating_makes_a_linked_run(browser: Client, story: Any) -> None:
    browser.post(f"{story.slow.get_absolute_url()}repeat/")
    made = Run.objects.get(number=3)
    assert (made.repeats_run_id, made.state) == (story.slow.pk, "queued")


def test_an_event_goes_where_it_belongs(browser: Client, story: Any) -> None:
    address = f"{story.investigation.get_absolute_url()}event/"
    after = repr(story.baseline.position)
    browser.post(address, {"kind": "belief", "title": "it must be the layers", "after": after})
    made = Event.objects.get(title="it must be the layers")
    assert story.baseline.position < made.position < story.hypothesis.position
    assert made.author == "ada"


def test_setting_a_finding_aside_needs_a_reason(browser: Client, story: Any) -> None:
    address = f"{story.investigation.get_absolute_url()}f/{story.finding.pk}/"
    answer = browser.post(f"{address}aside/", {"reason": " "}, follow=True)
    assert b"reason" in answer.content
    story.finding.refresh_from_db()
    assert story.finding.state == Finding.State.OPEN
    browser.post(f"{address}aside/", {"reason": "known, harmless"})
    story.finding.refresh_from_db()
    assert (story.finding.state, story.finding.set_aside_by) == ("set-aside", "ada")
    assert b"known, harmless" in browser.get(address).content
    browser.post(f"{address}reopen/")
    story.finding.refresh_from_db()
    assert story.finding.state == Finding.State.OPEN


def test_closing_lists_what_is_left_and_takes_a_signed_exception(
    browser: Client, story: Any
) -> None:
    address = f"{story.investigation.get_absolute_url()}close/"
    answer = browser.post(address, {"outcome": "resolved"})
    assert b"Goal not met" in answer.content
    browser.post(address, {"outcome": "resolved", "name": "ada", "reason": "good enough"})
    story.investigation.refresh_from_db()
    assert story.investigation.state == "resolved"
    page = browser.get(story.investigation.get_absolute_url()).content
    assert b"signed by ada: good enough" in page
    browser.post(f"{story.investigation.get_absolute_url()}reopen/")
    story.investigation.refresh_from_db()
    assert story.investigation.state == "open"


def test_a_log_is_added_and_its_kind_told(browser: Client, story: Any) -> None:
    log = b"[2026-01-01 10:00:00] Decode batch, #running-req: 1, #token: 10, gen throughput: 5.0\n"
    file = SimpleUploadedFile("../../etc/passwd", log)
    address = f"{story.slow.get_absolute_url()}file/"
    page = browser.post(address, {"file": file}, follow=True)
    made = Evidence.objects.exclude(pk=story.log.pk).get()
    assert (made.run_id, made.added_by) == (story.slow.pk, "ada")
    assert "/" not in made.name
    assert made.kind.encode() in page.content


def test_pasted_text_belongs_to_the_investigation(browser: Client, story: Any) -> None:
    address = f"{story.investigation.get_absolute_url()}file/"
    browser.post(address, {"text": "nothing that anyone knows"})
    made = Evidence.objects.exclude(pk=story.log.pk).get()
    assert made.run_id is None
    page = browser.get(story.investigation.get_absolute_url()).content.decode()
    assert "pasted.txt" in page


def test_neither_a_file_nor_text_is_said(browser: Client, story: Any) -> None:
    address = f"{story.investigation.get_absolute_url()}file/"
    assert b"one of the two" in browser.post(address, {"text": " "}).content
    empty = {"file": SimpleUploadedFile("empty.log", b"")}
    assert b"The submitted file is empty" in browser.post(address, empty).content
    assert Evidence.objects.count() == 1
