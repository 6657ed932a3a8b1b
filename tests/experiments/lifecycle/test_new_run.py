"""The row of a new run: the same number, place and rules whoever opens it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from experiments import lifecycle
from experiments.lifecycle.place import place
from experiments.lifecycle.scripted import start_scripted_run
from experiments.models import Investigation, Run
from experiments.refusal import Refused

pytestmark = pytest.mark.django_db
Opener = Callable[..., Run]


def planned(**values: Any) -> Run:
    return lifecycle.add_run(server_args=["--model-path", "m"], **values)


def recorded(**values: Any) -> Run:
    return lifecycle.record_run(repeats=[lifecycle.RecordedRepeat(1.0)], **values)


def scripted(**values: Any) -> Run:
    return start_scripted_run(**values)[0]


OPENERS = pytest.mark.parametrize("opened", [planned, recorded, scripted])


@OPENERS
def test_numbers_go_on_and_places_are_behind_everything(
    opened: Opener, investigation: Investigation
) -> None:
    first = opened(investigation=investigation, title="first")
    event = lifecycle.add_event(investigation=investigation, title="then")
    second = opened(investigation=investigation, title="second")
    assert (first.number, second.number) == (0, 1)
    assert first.position < event.position < second.position
    assert second.plan["run"] == f"{investigation.slug}-r1"
    assert lifecycle.create_investigation(title="Other", question="?").runs.count() == 0
    assert place(investigation) > second.position


@OPENERS
@pytest.mark.parametrize("link", ["baseline", "follows", "hypothesis"])
def test_what_belongs_to_another_investigation_is_refused(
    opened: Opener, link: str, investigation: Investigation
) -> None:
    other = lifecycle.create_investigation(title="Other", question="?")
    there: Any = (
        lifecycle.add_hypothesis(investigation=other, claim="c")
        if link == "hypothesis"
        else recorded(investigation=other, title="there")
    )
    with pytest.raises(Refused, match=f"{there.label} belongs to another investigation"):
        opened(investigation=investigation, title="x", **{link: there})
    assert not investigation.runs.exists()


@OPENERS
def test_a_title_is_needed(opened: Opener, investigation: Investigation) -> None:
    with pytest.raises(Refused, match="title is empty"):
        opened(investigation=investigation, title="  ")
    assert not investigation.runs.exists()


@pytest.mark.parametrize("opened", [planned, recorded])
def test_a_run_can_stand_between_two_others(opened: Opener, investigation: Investigation) -> None:
    first = opened(investigation=investigation, title="first")
    third = opened(investigation=investigation, title="third")
    second = opened(investigation=investigation, title="second", after=first.position)
    assert first.position < second.position < third.position
    assert [r.title for r in investigation.runs.all()] == ["first", "second", "third"]
