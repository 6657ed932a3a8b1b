"""The rows of an investigation as the library's plain `Record`; converts, judges nothing."""

from __future__ import annotations

from typing import Any, cast

from experiments.checkup.cases import measured
from experiments.models import ConfigChange, ConfigEntry, Finding, HypothesisLink
from experiments.queries import Dossier, FindingFacts, HypothesisFacts, RunFacts
from experiments.reports.terms import predicted
from specdebug.diagnosis import record as plain
from specdebug.diagnosis import verdicts
from specdebug.diagnosis.facts import Measured


def record_of(found: Dossier) -> plain.Record:
    """The investigation as the library takes it for timeline, advice and post-mortem."""
    row = found.investigation
    signed = f"{row.exception_by}: {row.exception_reason}" if row.exception_reason else ""
    return plain.Record(
        title=row.title,
        question=row.question,
        goal=verdicts.Goal(row.goal_metric, cast("Any", row.goal_kind), row.goal_value),
        runs=tuple(_run(found, facts) for facts in found.runs),
        hypotheses=tuple(_hypothesis(facts) for facts in found.hypotheses),
        findings=tuple(
            _finding(facts)
            for facts in found.findings
            if facts.finding.state != Finding.State.WITHDRAWN
        ),
        notes=tuple(
            plain.NoteRow(
                kind=event.kind,
                title=event.title,
                order=event.position,
                text=event.text,
                run=event.run.label if event.run else None,
                hypothesis=event.hypothesis.label if event.hypothesis else None,
                at=event.at,
                author=event.author,
            )
            for event in found.events
        ),
        state=row.state,
        context=row.context,
        exception=signed,
        people=_people(found),
        opened_at=row.created_at,
        closed_at=row.closed_at,
    )


def _people(found: Dossier) -> tuple[str, ...]:
    """Everyone with a hand in it, in the order of their first appearance."""
    opened_by = found.investigation.created_by
    names = [opened_by.get_username() if opened_by else ""]
    names += [h.hypothesis.author for h in found.hypotheses]
    names += [v.decided_by for h in found.hypotheses for v in h.verdicts]
    names += [event.author for event in found.events]
    names += [turn.by for f in found.findings for turn in f.events]
    names += [row.added_by for row in found.evidence if row.added_by != "worker"]
    names.append(found.investigation.exception_by)
    return tuple(dict.fromkeys(name for name in names if name))


def _run(found: Dossier, facts: RunFacts) -> plain.RunRow:
    row = facts.run
    figures = measured(facts, asked=True) if facts.measured else Measured(row.label, row.label)
    hypothesis = row.hypothesis
    return plain.RunRow(
        label=row.label,
        title=row.title,
        order=row.position,
        figures=figures,
        at=row.ended_at or row.at,
        is_baseline=facts.is_baseline,
        follows=row.follows.label if row.follows else None,
        hypothesis=hypothesis.label if hypothesis else None,
        state=row.state,
        reason=row.reason,
        note=row.note,
        requested={k: e.requested for k, e in facts.config.items() if e.was_requested},
        effective={k: e.effective for k, e in facts.config.items() if e.effective_known},
        changes=tuple(
            plain.ChangeRow(c.key, _before(c), c.after, c.kind, c.note) for c in facts.changes
        ),
        settings=tuple(_setting(entry) for entry in facts.config.values()),
        shown=tuple(sorted({one["code"] for one in row.shown})) if row.checked_at else (),
        untried={one["code"]: one["missing"] for one in row.untried} if row.checked_at else {},
        recorded=row.recorded,
    )


def _setting(entry: ConfigEntry) -> plain.SettingRow:
    return plain.SettingRow(
        key=entry.key,
        asked=entry.requested,
        was_asked=entry.was_requested,
        in_force=entry.effective,
        known=entry.effective_known,
        origin=entry.origin,
        why=entry.why,
        line=entry.line,
    )


def _before(change: ConfigChange) -> Any:
    """What stood there before, in words where nothing did."""
    if change.before is None and change.kind != ConfigChange.Kind.PATCH:
        return "not set"
    return change.before


def _hypothesis(facts: HypothesisFacts) -> plain.HypothesisRow:
    row, verdict = facts.hypothesis, facts.verdict

    def linked(kind: str) -> tuple[str, ...]:
        return tuple(link.other.label for link in facts.links if link.kind == kind)

    applied, outcome = None, None
    if verdict is not None:
        applied = verdicts.AppliedVerdict(cast("Any", verdict.applied), verdict.applied_reason)
        outcome = verdicts.PredictionVerdict(cast("Any", verdict.outcome), verdict.outcome_reason)
    return plain.HypothesisRow(
        label=row.label,
        claim=row.claim,
        order=row.position,
        mechanism=row.mechanism,
        prediction=predicted(facts.prediction),
        applied=applied,
        outcome=outcome,
        run=verdict.run.label if verdict else None,
        rules_out=linked(HypothesisLink.Kind.RULES_OUT),
        follows_from=linked(HypothesisLink.Kind.FOLLOWS_FROM),
        replaces=linked(HypothesisLink.Kind.REPLACES),
        at=row.at,
        author=row.author,
        registered=_registered(facts),
    )


def _registered(facts: HypothesisFacts) -> str:
    """When its prediction was made, in words; empty without one."""
    prediction = facts.prediction
    if prediction is None:
        return ""
    if facts.hypothesis.recorded:
        return "entered afterwards, from a write-up"
    if prediction.frozen_at is None:
        return "registered, no run has been started"
    version = f"version {prediction.version}, " if prediction.version > 1 else ""
    return f"{version}registered {prediction.registered_at:%Y-%m-%d %H:%M} UTC, before its run"


def _finding(facts: FindingFacts) -> plain.FindingRow:
    row = facts.finding
    reason = f"{row.set_aside_by}: {row.set_aside_reason}" if row.set_aside_reason else ""
    return plain.FindingRow(
        code=row.code,
        severity=row.severity,
        confidence=row.confidence,
        statement=row.statement,
        state=row.state,
        opened_in=row.opened_in.label if row.opened_in else None,
        fixed_in=row.fixed_in.label if row.fixed_in else None,
        fix=row.fix,
        settled_by=row.settled_by,
        set_aside_reason=reason,
        evidence=tuple(
            plain.QuoteRow(str(q.get("source", "")), q.get("line"), str(q.get("text", "")))
            for q in row.evidence
        ),
        turns=tuple(
            plain.TurnRow(
                turn.kind, turn.run.label if turn.run else None, turn.by, turn.at, turn.statement
            )
            for turn in facts.events
        ),
    )
