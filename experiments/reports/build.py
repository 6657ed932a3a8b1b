"""Rows of an investigation to what its page and its report show."""

from __future__ import annotations

from typing import Any

from experiments.models import Investigation
from experiments.queries import Dossier, InvestigationPage
from experiments.reports import story as telling
from experiments.reports.record import record_of
from specdebug.diagnosis.timeline import timeline


def story(page: InvestigationPage) -> dict[str, Any]:
    """The timeline's steps with the scale of their bars; goal_line in tok/s where the goal is."""
    steps = telling.steps(page.dossier, timeline(record_of(page.dossier)))
    goal_line = page.goal.target if page.goal.metric == "tok_s" else None
    known = [step.value for step in steps if step.value is not None]
    if page.investigation.goal_kind == Investigation.Goal.AT_MOST:
        goal_line = None
    scale = 1.05 * max([*known, goal_line or 0.0, 1e-9])
    return {"steps": steps, "scale": scale, "goal_line": goal_line}


def places(dossier: Dossier) -> list[tuple[str, str]]:
    """Where an event may be put: after each hypothesis, run or event, by its position."""
    rows = [
        *((h.hypothesis.position, f"after {h.hypothesis}") for h in dossier.hypotheses),
        *((r.run.position, f"after {r.run}") for r in dossier.runs),
        *((event.position, f"after {event.title}") for event in dossier.events),
    ]
    return [(repr(position), words[:90]) for position, words in sorted(rows)]
