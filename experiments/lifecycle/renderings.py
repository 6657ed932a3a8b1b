"""PDFs to be made: asked for once per document and paper, claimed by one worker, kept by content.

Each write is a conditional UPDATE that names the state and the claim it expects, so that a message
delivered twice, a worker that died or a full disk leave a row that says what is so.
"""

from __future__ import annotations

import io
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from experiments import dropped, store
from experiments.models import Rendering, Report
from experiments.refusal import Refused
from specdebug import __version__

State = Rendering.State
# A claim without a sign of life for this long is taken over; a page of layout takes far less.
LOST_AFTER_SECONDS = 90
MOST_ATTEMPTS = 3
# A draft's PDF is made again in seconds; a published version's is kept for good.
KEEP_DRAFTS_DAYS = 14
# A message younger than this may still be on its way.
SEND_AGAIN_AFTER_SECONDS = 15


def made(sha256: str, page: str) -> Rendering | None:
    """The oldest finished PDF of a document on this paper: once made, it stays the one."""
    return (
        Rendering.objects.filter(document_id=sha256, page=page, state=State.DONE)
        .select_related("pdf")
        .order_by("pk")
        .first()
    )


def ask(*, document: bytes, page: str, again: bool = False) -> Rendering:
    """The row of this PDF, queued where it is not made and not in work; asking again is harmless.

    again: queue one that failed anew. Raises Refused where the disk cannot take the document.
    """
    if page not in Report.Page.values:
        raise Refused(f"{page!r} is no paper; choose one of {', '.join(Report.Page.values)}")
    blob = store.put(io.BytesIO(document))
    if (known := made(blob.sha256, page)) is not None:
        return known
    now = timezone.now()
    try:
        with transaction.atomic():
            row, fresh = Rendering.objects.get_or_create(
                document=blob, page=page, maker=__version__, defaults={"queued_at": now}
            )
    except IntegrityError:  # somebody else was quicker
        return Rendering.objects.get(document=blob, page=page, maker=__version__)
    if again and not fresh and row.state == State.FAILED:
        Rendering.objects.filter(pk=row.pk, state=State.FAILED).update(
            state=State.QUEUED, queued_at=now, attempt=0, step="", fraction=0.0, problem=""
        )
        row.refresh_from_db()
    return row


def claim(pk: int, *, token: str, now: datetime) -> Rendering | None:
    """Take the row for this worker; None where it is made, gone, or another worker is at it.

    One whose workers have died too often is called failed instead of taken again.
    """
    lost = now - timedelta(seconds=LOST_AFTER_SECONDS)
    free = Q(state=State.QUEUED) | Q(state=State.RUNNING, heartbeat_at__lt=lost)
    mine = Rendering.objects.filter(free, pk=pk)
    if mine.filter(attempt__gte=MOST_ATTEMPTS).update(
        state=State.FAILED,
        ended_at=now,
        problem=f"The worker died {MOST_ATTEMPTS} times over it; its log may say why.",
    ):
        return None
    if not mine.update(
        state=State.RUNNING,
        claim=token,
        attempt=F("attempt") + 1,
        heartbeat_at=now,
        step="starting",
        fraction=0.0,
    ):
        return None
    return Rendering.objects.select_related("document").get(pk=pk)


def tell(pk: int, *, token: str, step: str, fraction: float) -> bool:
    """A sign of life; False when the claim is lost."""
    return bool(
        Rendering.objects.filter(pk=pk, claim=token, state=State.RUNNING).update(
            step=step[:80], fraction=min(max(fraction, 0.0), 1.0), heartbeat_at=timezone.now()
        )
    )


def finish(pk: int, *, token: str, pdf: bytes) -> bool:
    """Keep the PDF; False when the claim is lost. Raises Refused where the disk cannot take it."""
    blob = store.put(io.BytesIO(pdf))
    return bool(
        Rendering.objects.filter(pk=pk, claim=token, state=State.RUNNING).update(
            state=State.DONE, pdf=blob, step="", fraction=1.0, ended_at=timezone.now(), problem=""
        )
    )


def fail(pk: int, *, token: str, problem: str) -> bool:
    """It cannot be made, and why; False when the claim is lost."""
    return bool(
        Rendering.objects.filter(pk=pk, claim=token, state=State.RUNNING).update(
            state=State.FAILED, problem=problem[:2000], ended_at=timezone.now()
        )
    )


def waiting(*, now: datetime) -> list[int]:
    """Rows that nobody works on: queued for a while, or claimed by a worker that is gone."""
    late = now - timedelta(seconds=SEND_AGAIN_AFTER_SECONDS)
    lost = now - timedelta(seconds=LOST_AFTER_SECONDS)
    rows = Rendering.objects.filter(
        Q(state=State.QUEUED, queued_at__lt=late) | Q(state=State.RUNNING, heartbeat_at__lt=lost)
    )
    return list(rows.order_by("pk").values_list("pk", flat=True)[:100])


def prune(*, now: datetime) -> int:
    """Drop the PDFs of drafts that ended long ago, with their documents; how many went.

    What a published version rests on stays, and what is queued or in work. Safe to run twice and
    from two processes: a row is deleted once, a content only where nothing else refers to it.
    """
    old = Rendering.objects.filter(
        ~Q(document__in=Report.objects.exclude(sha256="").values("sha256")),
        state__in=(State.DONE, State.FAILED),
        ended_at__lt=now - timedelta(days=KEEP_DRAFTS_DAYS),
    ).order_by("pk")[:500]
    gone = 0
    for row in list(old):
        deleted, _ = Rendering.objects.filter(pk=row.pk, state=row.state).delete()
        if deleted:
            gone += 1
            dropped.drop(one for one in (row.pdf_id, row.document_id) if one)
    return gone
