"""Events stand where they belong on the timeline, however often something is put in between."""

from __future__ import annotations

import pytest

from experiments import lifecycle
from experiments.models import Event, Hypothesis, Investigation, Run


def order(investigation: Investigation) -> list[str]:
    rows: list[tuple[float, str]] = [
        *((r.position, r.title) for r in Run.objects.filter(investigation=investigation)),
        *((h.position, h.claim) for h in Hypothesis.objects.filter(investigation=investigation)),
        *((e.position, e.title) for e in Event.objects.filter(investigation=investigation)),
    ]
    return [title for _, title in sorted(rows)]


def add(investigation: Investigation, title: str, after: float | None = None) -> Event:
    return lifecycle.add_event(investigation=investigation, title=title, after=after)


def test_runs_hypotheses_and_events_share_one_timeline(investigation: Investigation) -> None:
    first = add(investigation, "first")
    lifecycle.add_hypothesis(investigation=investigation, claim="second")
    add(investigation, "third")
    add(investigation, "between", after=first.position)
    assert order(investigation) == ["first", "between", "second", "third"]


def test_after_the_last_is_the_end(investigation: Investigation) -> None:
    first = add(investigation, "first")
    add(investigation, "last", after=first.position)
    add(investigation, "later still")
    assert order(investigation) == ["first", "last", "later still"]


def test_sixty_events_in_one_gap_keep_their_order(investigation: Investigation) -> None:
    add(investigation, "start")
    add(investigation, "end")
    for n in range(60):
        start = Event.objects.get(title="start")
        add(investigation, f"{n:03}", after=start.position)
    expected = ["start", *(f"{n:03}" for n in reversed(range(60))), "end"]
    assert order(investigation) == expected
    places = list(Event.objects.values_list("position", flat=True))
    assert len(set(places)) == len(places)


def test_a_bad_event_is_refused(investigation: Investigation) -> None:
    with pytest.raises(lifecycle.Refused, match="no kind of event"):
        lifecycle.add_event(investigation=investigation, title="t", kind="party")
    other = lifecycle.create_investigation(title="o", question="q")
    stranger = lifecycle.add_hypothesis(investigation=other, claim="c")
    with pytest.raises(lifecycle.Refused, match="another investigation"):
        lifecycle.add_event(investigation=investigation, title="t", hypothesis=stranger)
    assert not Event.objects.exists()


def test_an_edit_leaves_an_event_where_it_stands(investigation: Investigation) -> None:
    event = add(investigation, "t")
    lifecycle.edit_event(event, title="u", text="more", kind="belief")
    event.refresh_from_db()
    assert (event.title, event.kind, event.position) == ("u", "belief", 1.0)
