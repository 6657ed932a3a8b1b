"""An investigation's rows as the steps of its timeline page: what was thought, done and learnt.

Order and words only; what a run showed comes from the library's timeline.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from django.urls import reverse

from experiments.models import ConfigChange, Event, FindingEvent, Verdict
from experiments.queries import Dossier, HypothesisFacts, RunFacts
from experiments.reports.terms import predicted
from specdebug.diagnosis.findings import severity_rank
from specdebug.diagnosis.timeline import TimelineEntry

Lane = Literal["thought", "deed", "result"]
LANES: dict[str, Lane] = {
    Event.Kind.OBSERVATION: "result",
    Event.Kind.SOURCE: "result",
    Event.Kind.FIX: "deed",
    Event.Kind.BELIEF: "thought",
    Event.Kind.NOTE: "thought",
}
TONES = {"critical": "bad", "high": "warn"}
Kind = FindingEvent.Kind


@dataclass(frozen=True, slots=True)
class Badge:
    """A word with its tone, which is also the name of its drawing and of its colour."""

    tone: str
    words: str


@dataclass(frozen=True, slots=True)
class Noted:
    """A finding within a step. again: it had been fixed and is back."""

    code: str
    severity: str
    url: str
    says: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step on the lane. value: tok/s of a run; tone: "good", "warn", "bad" or ""."""

    anchor: str
    lane: Lane
    kind: str
    icon: str
    word: str
    title: str
    url: str = ""
    at: datetime | None = None
    text: str = ""
    believed: str = ""
    turned_out: str = ""
    showed: str = ""
    ruled_out: str = ""
    tone: str = ""
    badges: tuple[Badge, ...] = ()
    run: RunFacts | None = None
    value: float | None = None
    change: str = ""
    changed: str = ""
    noted: tuple[Noted, ...] = ()
    position: float | None = None  # where it stands; None for what belongs to a run
    event: int | None = None  # key of an event that a person can change

    @property
    def place(self) -> str:
        """Where a new event goes that follows this step, as the form for it wants it."""
        return repr(self.position)


def steps(dossier: Dossier, entries: Iterable[TimelineEntry]) -> list[Step]:
    """All steps in the order of the timeline; a run's verdict and findings follow it.

    `entries`: the library's timeline of the same rows, for what each run showed and ruled out.
    """
    told = {entry.ref: entry for entry in entries if entry.kind == "run"}
    placed: list[tuple[float, list[Step]]] = [
        *((h.hypothesis.position, [_hypothesis(dossier, h)]) for h in dossier.hypotheses),
        *((event.position, [_event(event)]) for event in dossier.events),
        *((r.run.position, [*_run(dossier, r, told.get(r.run.label))]) for r in dossier.runs),
    ]
    placed.sort(key=lambda pair: pair[0])
    return [step for _, some in placed for step in some]


def _hypothesis(dossier: Dossier, facts: HypothesisFacts) -> Step:
    row, verdict = facts.hypothesis, facts.verdict
    badges = []
    if verdict is not None:
        badges = [
            Badge(verdict.applied, verdict.get_applied_display()),
            Badge(verdict.outcome, f"prediction {verdict.get_outcome_display()}"),
        ]
    elif facts.predictions:
        badges = [Badge("undecided", "no run has tested it")]
    return Step(
        anchor=f"h{row.number}",
        lane="thought",
        kind="hypothesis",
        icon="hypothesis",
        word=f"Hypothesis {row.label}",
        title=row.claim,
        url=reverse("hypothesis", args=[dossier.investigation.slug, row.number]),
        at=row.at,
        position=row.position,
        text=row.mechanism,
        believed=predicted(facts.prediction),
        turned_out=verdict.outcome_reason if verdict else "",
        badges=tuple(badges),
    )


def _event(event: Event) -> Step:
    return Step(
        anchor=f"e{event.pk}",
        lane=LANES.get(event.kind, "thought"),
        kind=event.kind,
        icon=event.kind,
        word=event.get_kind_display().capitalize(),
        title=event.title,
        at=event.at,
        position=event.position,
        event=event.pk,
        text=event.text,
    )


