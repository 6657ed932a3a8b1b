"""The list of investigations: the first page after logging in."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments import queries
from experiments.views import warm


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Open investigations with goal bar and gap, running work, open findings by severity."""
    warm.begin()
    return render(request, "home.html", {"page": queries.home()})
