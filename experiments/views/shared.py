"""What the holder of a share link sees: that report alone, without an account or a session."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from experiments.lifecycle import reports as lifecycle
from experiments.lifecycle.reports import Opened
from experiments.models import Report
from experiments.reports import document as documents
from experiments.reports import pull_request
from experiments.reports import render as rendering
from experiments.reports.render import Link
from experiments.views.reports import figure_of, pdf_of

SAID = {
    "unknown": (404, "There is no report under this address. Links are long: was it copied whole?"),
    "over": (410, "This link has expired or was withdrawn. Ask whoever sent it for a new one."),
    "busy": (429, "This link was opened very often just now. Try again in a minute."),
}
GUESSES_A_MINUTE = 30
_ADDRESSES = 4096


class _Guesses:
    """Addresses that asked for unknown tokens, in this process; the oldest are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def too_many(self, address: str) -> bool:
        """Count one wrong token; whether there were too many within the minute."""
        now = time.monotonic()
        with self._lock:
            since, count = self._known.pop(address, (now, 0))
            if now - since > 60:
                since, count = now, 0
            self._known[address] = (since, count + 1)
            while len(self._known) > _ADDRESSES:
                self._known.popitem(last=False)
            return count + 1 > GUESSES_A_MINUTE

    def clear(self) -> None:
        with self._lock:
            self._known.clear()


guesses = _Guesses()


@sensitive_variables("token")
def _opened(request: HttpRequest, token: str, *, counts: bool) -> Opened:
    found = lifecycle.open_shared(token=token, now=timezone.now(), counts=counts)
    # A link that exists is never refused for what others guess from the same address.
    if found.outcome == "unknown" and guesses.too_many(request.META.get("REMOTE_ADDR", "")):
        return Opened("busy")
    return found


def _refused(found: Opened) -> HttpResponseBase:
    """One sentence; it names neither the report nor the team."""
    status, words = SAID[found.outcome]
    text = render_to_string("reports/over.html", {"reason": words})
    answer = HttpResponse(text, status=status)
    if status == 429:
        answer["Retry-After"] = "60"
    return _closed(answer)


def _closed(answer: HttpResponseBase) -> HttpResponseBase:
    """Nobody keeps it, no search engine lists it, and the address goes nowhere."""
    answer["Cache-Control"] = "private, no-store"
    answer["X-Robots-Tag"] = "noindex, nofollow"
    answer["Referrer-Policy"] = "no-referrer"
    return answer


def _report(found: Opened) -> Report:
    assert found.link is not None  # noqa: S101 (outcome "ok" has one)
    return found.link.report


@login_not_required
@never_cache
@sensitive_variables("token")
@require_safe
def page(request: HttpRequest, token: str) -> HttpResponseBase:
    """The report, with its PDF and Markdown under the same link."""
    found = _opened(request, token, counts=True)
    if found.outcome != "ok":
        return _refused(found)
    document = documents.read(_report(found).post_mortem)
    links = [
        Link(reverse("shared-pdf", args=[token]), "PDF"),
        Link(reverse("shared-markdown", args=[token]), "Markdown"),
    ]
    return _closed(HttpResponse(rendering.html(document, mode="shared", links=links)))


@login_not_required
@never_cache
@sensitive_variables("token")
@require_safe
def pdf(request: HttpRequest, token: str) -> HttpResponseBase:
    """The report's PDF, on the paper it was published for."""
    found = _opened(request, token, counts=False)
    if found.outcome != "ok":
        return _refused(found)
    report = _report(found)
    return _closed(
        pdf_of(
            request,
            documents.read(report.post_mortem),
            name=f"{report.investigation.slug}-v{report.number}",
            page=report.page,
            back=reverse("shared", args=[token]),
        )
    )


@login_not_required
@never_cache
@sensitive_variables("token")
@require_safe
def markdown(request: HttpRequest, token: str) -> HttpResponseBase:
    """The report as Markdown."""
    found = _opened(request, token, counts=False)
    if found.outcome != "ok":
        return _refused(found)
    text = pull_request.markdown(documents.read(_report(found).post_mortem))
    return _closed(HttpResponse(text, content_type="text/plain; charset=utf-8"))


@login_not_required
@never_cache
@sensitive_variables("token")
@require_safe
def figure(request: HttpRequest, token: str, name: str, form: str) -> HttpResponseBase:
    """One of the report's drawings as CSV, SVG or PNG."""
    found = _opened(request, token, counts=False)
    if found.outcome != "ok":
        return _refused(found)
    report = _report(found)
    of = f"{report.investigation.slug}-v{report.number}"
    return _closed(figure_of(documents.read(report.post_mortem), name, form, of))
