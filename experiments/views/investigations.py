"""One investigation: its page, its map, its question and its goal; it is closed in `closing`."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments import lifecycle, queries
from experiments.reports import build
from experiments.reports.lanes import lanes, places
from experiments.reports.taking_up import offers
from experiments.views.compare import plot_file
from experiments.views.forms import EditForm, InvestigationForm
from experiments.views.found import found


@require_safe
def investigation(request: HttpRequest, slug: str) -> HttpResponse:
    """Question, goal and gap, timeline, hypotheses, runs, open findings."""
    page = found(queries.investigation_page, slug)
    context: dict[str, Any] = {
        "page": page,
        "investigation": page.investigation,
        "goal": page.goal,
        **build.story(page),
    }
    if page.dossier.runs or page.dossier.hypotheses:
        context["map"] = lanes(page.dossier, context["goal_line"])
        context["stretches"] = places(page.dossier).stretches
        context["advice"] = offers(page)
    return render(request, "investigation.html", context)


@require_safe
def map_file(request: HttpRequest, slug: str, form: str) -> HttpResponse:
    """The map as CSV, SVG or PNG."""
    page = found(queries.investigation_page, slug)
    goal = page.goal.target if page.goal.metric == "tok_s" else None
    return plot_file(lanes(page.dossier, goal), form, slug)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Open a new investigation."""
    form = InvestigationForm(request.POST or None)
    if form.is_valid():
        user = request.user if isinstance(request.user, User) else None
        try:
            row = lifecycle.create_investigation(**form.cleaned_data, created_by=user)
        except lifecycle.Refused as no:
            form.add_error(None, str(no))
        else:
            return redirect(row)
    return render(request, "form.html", {"form": form, "heading": "Open an investigation"})


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Change question, context, goal or baseline."""
    page = found(queries.investigation_page, slug)
    row = page.investigation
    runs = [facts.run for facts in page.dossier.runs]
    names = ("title", "question", "context", "goal_metric", "goal_kind", "goal_value")
    initial = {name: getattr(row, name) for name in names} | {"baseline": row.baseline_id}
    form = EditForm(request.POST or None, initial=initial, runs=runs)
    if form.is_valid():
        values = {name: form.cleaned_data[name] for name in names}
        try:
            lifecycle.edit_investigation(row, **values, baseline=form.row("baseline"))
        except lifecycle.Refused as no:
            form.add_error(None, str(no))
        else:
            return redirect(row)
    context = {"form": form, "heading": "Question, goal and baseline", "investigation": row}
    return render(request, "form.html", context)


@require_POST
def baseline(request: HttpRequest, slug: str) -> HttpResponse:
    """Make a run the one that the goal compares with."""
    page = found(queries.investigation_page, slug)
    row, before = page.investigation, page.investigation.baseline
    run = next(
        (f.run for f in page.dossier.runs if str(f.run.number) == request.POST.get("run")), None
    )
    if run is None:
        messages.error(request, "There is no such run here; choose one of the list.")
    elif run != before:
        lifecycle.edit_investigation(row, baseline=run)
        messages.success(request, f"The goal compares with {run} now.")
    return redirect(run if run is not None and request.POST.get("back") == "run" else row)


@require_POST
def reopen(request: HttpRequest, slug: str) -> HttpResponse:
    """Open it again."""
    row = found(queries.investigation_page, slug).investigation
    try:
        lifecycle.reopen(investigation=row)
    except lifecycle.Refused as no:
        messages.error(request, str(no))
    return redirect(row)
