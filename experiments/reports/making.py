"""One PDF from its row: claimed, read, laid out, kept. What a worker runs; safe to run twice."""

from __future__ import annotations

import json
import logging
import secrets
import time

from django.utils import timezone

from experiments import store
from experiments.lifecycle import renderings
from experiments.refusal import Refused
from experiments.reports import document, render

log = logging.getLogger(__name__)

TELL_EVERY = 0.5  # seconds between signs of life in the record


class _Lost(Exception):
    """Another worker has taken over."""


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
