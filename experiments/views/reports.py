"""The report of an investigation: one post-mortem, as a page and as a PDF."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments import queries
from experiments.reports import build
from experiments.reports import render as rendering
from experiments.views.found import found


@require_safe
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """The post-mortem as a page; the same template as the PDF's."""
    report = build.report(found(queries.investigation_page, slug))
    return HttpResponse(rendering.html(report))


@require_safe
def pdf(request: HttpRequest, slug: str) -> HttpResponse:
    """The post-mortem as PDF; 503 with one sentence where the machine lacks Pango."""
    report = build.report(found(queries.investigation_page, slug))
    try:
        data = rendering.pdf(report)
    except rendering.PdfUnavailable as no:
        return render(request, "503.html", {"reason": str(no)}, status=503)
    headers = {"Content-Disposition": f'inline; filename="{slug}.pdf"'}
    return HttpResponse(data, content_type="application/pdf", headers=headers)
