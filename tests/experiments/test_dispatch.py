"""Queueing and sending: the row counts, the message only wakes a worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from experiments import dispatch, lifecycle
from experiments.models import Investigation, Run
from experiments.refusal import Refused
from specdebug.celery import app

Draft = Callable[[], Run]
OnCommit = Any  # pytest-django's fixture


@pytest.fixture
def draft(investigation: Investigation) -> Draft:
    return lambda: lifecycle.add_run(
        investigation=investigation, title="a run", server_args=["--model-path", "m"]
    )


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was given to Celery: (task, args, queue)."""
    found: list[tuple[Any, ...]] = []

    def send_task(name: str, args: list[int], queue: str, **_: Any) -> None:
        found.append((name, args, queue))

    monkeypatch.setattr(app, "send_task", send_task)
    return found


def age(run: Run, seconds: float) -> None:
    Run.objects.filter(pk=run.pk).update(queued_at=timezone.now() - timedelta(seconds=seconds))


def test_a_queued_run_is_sent_by_name_when_the_row_is_committed(
    draft: Draft, sent: list[Any], django_capture_on_commit_callbacks: OnCommit
) -> None:
    run = draft()
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        assert dispatch.queue_run(run)
        assert sent == []
    assert (run.state, run.queued_at is not None) == ("queued", True)
    assert sent == [("workers.tasks.measure", [run.pk], "measure")]
    assert "workers.tasks.measure" in app.conf.task_routes


def test_a_run_that_is_rolled_back_is_not_sent(
    draft: Draft, sent: list[Any], django_capture_on_commit_callbacks: OnCommit
) -> None:
    run = draft()
    with django_capture_on_commit_callbacks(execute=True):
        try:
            with transaction.atomic():
                dispatch.queue_run(run)
                raise LookupError
        except LookupError:
            pass
    run.refresh_from_db()
    assert run.state == "draft"
    assert sent == []


def test_queueing_twice_sends_once(
    draft: Draft, sent: list[Any], django_capture_on_commit_callbacks: OnCommit
) -> None:
    run = draft()
    with django_capture_on_commit_callbacks(execute=True):
        assert dispatch.queue_run(run)
        assert not dispatch.queue_run(run)
        Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
        assert not dispatch.queue_run(run)
    assert len(sent) == 1


@pytest.mark.parametrize("state", Run.ENDED)
def test_a_run_that_has_ended_is_not_queued_again(draft: Draft, state: str) -> None:
    run = draft()
    Run.objects.filter(pk=run.pk).update(state=state)
    with pytest.raises(Refused, match=f"R0 is {state}; repeat it"):
        dispatch.queue_run(run)
    run.refresh_from_db()
    assert run.state == state


def test_a_waiting_run_is_cancelled_at_once_and_a_running_one_is_asked(draft: Draft) -> None:
    run = draft()
    dispatch.queue_run(run)
    assert dispatch.cancel_run(run) == "cancelled"
    other = draft()
    dispatch.queue_run(other)
    assert lifecycle.claim_run(other.pk, token="t", worker="h:1") is not None
    assert dispatch.cancel_run(other) == "running"
    assert other.cancel_requested_at is not None


def test_a_run_given_back_is_queued_and_sent_and_the_attempt_does_not_count(
    draft: Draft, sent: list[Any], django_capture_on_commit_callbacks: OnCommit
) -> None:
    run = draft()
    dispatch.queue_run(run)
    lifecycle.claim_run(run.pk, token="t", worker="h:1")
    assert not dispatch.give_back(run.pk, token="another", reason="x")
    with django_capture_on_commit_callbacks(execute=True):
        assert dispatch.give_back(run.pk, token="t", reason="its worker was stopped")
    assert [args for _, args, _ in sent] == [[run.pk]]
    run.refresh_from_db()
    assert (run.state, run.claim, run.attempt) == ("queued", "", 0)
    assert run.reason == "queued again: its worker was stopped"
    assert not dispatch.give_back(run.pk, token="t", reason="x")


def test_a_cancelled_run_is_not_given_back(draft: Draft) -> None:
    run = draft()
    dispatch.queue_run(run)
    lifecycle.claim_run(run.pk, token="t", worker="h:1")
    dispatch.cancel_run(run)
    assert dispatch.give_back(run.pk, token="t", reason="its worker was stopped")
    run.refresh_from_db()
    assert (run.state, run.reason) == ("cancelled", "cancelled")


def test_of_reaped_runs_the_queued_ones_are_sent_again(draft: Draft, sent: list[Any]) -> None:
    queued, lost = draft(), draft()
    Run.objects.filter(pk=queued.pk).update(state=Run.State.QUEUED)
    Run.objects.filter(pk=lost.pk).update(state=Run.State.LOST)
    dispatch.send_again([queued.pk, lost.pk])
    assert [args for _, args, _ in sent] == [[queued.pk]]


def test_old_queued_runs_are_sent_again_oldest_first_when_no_message_is_there(
    draft: Draft, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [draft() for _ in range(4)]
    for run, seconds in zip(runs, (60, 120, 1, 300), strict=True):
        dispatch.queue_run(run)
        age(run, seconds)
    Run.objects.filter(pk=runs[3].pk).update(state=Run.State.RUNNING)
    monkeypatch.setattr(dispatch, "_messages_waiting", lambda queue: 0)
    expected = [runs[1].pk, runs[0].pk]
    assert dispatch.send_waiting(now=timezone.now()) == expected
    assert [args[0] for _, args, _ in sent] == expected


@pytest.mark.parametrize("messages", [1, None], ids=["messages wait", "the broker is away"])
def test_nothing_is_sent_again_while(
    draft: Draft, sent: list[Any], monkeypatch: pytest.MonkeyPatch, messages: int | None
) -> None:
    run = draft()
    dispatch.queue_run(run)
    age(run, 60)
    monkeypatch.setattr(dispatch, "_messages_waiting", lambda queue: messages)
    assert dispatch.send_waiting(now=timezone.now()) == []
    assert sent == []


def test_without_a_broker_the_row_stays_queued_and_nobody_waits_long(
    draft: Draft,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    django_capture_on_commit_callbacks: OnCommit,
) -> None:
    url = f"redis+socket://{tmp_path}/none"
    monkeypatch.setitem(app.conf, "broker_url", url)
    monkeypatch.setitem(app.conf, "broker_write_url", url)
    run = draft()
    begin = time.monotonic()
    with django_capture_on_commit_callbacks(execute=True):
        assert dispatch.queue_run(run)
    run.refresh_from_db()
    assert run.state == "queued"
    age(run, 60)
    assert dispatch.send_waiting(now=timezone.now()) == []
    assert time.monotonic() - begin < 10  # with the broker's own patience each took 7 s


def test_a_broker_that_breaks_while_sending_is_survived(
    draft: Draft, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: OnCommit
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OperationalError("connection reset")

    monkeypatch.setattr(app, "send_task", broken)
    run = draft()
    with django_capture_on_commit_callbacks(execute=True):
        assert dispatch.queue_run(run)
    run.refresh_from_db()
    assert run.state == "queued"
