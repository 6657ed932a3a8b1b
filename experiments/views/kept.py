"""Kept views: what a list with filters shows of them, keeping one, letting go of one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from experiments.lifecycle.saved import remove_view, save_view
from experiments.models import SavedView
from experiments.refusal import Refused


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 (login is required)
    return request.user


def kept(request: HttpRequest, page: SavedView.Page, query: str) -> dict[str, Any]:
    """What `_keep.html` shows: the reader's views of this page, and what would be kept now."""
    views = SavedView.objects.filter(user=_user(request), page=page)
    return {"page": page, "words": page.label, "query": query, "views": views}


@require_POST
def keep(request: HttpRequest) -> HttpResponse:
    """Keep the address of a page under a name; refused, the page is there as it was."""
    page, query = request.POST.get("page", ""), request.POST.get("query", "").lstrip("?")
    try:
        view = save_view(
            user=_user(request), page=page, name=request.POST.get("name", ""), query=query
        )
    except Refused as no:
        messages.error(request, f"Not kept: {no}.")
        if page not in SavedView.Page.values:
            return redirect("search")
        return redirect(f"{reverse(page)}?{query}")
    messages.success(request, f"Kept as “{view.name}”; it stands here and under Settings.")
    return redirect(view)


@require_POST
def forget(request: HttpRequest, pk: int) -> HttpResponse:
    """Let go of a kept view, and back to the page it was of, or to the settings, which list all."""
    page = remove_view(user=_user(request), pk=pk)
    return redirect("settings" if request.POST.get("back") == "settings" else page or "search")
