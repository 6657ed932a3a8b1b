"""Runs by hand: figures that were measured elsewhere, and the notes of any run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from experiments import intake, lifecycle, queries
from experiments.lifecycle.records import enter_arguments
from experiments.lifecycle.runs import RecordedRepeat
from experiments.reports import build
from experiments.views.forms import NoteForm, RecordForm
from experiments.views.found import found


@require_http_methods(["GET", "HEAD", "POST"])
def record(request: HttpRequest, slug: str) -> HttpResponse:
    """Enter a run from a write-up; findings and verdicts are drawn from it at once."""
    page = found(queries.investigation_page, slug)
    row = page.investigation
    form = RecordForm(
        request.POST or None,
        initial={"baseline": row.baseline_id},
        runs=[facts.run for facts in page.dossier.runs],
        hypotheses=[facts.hypothesis for facts in page.dossier.hypotheses],
        places=build.places(page.dossier),
    )
    if form.is_valid():
        values = form.cleaned_data
        try:
            run = lifecycle.record_run(
                investigation=row,
                title=values["title"],
                repeats=[RecordedRepeat(tok_s, length) for tok_s, length in form.repeats()],
                server_args=values["server_args"],
                engine_release=values["engine_release"],
                concurrency=values["concurrency"],
                hypothesis=form.row("hypothesis"),
                baseline=form.row("baseline"),
                host=values["host"],
                note=values["note"],
                after=float(values["after"]) if values["after"] else None,
            )
        except lifecycle.Refused as no:
            form.add_error(None, str(no))
        else:
            enter_arguments(run)
            intake.draw_conclusions(run)
            return redirect(run)
    context = {"form": form, "heading": "Record a run", "investigation": row}
    return render(request, "form.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def note(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Change a run's title and note."""
    run = found(queries.run_live, slug, number).run
    form = NoteForm(request.POST or None, initial={"title": run.title, "note": run.note})
    if form.is_valid():
        try:
            lifecycle.edit_run(run, **form.cleaned_data)
        except lifecycle.Refused as no:
            form.add_error(None, str(no))
        else:
            return redirect(run)
    context = {"form": form, "heading": f"Title and note of {run.label}"}
    return render(request, "form.html", context | {"investigation": run.investigation})
