"""Keeps the findings' rows in step with their folded lives; people's triage is left alone."""

from __future__ import annotations

from collections import defaultdict

from experiments.checkup.life import Life, Sight, Turn, fold
from experiments.models import Finding, FindingEvent, Run
from experiments.queries import Dossier, FindingFacts, RunFacts

BY_RUNS = (
    FindingEvent.Kind.OPENED,
    FindingEvent.Kind.SEEN,
    FindingEvent.Kind.FIXED,
    FindingEvent.Kind.REOPENED,
)


def save_lives(found: Dossier) -> None:
    """Fold what all runs showed and write findings and their turns accordingly."""
    disbelieved: dict[str, set[int]] = defaultdict(set)
    for known in found.findings:
        for event in known.events:
            if event.kind == FindingEvent.Kind.REOPENED and event.by and event.run_id:
                disbelieved[known.finding.code].add(event.run_id)
    lives = fold(
        sights(found), disbelieved={code: frozenset(runs) for code, runs in disbelieved.items()}
    )
    rows = {known.finding.code: known for known in found.findings}
    for code, life in lives.items():
        _save(found, life, rows.get(code))
    for code, known in rows.items():
        if code not in lives:
            _withdraw(known)


def sights(found: Dossier) -> list[Sight]:
    """What the loose files and every checked run showed, in the order of the runs."""
    files = {f["code"]: f for f in found.investigation.shown}
    by_number = sorted(found.runs, key=lambda facts: facts.run.number)
    seen = [_sight(facts) for facts in by_number if facts.run.checked_at is not None]
    return [Sight(None, files), *seen]


def _sight(facts: RunFacts) -> Sight:
    run = facts.run
    return Sight(
        run=run.pk,
        shown={f["code"]: f for f in run.shown},
        untried=frozenset(u["code"] for u in run.untried),
        proves=run.state == Run.State.DONE and facts.figures.tok_s is not None,
        speculative=bool(facts.speculative),
    )


def _save(found: Dossier, life: Life, known: FindingFacts | None) -> None:
    finding = known.finding if known else Finding(investigation=found.investigation, code=life.code)
    finding.severity = life.latest["severity"]
    finding.confidence = life.latest["confidence"]
    finding.statement = life.latest["statement"]
    finding.fix = life.latest.get("fix", "")
    finding.settled_by = life.latest.get("settled_by", "")
    finding.evidence = life.latest.get("evidence", [])
    finding.opened_in_id = life.opened_in
    finding.seen_in_id = life.seen_in
    finding.fixed_in_id = life.fixed_in
    if finding.state != Finding.State.SET_ASIDE:
        finding.state = Finding.State(life.state)
    finding.save()
    _save_turns(finding, life, known.events if known else ())


def _save_turns(finding: Finding, life: Life, events: tuple[FindingEvent, ...]) -> None:
    wanted: dict[tuple[str, int | None], Turn] = {(t.kind, t.run): t for t in life.turns}
    for event in events:
        if event.by or event.kind not in BY_RUNS:
            continue
        turn = wanted.pop((event.kind, event.run_id), None)
        if turn is None:
            event.delete()
        elif event.statement != turn.statement:
            event.statement = turn.statement
            event.save(update_fields=["statement"])
    taken = {(event.kind, event.run_id) for event in events if event.by}
    for (kind, run), turn in wanted.items():
        if (kind, run) not in taken:
            FindingEvent.objects.create(
                finding=finding, kind=kind, run_id=run, statement=turn.statement
            )


def _withdraw(known: FindingFacts) -> None:
    """No run shows it any more, looked at with all there is now."""
    finding = known.finding
    if finding.state in (Finding.State.WITHDRAWN, Finding.State.SET_ASIDE):
        return
    finding.state = Finding.State.WITHDRAWN
    finding.save(update_fields=["state", "updated_at"])
    FindingEvent.objects.create(
        finding=finding,
        kind=FindingEvent.Kind.WITHDRAWN,
        statement="looked at again with all the evidence, no run shows it",
    )
