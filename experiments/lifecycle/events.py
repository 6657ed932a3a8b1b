"""Events of the timeline: observations, source readings, fixes and beliefs, where they belong."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from experiments.lifecycle.place import lock, place
from experiments.lifecycle.text import needed
from experiments.models import Event, Hypothesis, Investigation, Run
from experiments.refusal import Refused


def add_event(
    *,
    investigation: Investigation,
    title: str,
    kind: str = Event.Kind.NOTE,
    text: str = "",
    after: float | None = None,
    at: datetime | None = None,
    run: Run | None = None,
    hypothesis: Hypothesis | None = None,
    author: str = "",
) -> Event:
    """Put an event at the end of the timeline, or right after the place `after` (a `position`)."""
    if kind not in Event.Kind.values:
        raise Refused(f"{kind!r} is no kind of event; choose one of {', '.join(Event.Kind.values)}")
    for row in (run, hypothesis):
        if row is not None and row.investigation_id != investigation.pk:
            raise Refused(f"{row.label} belongs to another investigation")
    with transaction.atomic():
        lock(investigation)
        return Event.objects.create(
            investigation=investigation,
            kind=kind,
            title=needed(title, "title", 200),
            text=text,
            position=place(investigation, after),
            at=at,
            run=run,
            hypothesis=hypothesis,
            author=author[:150],
        )


def edit_event(event: Event, *, title: str, text: str, kind: str) -> Event:
    """Change what an event says, not where it stands."""
    if kind not in Event.Kind.values:
        raise Refused(f"{kind!r} is no kind of event; choose one of {', '.join(Event.Kind.values)}")
    event.title, event.text, event.kind = needed(title, "title", 200), text, kind
    event.save(update_fields=["title", "text", "kind"])
    return event


def remove_event(event: Event) -> None:
    """Take an event off the timeline; what it said is the caller's to keep for an undo."""
    event.delete()
