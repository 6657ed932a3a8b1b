"""The published reports of all investigations, the newest first."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.queries.published import published


@require_safe
def reports(request: HttpRequest) -> HttpResponse:
    """What was published, page by page; drafts stand on their investigations."""
    return render(request, "reports.html", {"page": published(request.GET.get("page", "1"))})
