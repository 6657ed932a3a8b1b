"""Events that people put on a timeline: anywhere between two others, to change and to take back."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from experiments import lifecycle, queries
from experiments.models import Event
from experiments.reports import build
from experiments.views.forms import EventForm
from experiments.views.found import found
from experiments.views.undo import done

# Where the last event that was taken away waits for an undo.
REMOVED = "removed_event"


def _form(request: HttpRequest, page: queries.InvestigationPage, **more: Any) -> EventForm:
    return EventForm(
        request.POST or None,
        runs=[facts.run for facts in page.dossier.runs],
        hypotheses=[facts.hypothesis for facts in page.dossier.hypotheses],
        places=build.places(page.dossier),
        **more,
    )


def _event(page: queries.InvestigationPage, pk: int) -> Event:
    event = next((e for e in page.dossier.events if e.pk == pk), None)
    if event is None:
        raise Http404("There is no such event on this timeline.")
    return event


@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest, slug: str) -> HttpResponse:
    """Add an observation, a source reading, a fix, a belief or a note, wherever it belongs."""
    page = found(queries.investigation_page, slug)
    form = _form(request, page, initial={"after": request.GET.get("after", ""), "kind": "note"})
    if form.is_valid():
        values = form.cleaned_data
        try:
            event = lifecycle.add_event(
                investigation=page.investigation,
                title=values["title"],
                kind=values["kind"],
                text=values["text"],
                after=float(values["after"]) if values["after"] else None,
                run=form.row("run"),
                hypothesis=form.row("hypothesis"),
                author=request.user.get_username(),
            )
        except lifecycle.Refused as no:
            form.add_error(None, str(no))
        else:
            done(request, "Added to the timeline.", reverse("event-remove", args=[slug, event.pk]))
            return redirect(f"{page.investigation.get_absolute_url()}#e{event.pk}")
    context = {"form": form, "heading": "Add to the timeline", "investigation": page.investigation}
    return render(request, "form.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Change what an event says; it stays where it stands."""
    page = found(queries.investigation_page, slug)
    event = _event(page, pk)
    initial = {"kind": event.kind, "title": event.title, "text": event.text}
    form = _form(request, page, initial=initial)
    for name in ("after", "run", "hypothesis"):
        del form.fields[name]
    if form.is_valid():
        try:
            lifecycle.edit_event(event, **form.cleaned_data)
        except lifecycle.Refused as no:
            form.add_error(None, str(no))
        else:
            return redirect(f"{page.investigation.get_absolute_url()}#e{event.pk}")
    context = {
        "form": form,
        "heading": "Change an event",
        "investigation": page.investigation,
        "remove": reverse("event-remove", args=[slug, pk]),
    }
    return render(request, "form.html", context)


@require_POST
def remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Take an event off the timeline; one that is gone already is no fault."""
    page = found(queries.investigation_page, slug)
    event = next((e for e in page.dossier.events if e.pk == pk), None)
    if event is not None:
        names = ("kind", "title", "text", "position", "author", "run_id", "hypothesis_id")
        kept = {name: getattr(event, name) for name in names}
        request.session[REMOVED] = {**kept, "slug": slug}
        lifecycle.remove_event(event)
        done(request, f"“{event.title}” was taken away.", reverse("event-restore", args=[slug]))
    return redirect(page.investigation)


@require_POST
def restore(request: HttpRequest, slug: str) -> HttpResponse:
    """Put the event that was taken away last back to where it stood."""
    page = found(queries.investigation_page, slug)
    kept = request.session.pop(REMOVED, None)
    if kept is None or kept.pop("slug") != slug:
        messages.error(request, "There is nothing to bring back.")
        return redirect(page.investigation)
    rows = page.dossier
    before = [p for p in _positions(rows) if p < kept["position"]]
    event = lifecycle.add_event(
        investigation=page.investigation,
        kind=kept["kind"],
        title=kept["title"],
        text=kept["text"],
        author=kept["author"],
        # Without anything before it, it goes before the first: nothing is below zero.
        after=max(before, default=0.0),
        run=next((r.run for r in rows.runs if r.run.pk == kept["run_id"]), None),
        hypothesis=next(
            (h.hypothesis for h in rows.hypotheses if h.hypothesis.pk == kept["hypothesis_id"]),
            None,
        ),
    )
    return redirect(f"{page.investigation.get_absolute_url()}#e{event.pk}")


def _positions(rows: queries.Dossier) -> list[float]:
    found_ = [r.run.position for r in rows.runs] + [e.position for e in rows.events]
    return found_ + [h.hypothesis.position for h in rows.hypotheses]
