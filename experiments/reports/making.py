"""PDFs: ordered by whoever wants one, and made from their rows: claimed, read, laid out, kept.

`make` is what a worker runs; it is safe to run twice.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time

from django.conf import settings
from django.db import connections
from django.utils import timezone

from experiments import dispatch, store
from experiments.lifecycle import renderings
from experiments.models import Rendering
from experiments.refusal import Refused
from experiments.reports import document, render

log = logging.getLogger(__name__)

TELL_EVERY = 0.5  # seconds between signs of life in the record


class _Lost(Exception):
    """Another worker has taken over."""


def ordered(found: document.Document, page: str, *, again: bool = False) -> Rendering:
    """The row of this document's PDF: made, failed, or asked for and on its way to a worker.

    again: have one that failed tried anew. Raises PdfUnavailable where this machine cannot make
    any, and Refused where the disk cannot take the document.
    """
    row = renderings.made(found.digest, page)
    if row is None:
        if problem := render.pdf_problem():
            raise render.PdfUnavailable(problem)
        row = renderings.ask(document=document.canonical(found.body), page=page, again=again)
    if not settings.WORKERLESS:
        dispatch.send_rendering(row)
    elif row.state in (Rendering.State.QUEUED, Rendering.State.RUNNING):
        # Nobody else is there to make it, or to take over from a server that died over it.
        threading.Thread(target=_make_here, args=(row.pk,), daemon=True).start()
    return row


def _make_here(pk: int) -> None:
    try:
        make(pk)
    finally:
        connections.close_all()


def make(pk: int) -> bool:
    """Make the PDF of a row; False where another has it, it is made already, or it failed.

    Whatever goes wrong ends in the row, as a sentence for the person who waits for it.
    """
    token = secrets.token_hex(16)
    row = renderings.claim(pk, token=token, now=timezone.now())
    if row is None:
        return False
    last = 0.0

    def tell(step: str, fraction: float) -> None:
        nonlocal last
        if time.monotonic() - last < TELL_EVERY:
            return
        last = time.monotonic()
        if not renderings.tell(pk, token=token, step=step, fraction=fraction):
            raise _Lost

    try:
        body = json.loads(store.path_of(row.document_id).read_bytes())
        pdf = render.pdf(document.read(body), page=row.page, on_step=tell)
        return renderings.finish(pk, token=token, pdf=pdf)
    except _Lost:
        log.warning("rendering %s was taken over by another worker", pk)
    except (render.PdfUnavailable, Refused) as no:
        renderings.fail(pk, token=token, problem=str(no))
    except Exception as bug:  # ours: whoever waits must not wait for ever
        log.exception("rendering %s failed", pk)
        problem = f"The PDF could not be made ({type(bug).__name__}: {bug}); the log has the trace."
        renderings.fail(pk, token=token, problem=problem)
    return False
