"""Rows of an investigation to what its page shows; its report is built in `document`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from experiments import store
from experiments.checkup import cases
from experiments.models import Investigation
from experiments.queries import Dossier, FindingFacts, InvestigationPage
from experiments.reports import story as telling
from experiments.reports.record import record_of
from specdebug.diagnosis.case import Case, Input, case_from_rows
from specdebug.diagnosis.findings import severity_rank
from specdebug.diagnosis.gather import build_case
from specdebug.diagnosis.timeline import timeline


def story(page: InvestigationPage) -> dict[str, Any]:
    """The timeline's steps with the scale of their bars; goal_line in tok/s where the goal is."""
    steps = telling.steps(page.dossier, timeline(record_of(page.dossier)))
    goal_line = page.goal.target if page.goal.metric == "tok_s" else None
    known = [step.value for step in steps if step.value is not None]
    if page.investigation.goal_kind == Investigation.Goal.AT_MOST:
        goal_line = None
    scale = 1.05 * max([*known, goal_line or 0.0, 1e-9])
    return {
        "steps": steps,
        "scale": scale,
        "goal_line": goal_line,
        "open_findings": by_severity(page.open_findings),
    }


def by_severity(findings: Iterable[FindingFacts]) -> list[FindingFacts]:
    """Findings with the gravest first."""
    return sorted(findings, key=lambda f: severity_rank(cast("Any", f.finding.severity)))


def places(dossier: Dossier) -> list[tuple[str, str]]:
    """Where an event may be put: after each hypothesis, run or event, by its position."""
    rows = [
        *((h.hypothesis.position, f"after {h.hypothesis}") for h in dossier.hypotheses),
        *((r.run.position, f"after {r.run}") for r in dossier.runs),
        *((event.position, f"after {event.title}") for event in dossier.events),
    ]
    return [(repr(position), words[:90]) for position, words in sorted(rows)]


def known_beside_runs(found: Dossier) -> Case | None:
    """Models, training and release of the newest speculative run, and the arguments that all of
    them share. Logs are left out: a report rests on the record's figures and must open quickly."""
    speculative = [facts for facts in found.runs if facts.speculative and facts.measured]
    if not speculative:
        return None
    facts = speculative[-1]
    notes = dict(found.investigation.notes)
    release = facts.run.engine_release or notes.pop("engine_version", None)
    files = [
        Input(row.name, store.path_of(row.blob_id))
        for row in cases.files_of(found, facts)
        if row.kind in cases.COMMON
    ]
    stated: dict[str, Any] = {}
    differing: set[str] = set()
    for one in speculative:
        for key in one.config:
            value = one.in_force(key)
            if value is not None and stated.setdefault(key, value) != value:
                differing.add(key)
    return case_from_rows(
        base=build_case(files, engine_version=release or None, notes=notes),
        requested={key: value for key, value in stated.items() if key not in differing},
        concurrency=cases.stated_concurrency(facts),
    )
