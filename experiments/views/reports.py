"""The report of an investigation: one post-mortem, as a page and as a PDF."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from experiments import queries
from experiments.reports import build
from experiments.reports import render as rendering
from experiments.views.found import found


@require_safe
def page(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The post-mortem as a page; the same template as the PDF's."""
    report = build.report(found(queries.investigation_page, slug))
    unchanged = get_conditional_response(request, etag=_etag(report))
    return unchanged or _kept(HttpResponse(rendering.html(report)), report)


@require_safe
def pdf(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The post-mortem as PDF; 503 with one sentence where the machine lacks Pango."""
    report = build.report(found(queries.investigation_page, slug))
    if unchanged := get_conditional_response(request, etag=_etag(report)):
        return unchanged
    try:
        data = rendering.pdf(report)
    except rendering.PdfUnavailable as no:
        return render(request, "503.html", {"reason": str(no)}, status=503)
    answer = HttpResponse(data, content_type="application/pdf")
    answer["Content-Disposition"] = f'inline; filename="{slug}.pdf"'
    return _kept(answer, report)


def _etag(report: build.Report) -> str:
    return f'"{report.digest}"'


def _kept(answer: HttpResponse, report: build.Report) -> HttpResponse:
    """A browser may keep it, but asks each time whether it still holds."""
    answer["ETag"] = _etag(report)
    answer["Cache-Control"] = "private, no-cache"
    return answer