def _run(dossier: Dossier, facts: RunFacts, told: TimelineEntry | None) -> Iterable[Step]:
    row, slug = facts.run, dossier.investigation.slug
    badges = [Badge("info", "baseline")] if facts.is_baseline else []
    if row.state != "done":
        badges.append(Badge(row.state, row.get_state_display()))
    value = facts.figures.tok_s.mean if facts.figures.tok_s else None
    change = ""
    if facts.ratio is not None and not facts.is_baseline:
        change = f"{100 * (facts.ratio - 1):+.1f} % against the baseline".replace("-", "−")
    for lost in told.regressions if told else ():
        if lost.flagged:
            cause = "" if lost.cause == "unknown" else f": {lost.cause}"
            badges.append(Badge("refuted", f"regression against {lost.against}{cause}"))
    changed = "; ".join(map(_changed, facts.changes))
    tone = ""
    if facts.ratio is not None and not facts.is_baseline:
        tone = "good" if facts.ratio >= 1 else "bad"
    yield Step(
        anchor=f"r{row.number}",
        lane="deed",
        kind="run",
        icon="run",
        word=f"Run {row.label}",
        title=row.title,
        url=reverse("run", args=[slug, row.number]),
        at=row.ended_at or row.at,
        position=row.position,
        text=row.note,
        showed=told.showed if told else "",
        ruled_out=told.ruled_out if told else "",
        badges=tuple(badges),
        run=facts,
        value=value,
        change=change,
        changed=changed,
        tone=tone,
    )
    if facts.verdict is not None:
        yield _verdict(dossier, facts.verdict)
    yield from _findings(dossier, facts)


def _changed(change: ConfigChange) -> str:
    before = "" if change.before is None else f"{json.dumps(change.before)} → "
    after = "" if change.after is None else json.dumps(change.after)
    if change.kind == ConfigChange.Kind.PATCH:
        return f"{change.key} patched"
    return f"{change.key} {before}{after or 'removed'}"


def _verdict(dossier: Dossier, verdict: Verdict) -> Step:
    tones = {"supported": "good", "refuted": "bad", "undecided": ""}
    hypothesis = next(
        h.hypothesis for h in dossier.hypotheses if h.hypothesis.pk == verdict.hypothesis_id
    )
    return Step(
        anchor=f"v{verdict.pk}",
        lane="result",
        kind="verdict",
        icon="verdict",
        word=f"Verdict on {hypothesis.label}",
        title=hypothesis.claim,
        url=reverse("hypothesis", args=[dossier.investigation.slug, hypothesis.number]),
        showed=f"{verdict.applied_reason} {verdict.outcome_reason}".strip(),
        badges=(
            Badge(verdict.applied, verdict.get_applied_display()),
            Badge(verdict.outcome, f"prediction {verdict.get_outcome_display()}"),
        ),
        tone=tones.get(verdict.outcome, ""),
    )


def _findings(dossier: Dossier, facts: RunFacts) -> Iterable[Step]:
    """What the run brought to light, and what it showed to be fixed, as one step each."""
    turns = [
        (turn, found.finding)
        for found in dossier.findings
        for turn in found.events
        if turn.run_id == facts.run.pk
    ]
    for kinds, word in (((Kind.OPENED, Kind.REOPENED), "Found"), ((Kind.FIXED,), "Fixed")):
        noted = [
            Noted(
                code=row.code,
                severity=row.severity,
                url=reverse("finding", args=[dossier.investigation.slug, row.pk]),
                says=turn.statement or row.statement,
                again=turn.kind == Kind.REOPENED,
            )
            for turn, row in turns
            if turn.kind in kinds
        ]
        if not noted:
            continue
        noted.sort(key=lambda one: severity_rank(cast("Any", one.severity)))
        fixed = word == "Fixed"
        title = f"{len(noted)} finding{'s' if len(noted) > 1 else ''}"
        yield Step(
            anchor=f"r{facts.run.number}-{word.lower()}",
            lane="result",
            kind="finding",
            icon="yes" if fixed else "finding",
            word=f"{word} in {facts.run.label}",
            title=f"{title} verified as fixed" if fixed else title,
            tone="good" if fixed else TONES.get(noted[0].severity, ""),
            noted=tuple(noted),
        )
