"""From a row to a PDF in the worker: sent by name, sent again where lost, taken once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from experiments import dispatch
from experiments.lifecycle import Refused, renderings
from experiments.models import Rendering
from experiments.reports import document, making, render
from specdebug.celery import app
from workers import tasks


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was given to Celery: (task, args, queue)."""
    found: list[Any] = []

    def send_task(name: str, args: list[int], queue: str, **_: Any) -> None:
        found.append((name, args, queue))

    monkeypatch.setattr(app, "send_task", send_task)
    return found


@pytest.fixture
def row(db: Any, data_dir: Any) -> Rendering:
    return renderings.ask(document=document.canonical({"a": "ä"}), page="A4")


def test_it_goes_to_the_house_queue_when_the_row_is_there(
    row: Rendering, sent: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        dispatch.send_rendering(row)
        assert sent == []
    assert sent == [("workers.tasks.render_report", [row.pk], "house")]
    assert "workers.tasks.render_report" in (tasks.render_report.name, *app.tasks)


def test_what_nobody_works_on_is_sent_again_and_only_that(
    row: Rendering, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "_messages_waiting", lambda queue: 0)
    assert renderings.waiting(now=timezone.now()) == []
    later = timezone.now() + timedelta(seconds=renderings.SEND_AGAIN_AFTER_SECONDS + 1)
    assert dispatch.send_renderings(renderings.waiting(now=later)) == [row.pk]
    renderings.claim(row.pk, token="t", now=later)
    assert renderings.waiting(now=later) == []
    monkeypatch.setattr(dispatch, "_messages_waiting", lambda queue: 3)
    much_later = later + timedelta(seconds=renderings.LOST_AFTER_SECONDS + 1)
    assert renderings.waiting(now=much_later) == [row.pk]
    assert dispatch.send_renderings([row.pk]) == []  # a message is on its way


def test_the_task_makes_it_once_however_often_it_is_delivered(
    row: Rendering, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def pdf(found: document.Document, *, page: str, on_step: render.OnStep) -> bytes:
        on_step("laying out page 1", 0.5)
        state = Rendering.objects.get()
        seen.append((found.body, page, state.state, state.step))
        return b"%PDF-1.7 made"

    monkeypatch.setattr(render, "pdf", pdf)
    for _ in range(2):
        tasks.render_report(row.pk)
    assert seen == [({"a": "ä"}, "A4", "running", "laying out page 1")]
    done = renderings.made(row.document_id, "A4")
    assert done is not None
    assert done.pdf is not None
    assert done.pdf.size == len(b"%PDF-1.7 made")
    assert renderings.ask(document=document.canonical({"a": "ä"}), page="A4").pk == row.pk


def test_a_worker_that_lost_its_claim_stops_and_keeps_nothing(
    row: Rendering, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pdf(found: Any, *, page: str, on_step: render.OnStep) -> bytes:
        Rendering.objects.update(claim="another")
        on_step("laying out page 1", 0.5)
        return pytest.fail("went on without its claim")

    monkeypatch.setattr(render, "pdf", pdf)
    assert not making.make(row.pk)
    kept = Rendering.objects.get()
    assert (kept.state, kept.claim, kept.pdf) == ("running", "another", None)


def test_a_machine_without_pango_says_what_to_install(
    row: Rendering, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pdf(*args: Any, **kwargs: Any) -> bytes:
        raise render.PdfUnavailable(render.MISSING)

    monkeypatch.setattr(render, "pdf", pdf)
    assert not making.make(row.pk)
    assert Rendering.objects.get().problem == render.MISSING


def test_a_paper_that_is_none_is_refused(db: Any, data_dir: Any) -> None:
    with pytest.raises(Refused, match="choose one of A4, Letter"):
        renderings.ask(document=b"{}", page="A5")
