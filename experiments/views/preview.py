"""How a text in Markdown will stand, for the forms in which one is written."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from experiments.reports import markdown

LONGEST = 20_000


@require_POST
def preview(request: HttpRequest) -> HttpResponse:
    """The field named by `of`, as it will stand; nothing where that shows no more than the text."""
    text = request.POST.get(request.GET.get("of", ""), "")
    shown = text[:LONGEST]
    return render(
        request,
        "_previewed.html",
        {
            "text": shown if markdown.is_formatted(shown) else "",
            "cut": LONGEST if len(text) > LONGEST else None,
        },
    )
