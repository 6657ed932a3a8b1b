"""One finding: its life, its evidence, and what a person decides about it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from experiments import lifecycle, queries
from experiments.views.evidence import with_links
from experiments.views.forms import ReasonForm
from experiments.views.found import found
from experiments.views.undo import done
from specdebug.diagnosis.catalogue import CATALOGUE


@require_safe
def finding(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The finding with its evidence lines, its fix and its turns."""
    page = found(queries.finding_page, slug, pk)
    context = {
        "page": page,
        "finding": page.finding,
        "known": CATALOGUE.get(page.finding.code),
        "evidence": with_links(page.finding),
        "form": ReasonForm(),
    }
    return render(request, "finding.html", context)


@require_POST
def set_aside(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Take the finding out of the way, with a reason."""
    row = found(queries.finding_page, slug, pk).finding
    try:
        lifecycle.set_finding_aside(
            finding=row, by=request.user.get_username(), reason=request.POST.get("reason", "")
        )
    except lifecycle.Refused as no:
        messages.error(request, str(no))
    else:
        done(request, f"{row.code} is set aside.", reverse("finding-reopen", args=[slug, pk]))
    return redirect("finding", slug, pk)


@require_POST
def reopen(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Bring the finding back."""
    row = found(queries.finding_page, slug, pk).finding
    try:
        lifecycle.reopen_finding(
            finding=row, by=request.user.get_username(), reason=request.POST.get("reason", "")
        )
    except lifecycle.Refused as no:
        messages.error(request, str(no))
    return redirect("finding", slug, pk)
