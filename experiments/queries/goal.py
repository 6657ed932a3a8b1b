"""How far an investigation is from its goal, and what keeps it from being resolved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from experiments.models import Finding, Investigation, Verdict
from experiments.queries.comparable import not_comparable
from experiments.queries.dossier import Dossier, HypothesisFacts, RunFacts, dossier
from specdebug.diagnosis import verdicts

UNITS = {"tok_s": "tok/s", "accept_len": "tokens/step", "step_ms": "ms"}


@dataclass(frozen=True)
class Goal:
    """The goal against the best run, all in the metric's unit.

    target: the figure to reach, None while the baseline is unknown. ratio: best over target. gap:
    what is missing to the target, above zero while unmet. met: None while a side is unknown.
    latest: the newest measured run with a draft, where it is not the best; latest_ratio: its value
    over the target.
    """

    metric: str
    unit: str
    kind: str
    target: float | None
    baseline: RunFacts | None
    best: RunFacts | None
    best_value: float | None
    ratio: float | None
    gap: float | None
    met: bool | None
    sentence: str
    latest: RunFacts | None = None
    latest_value: float | None = None
    latest_ratio: float | None = None


def goal_of(investigation: Investigation, runs: Iterable[RunFacts]) -> Goal:
    """The goal against the best measured run that may be compared with the baseline."""
    metric, kind = investigation.goal_metric, investigation.goal_kind
    rows = list(runs)
    baseline = next((r for r in rows if r.is_baseline), None)
    lower_is_better = kind == Investigation.Goal.AT_MOST
    measured = [
        (value, row)
        for row in rows
        if not row.is_baseline
        and row.measured
        and row.speculative is not False
        and (value := row.figures.metric(metric)) is not None
    ]
    compared, why_not = _comparable(measured, baseline)
    best_value: float | None = None
    best: RunFacts | None = None
    if compared:
        pick = min if lower_is_better else max
        best_value, best = pick(compared, key=lambda pair: pair[0])
    base = baseline.figures.metric(metric) if baseline and baseline.measured else None
    status = verdicts.goal_status(
        verdicts.Goal(metric, cast("Any", kind), investigation.goal_value),
        best_value,
        base,
    )
    if why_not and not compared:
        status = replace(status, sentence=f"The goal cannot be judged: {why_not}.")
    latest_value, latest = compared[-1] if compared else (None, None)
    if latest is best:
        latest_value, latest = None, None
    latest_ratio = latest_value / status.target if latest_value and status.target else None
    if latest is not None:
        status = verdicts.with_latest(status, latest.run.label, latest_value)
    missing = None
    if status.gap is not None:
        missing = status.gap if lower_is_better else -status.gap
    return Goal(
        metric=metric,
        unit=UNITS.get(metric, ""),
        kind=kind,
        target=status.target,
        baseline=baseline,
        best=best,
        best_value=best_value,
        ratio=status.ratio,
        gap=missing,
        met=status.met,
        sentence=status.sentence,
        latest=latest,
        latest_value=latest_value,
        latest_ratio=latest_ratio,
    )


def _comparable(
    measured: Sequence[tuple[float, RunFacts]], baseline: RunFacts | None
) -> tuple[list[tuple[float, RunFacts]], str]:
    """Those that may be set against the baseline, and what speaks against the last other one."""
    found, why_not = [], ""
    for value, row in measured:
        reason = None if baseline is None else not_comparable(row, baseline)
        if reason is None:
            found.append((value, row))
        else:
            why_not = reason
    return found, why_not


def _undecided(facts: HypothesisFacts) -> bool:
    if not facts.predictions:
        return False
    verdict = facts.verdict
    return verdict is None or verdict.outcome == Verdict.Outcome.UNDECIDED


def _undecided_of(facts: HypothesisFacts) -> verdicts.Undecided:
    label, verdict = facts.hypothesis.label, facts.verdict
    if verdict is None:
        return verdicts.Undecided(label)
    return verdicts.Undecided(label, verdict.run.label, verdict.outcome_reason)


def obstacles_in(found: Dossier) -> tuple[str, ...]:
    """What stands in the way of calling the investigation resolved, a sentence each."""
    goal = goal_of(found.investigation, found.runs)
    left = [] if goal.met else [goal.sentence]
    left += [_undecided_of(facts).sentence for facts in found.hypotheses if _undecided(facts)]
    grave = (Finding.Severity.CRITICAL, Finding.Severity.HIGH)
    left += [
        f"{facts.finding.code} ({facts.finding.severity}) is open."
        for facts in found.findings
        if facts.finding.state == Finding.State.OPEN and facts.finding.severity in grave
    ]
    return tuple(left)


def closing_obstacles(investigation: Investigation) -> tuple[str, ...]:
    """The same for an investigation that is not loaded yet."""
    return obstacles_in(dossier(investigation))
