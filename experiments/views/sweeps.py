"""Sweeps and comparisons in turns: planned from a run, watched, stopped, resumed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments import groups, lifecycle, queries
from experiments.models import Run, RunGroup
from experiments.queries.groups import group_page, groups_of
from experiments.reports import sweep_plots
from experiments.views.compare import plot_file
from experiments.views.found import found
from experiments.views.sweep_forms import SweepForm, TurnsForm


@require_safe
def index(request: HttpRequest, slug: str) -> HttpResponse:
    """All of an investigation's sweeps and comparisons, newest first."""
    page = found(queries.investigation_page, slug)
    context = {"investigation": page.investigation, "groups": groups_of(slug)}
    return render(request, "sweeps.html", context)


@require_safe
def sweep(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """The best so far first, then the course or the map, then every point."""
    page = found(group_page, slug, number)
    is_sweep = page.group.kind == RunGroup.Kind.SWEEP
    context = {
        "page": page,
        "group": page.group,
        "investigation": page.group.investigation,
        "course": sweep_plots.course(page) if is_sweep else None,
        "map": sweep_plots.heat_map(page) if is_sweep else None,
    }
    return render(request, "sweep.html", context)


@require_safe
def plot(request: HttpRequest, slug: str, number: int, form: str) -> HttpResponse:
    """The course along one axis as a file."""
    drawn = sweep_plots.course(found(group_page, slug, number))
    return plot_file(drawn, form, f"{slug}-sweep-{number}")


@require_safe
def map_plot(request: HttpRequest, slug: str, number: int, form: str) -> HttpResponse:
    """The map of two axes as a file."""
    drawn = sweep_plots.map_plot(found(group_page, slug, number))
    return plot_file(drawn, form, f"{slug}-sweep-{number}")


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Plan a sweep from a run; "look" shows what would be measured before anything is queued."""
    page, origin = _origin(slug, number)
    form = SweepForm(
        request.POST or None, hypotheses=[facts.hypothesis for facts in page.dossier.hypotheses]
    )
    context: dict[str, Any] = {"form": form, "origin": origin, "investigation": page.investigation}
    try:
        common = _common(origin)
        if form.is_valid() and request.POST.get("then") == "look":
            context["planned"] = groups.planned(common, form.cleaned_data["settings"])
        elif form.is_valid():
            made = groups.add_sweep(
                investigation=page.investigation,
                title=form.cleaned_data["title"],
                common=replace(
                    common,
                    workload=replace(common.workload, repeats=form.cleaned_data["repeats"]),
                ),
                settings=form.cleaned_data["settings"],
                baseline=origin.baseline or page.investigation.baseline,
                hypothesis=form.row("hypothesis"),
                stop_early=form.cleaned_data["stop_early"],
            )
            return redirect(made)
    except lifecycle.Refused as no:
        form.add_error(None, " ".join([str(no), *no.obstacles]))
    return render(request, "sweep_new.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def turns(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Measure other runs' arguments beside this one's, in turns."""
    page, origin = _origin(slug, number)
    form = TurnsForm(
        request.POST or None,
        hypotheses=[facts.hypothesis for facts in page.dossier.hypotheses],
        offered=[
            facts.run
            for facts in page.dossier.runs
            if facts.run.pk != origin.pk
            and facts.run.engine == origin.engine
            and facts.run.plan.get("server_args")
        ],
    )
    if form.is_valid():
        try:
            made = groups.add_comparison(
                investigation=page.investigation,
                title=form.cleaned_data["title"],
                common=_common(origin),
                variants=form.chosen(),
                rounds=form.cleaned_data["rounds"],
                hypothesis=form.row("hypothesis"),
            )
            return redirect(made)
        except lifecycle.Refused as no:
            form.add_error(None, str(no))
    context = {"form": form, "origin": origin, "investigation": page.investigation}
    return render(request, "turns_new.html", context)


@require_POST
def stop(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Make no more runs of it and cancel the one on its way; twice changes nothing."""
    row = found(group_page, slug, number).group
    groups.stop(row, reason=f"stopped by {request.user.get_username() or 'a person'}")
    return redirect(row)


@require_POST
def resume(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Go on where it stopped."""
    row = found(group_page, slug, number).group
    try:
        groups.resume(row)
    except lifecycle.Refused as no:
        messages.error(request, str(no))
    return redirect(row)


def _origin(slug: str, number: int) -> tuple[queries.InvestigationPage, Run]:
    page = found(queries.investigation_page, slug)
    run = next((f.run for f in page.dossier.runs if f.run.number == number), None)
    if run is None or not run.plan.get("server_args"):
        raise Http404
    return page, run


def _common(origin: Run) -> groups.Common:
    plan = lifecycle.plan_of(origin)
    return groups.Common(
        engine=plan.engine,
        server_args=plan.server_args,
        workload=plan.workload,
        env=plan.env,
        engine_release=origin.engine_release,
        strict=plan.strict,
    )
