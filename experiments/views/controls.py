"""Watched series: the list, one over time, watching a run's configuration, closing an alert."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.lifecycle import controls
from experiments.models import Alert, Run, WatchedSeries
from experiments.queries.history import all_series, series_of
from experiments.refusal import Refused
from experiments.reports.course_of_series import course_of
from experiments.views.compare import plot_file


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Every series with its level, its spread and what is open."""
    return render(request, "controls.html", {"series": all_series()})


@require_safe
def control(request: HttpRequest, pk: int) -> HttpResponse:
    """One series: its runs over time, its levels, its alerts."""
    found = series_of(_watched(pk))
    return render(request, "control.html", {"series": found, "plot": course_of(found)})


@require_safe
def plot(request: HttpRequest, pk: int, form: str) -> HttpResponse:
    """The course of a series as a file."""
    return plot_file(course_of(series_of(_watched(pk))), form, f"series-{pk}")


def _watched(pk: int) -> WatchedSeries:
    rows = WatchedSeries.objects.select_related("started_from__investigation")
    return get_object_or_404(rows, pk=pk)


@require_POST
def watch(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Watch the configuration of a run; a second click comes to the same series."""
    run = get_object_or_404(
        Run.objects.select_related("investigation"), investigation__slug=slug, number=number
    )
    user = request.user if isinstance(request.user, User) else None
    try:
        row = controls.watch(run=run, title=request.POST.get("title") or run.title, by=user)
    except Refused as no:
        messages.error(request, f"Not watched: {no}.")
        return redirect(run)
    return redirect(row)


@require_POST
def unwatch(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop watching."""
    row = get_object_or_404(WatchedSeries, pk=pk)
    controls.unwatch(row)
    messages.info(request, f"{row.title} is no longer watched. Its runs are where they were.")
    return redirect("controls")


@require_POST
def close_alert(request: HttpRequest, pk: int) -> HttpResponse:
    """Close an alert with a reason."""
    alert = get_object_or_404(Alert.objects.select_related("series"), pk=pk)
    try:
        controls.close_alert(
            alert=alert,
            by=request.user.get_username(),
            reason=request.POST.get("reason", ""),
        )
    except Refused as no:
        messages.error(request, f"Not closed: {no}.")
    return redirect(alert.series)
