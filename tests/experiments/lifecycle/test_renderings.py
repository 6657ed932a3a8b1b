"""PDFs of drafts are let go after a while; what is published, in work or in use stays."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from experiments import lifecycle, store
from experiments.lifecycle import renderings
from experiments.lifecycle import reports as lifecycle_reports
from experiments.models import Blob, Evidence, Rendering
from workers import tasks

LATER = timedelta(days=renderings.KEEP_DRAFTS_DAYS + 1)


def made(document: bytes, pdf: bytes) -> Rendering:
    row = renderings.ask(document=document, page="A4")
    renderings.claim(row.pk, token="t", now=timezone.now())
    assert renderings.finish(row.pk, token="t", pdf=pdf)
    row.refresh_from_db()
    return row


@pytest.fixture
def now(db: Any, data_dir: Any) -> datetime:
    return timezone.now()


def test_an_old_draft_s_pdf_goes_with_its_document_and_can_be_made_anew(now: datetime) -> None:
    row = made(b"{}", b"%PDF one")
    assert renderings.prune(now=now + LATER / 2) == 0
    assert renderings.prune(now=now + LATER) == 1
    assert renderings.prune(now=now + LATER) == 0
    assert (Rendering.objects.count(), Blob.objects.count()) == (0, 0)
    again = made(b"{}", b"%PDF one")
    assert again.pk != row.pk
    assert store.path_of(str(again.pdf_id)).read_bytes() == b"%PDF one"


def test_a_published_version_s_pdf_stays_for_good(now: datetime) -> None:
    found = lifecycle.create_investigation(title="Slow", question="Why?")
    row = made(b'{"a":1}', b"%PDF two")
    lifecycle_reports.publish(
        draft=lifecycle_reports.draft_of(investigation=found),
        body={"a": 1},
        sha256=row.document_id,
        by="ada",
        now=now,
    )
    assert renderings.prune(now=now + 100 * LATER) == 0
    assert Rendering.objects.get().pdf_id == row.pdf_id


def test_what_waits_or_is_in_work_is_left_alone(now: datetime) -> None:
    renderings.ask(document=b"[1]", page="A4")
    renderings.claim(renderings.ask(document=b"[2]", page="A4").pk, token="t", now=now)
    assert renderings.prune(now=now + 100 * LATER) == 0
    assert Rendering.objects.count() == 2


def test_a_content_that_is_evidence_too_outlives_the_draft(now: datetime) -> None:
    found = lifecycle.create_investigation(title="Slow", question="Why?")
    row = made(b"{}", b"%PDF three")
    blob = store.put(io.BytesIO(b"%PDF three"))
    Evidence.objects.create(investigation=found, blob=blob, name="report.pdf", kind="other")
    assert renderings.prune(now=now + LATER) == 1
    assert list(Blob.objects.values_list("pk", flat=True)) == [row.pdf_id]


def test_the_hourly_task_lets_go_of_what_is_old_and_nothing_else(now: datetime) -> None:
    made(b"{}", b"%PDF old")
    made(b"[]", b"%PDF new")
    Rendering.objects.filter(document__sha256=store.put(io.BytesIO(b"{}")).sha256).update(
        ended_at=now - LATER
    )
    tasks.prune()
    tasks.prune()
    left = Rendering.objects.get()
    assert store.path_of(str(left.pdf_id)).read_bytes() == b"%PDF new"
