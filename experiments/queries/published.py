"""The published reports of all investigations; one investigation's own stand in `reports`."""

from __future__ import annotations

from django.core.paginator import Page, Paginator

from experiments.models import Report

PER_PAGE = 50


def published(page: str = "1") -> Page[Report]:
    """Published versions, the newest first: 2 queries however many there are."""
    rows = (
        Report.objects.filter(state=Report.State.PUBLISHED)
        .select_related("investigation")
        .only(
            *("number", "state", "template", "page", "published_by", "published_at"),
            *("investigation__slug", "investigation__title", "investigation__state"),
        )
        .order_by("-published_at", "-pk")
    )
    return Paginator(rows, PER_PAGE).get_page(page)
