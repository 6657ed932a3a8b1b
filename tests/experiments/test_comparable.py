"""Only runs that may be compared with the baseline count towards the goal."""

from __future__ import annotations

import pytest

from experiments import lifecycle
from experiments.lifecycle import RecordedRepeat
from experiments.models import Investigation, Run
from experiments.queries import dossier, goal_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def row() -> Investigation:
    found = lifecycle.create_investigation(title="Slow", question="Why?")
    base = lifecycle.record_run(
        investigation=found, title="plain", repeats=[RecordedRepeat(90.0)], engine="sglang"
    )
    lifecycle.edit_investigation(found, baseline=base)
    return found


def record(row: Investigation, tok_s: float, engine: str) -> Run:
    return lifecycle.record_run(
        investigation=row,
        title="with a draft",
        repeats=[RecordedRepeat(tok_s, accept_len=2.0)],
        engine=engine,
    )


@pytest.mark.parametrize("engine", ["sglang", "attached"])
def test_a_run_of_the_same_engine_counts(row: Investigation, engine: str) -> None:
    record(row, 60.0, engine)
    found = dossier(row)
    goal = goal_of(row, found.runs)
    assert (goal.met, goal.best_value) == (False, 60.0)
    assert found.runs[1].ratio == pytest.approx(60 / 90)


def test_another_engines_run_meets_no_goal_and_has_no_ratio(row: Investigation) -> None:
    record(row, 250.0, "reference")
    found = dossier(row)
    goal = goal_of(row, found.runs)
    assert (goal.met, goal.best, goal.ratio) == (None, None, None)
    assert goal.sentence == "The goal cannot be judged: R1 ran on reference, R0 on sglang."
    assert found.runs[1].ratio is None


def test_another_engines_run_does_not_outshine_one_that_counts(row: Investigation) -> None:
    record(row, 60.0, "sglang")
    record(row, 250.0, "reference")
    goal = goal_of(row, dossier(row).runs)
    assert (goal.best_value, goal.latest) == (60.0, None)
