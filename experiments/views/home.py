"""The first page after logging in, and the piece of it that follows what runs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from experiments import queries
from experiments.models import Investigation, SavedView
from experiments.queries.home import active_runs
from experiments.views import warm
from experiments.views.kept import kept


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Investigations with goal and gap, running work, what got worse, open bugs, hosts."""
    warm.begin()
    page = queries.home(
        request.GET.get("state", Investigation.State.OPEN), request.GET.get("page", "1")
    )
    states = [(s, words, page.states.get(s, 0)) for s, words in Investigation.State.choices]
    keep = kept(request, SavedView.Page.HOME, f"state={page.state}")
    return render(request, "home.html", {"page": page, "states": states, "keep": keep})


@require_safe
@never_cache
def running(request: HttpRequest) -> HttpResponse:
    """The running work alone, asked for while there is some; the page is due when it has ended."""
    active = active_runs()
    if not active:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    return render(request, "_running.html", {"active": active})
