"""A run as it is watched, stopped and started from its page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from experiments.models import Run
from experiments.views.lines import live_log


@pytest.fixture
def running(story: Any) -> Run:
    run = story.draft
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(
        state="running",
        phase="measuring",
        phase_detail="repeat 2 of 3",
        fraction=0.5,
        claim="t",
        worker="box:1",
        queued_at=now,
        claimed_at=now,
        heartbeat_at=now,
    )
    path = live_log(run)
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"line {i} <b>bold</b>\n" for i in range(1000)))
    run.refresh_from_db()
    return run


def test_a_running_run_is_asked_for_every_two_seconds(browser: Client, running: Run) -> None:
    page = browser.get(running.get_absolute_url()).content.decode()
    assert 'hx-trigger="every 2s"' in page
    assert "htmx-2.min.js" in page
    assert 'http-equiv="refresh"' in page


def test_the_live_piece_shows_phase_and_the_end_of_the_log_as_text(
    browser: Client, running: Run
) -> None:
    answer = browser.get(f"{running.get_absolute_url()}live/")
    piece = answer.content.decode()
    assert "repeat 2 of 3" in piece
    assert "line 999 &lt;b&gt;bold&lt;/b&gt;" in piece
    assert "line 800 " in piece
    assert "line 799 " not in piece
    assert "<html" not in piece
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize("state", ["done", "failed", "cancelled", "lost"])
def test_polling_ends_with_the_run(browser: Client, running: Run, state: str) -> None:
    Run.objects.filter(pk=running.pk).update(state=state, reason="because")
    answer = browser.get(f"{running.get_absolute_url()}live/")
    assert answer.status_code == 204
    assert answer["HX-Refresh"] == "true"
    page = browser.get(running.get_absolute_url()).content.decode()
    assert "hx-trigger" not in page
    assert 'http-equiv="refresh"' not in page
    assert "because" in page


def test_a_reader_who_was_logged_out_is_sent_to_the_whole_login_page(running: Run) -> None:
    client = Client()
    answer = client.get(f"{running.get_absolute_url()}live/", headers={"HX-Request": "true"})
    answer = client.get(answer["Location"], headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Refresh"]) == (204, "true")


def test_cancelling_twice_is_cancelling_once(browser: Client, running: Run) -> None:
    address = f"{running.get_absolute_url()}cancel/"
    assert browser.post(address).status_code == 302
    running.refresh_from_db()
    asked = running.cancel_requested_at
    assert asked is not None
    assert browser.post(address).status_code == 302
    running.refresh_from_db()
    assert (running.cancel_requested_at, running.state) == (asked, "running")
    assert b"Cancel the run" not in browser.get(running.get_absolute_url()).content


def test_cancelling_needs_post_and_a_token(running: Run, user: Any) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    assert strict.get(f"{running.get_absolute_url()}cancel/").status_code == 405
    answer = strict.post(f"{running.get_absolute_url()}cancel/")
    assert answer.status_code == 403
    assert b"out of date" in answer.content
    running.refresh_from_db()
    assert running.cancel_requested_at is None


def test_a_run_that_ended_stays_as_it_ended(browser: Client, story: Any) -> None:
    browser.post(f"{story.slow.get_absolute_url()}cancel/")
    story.slow.refresh_from_db()
    assert story.slow.state == "done"


def test_a_failed_run_says_why_and_in_which_phase(browser: Client, running: Run) -> None:
    Run.objects.filter(pk=running.pk).update(
        state="failed", phase="loading", reason="no such model", exit_code=1
    )
    page = browser.get(running.get_absolute_url()).content.decode()
    assert "Failed while loading" in page
    assert "no such model" in page
    assert "Exit code 1" in page


def test_a_draft_is_queued_from_its_page(
    browser: Client, story: Any, django_capture_on_commit_callbacks: Any
) -> None:
    browser.post(f"{story.draft.get_absolute_url()}queue/")
    story.draft.refresh_from_db()
    assert story.draft.state == "queued"


def test_the_workers_are_followed_only_while_something_runs_or_waits(
    story: Any, browser: Client
) -> None:
    idle = browser.get("/workers/").content.decode()
    assert "hx-trigger" not in idle
    assert "htmx" not in idle.split("</head>")[0].replace("htmx-config", "")
    assert "Nothing runs or waits" in idle
    Run.objects.filter(pk=story.draft.pk).update(state="queued", queued_at=timezone.now())
    assert 'hx-trigger="every 2s"' in browser.get("/workers/").content.decode()
    piece = browser.get("/workers/", headers={"HX-Target": "workers"}).content.decode()
    assert 'hx-trigger="every 2s"' in piece
    Run.objects.filter(pk=story.draft.pk).update(state="done")
    # The last answer to a page that follows ends the asking.
    piece = browser.get("/workers/", headers={"HX-Target": "workers"}).content.decode()
    assert "hx-trigger" not in piece


def test_the_drawings_of_a_running_run_can_be_taken_away_as_they_are(
    browser: Client, running: Run
) -> None:
    batch = "[2026-01-01 10:00:0{0}] Decode batch, #running-req: 1, #token: 9, token usage: 0.00, "
    batch += "cuda graph: True, gen throughput (token/s): 5{0}.00, #queue-req: 0\n"
    live_log(running).write_text("".join(batch.format(n) for n in range(3)))
    page = browser.get(f"{running.get_absolute_url()}live/").content.decode()
    at = f"{running.get_absolute_url()}plot/tok_s."
    assert [form for form in ("csv", "svg", "png") if f'href="{at}{form}" download' in page] == [
        "csv",
        "svg",
        "png",
    ]
    assert page.count("<tr>") >= 4  # the figures as a table
    assert browser.get(f"{at}csv").content.decode().count("\n") == 4
    assert browser.get(f"{running.get_absolute_url()}plot/other.csv").status_code == 404


def test_the_page_of_a_running_run_tells_its_state_and_claims_nothing_unknown(
    browser: Client, running: Run
) -> None:
    running.config.all().delete()
    running.config.create(key="num_steps", requested=1, was_requested=True)
    page = browser.get(running.get_absolute_url()).content.decode()
    assert "What is in force is not known before the server says it." in page
    assert "Everything that was asked for is in force" not in page
    piece = browser.get(f"{running.get_absolute_url()}live/").content.decode()
    assert '<span id="run-state" hx-swap-oob="true">' in piece
    running.config.update(effective=1, effective_known=True)
    page = browser.get(running.get_absolute_url()).content.decode()
    assert "Everything that was asked for is in force" in page
