"""How far an investigation is from its goal, and what keeps it from being resolved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.models import Finding, Investigation, Verdict
from experiments.queries.dossier import Dossier, HypothesisFacts, RunFacts, dossier

UNITS = {"tok_s": "tok/s", "accept_len": "tokens/step", "step_ms": "ms"}


@dataclass(frozen=True)
class Goal:
    """The goal against the best run, all in the metric's unit.

    target: the figure to reach, None while the baseline is unknown. ratio: best over target (over
    the baseline for beat-baseline). gap: what is missing to the target, above zero while unmet.
    met: None while either side is unknown.
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


def goal_of(investigation: Investigation, runs: Iterable[RunFacts]) -> Goal:
    """The goal against the best measured run that is not the baseline itself."""
    metric, kind = investigation.goal_metric, investigation.goal_kind
    unit = UNITS.get(metric, "")
    rows = list(runs)
    baseline = next((r for r in rows if r.is_baseline), None)
    lower_is_better = kind == Investigation.Goal.AT_MOST
    compared = [
        (value, row)
        for row in rows
        if not row.is_baseline
        and row.measured
        and row.speculative is not False
        and (value := row.figures.metric(metric)) is not None
    ]
    best_value: float | None = None
    best: RunFacts | None = None
    if compared:
        pick = min if lower_is_better else max
        best_value, best = pick(compared, key=lambda pair: pair[0])
    target: float | None = investigation.goal_value
    reference = target
    if kind == Investigation.Goal.BEAT_BASELINE:
        base = None
        if baseline is not None and baseline.measured:
            base = baseline.figures.metric(metric)
        reference = base
        target = None if base is None else base * investigation.goal_value
    if target is None or reference is None or best_value is None or best is None:
        return Goal(
            metric,
            unit,
            kind,
            target,
            baseline,
            best,
            best_value,
            None,
            None,
            None,
            "no baseline has been measured" if target is None else "no run has been measured yet",
        )
    met = best_value <= target if lower_is_better else best_value >= target
    gap = best_value - target if lower_is_better else target - best_value
    sentence = (
        f"{best.run.label} reaches {best_value:.4g} of {target:.4g} {unit}"
        f" ({best_value / reference:.2f} of {reference:.4g})"
        + ("" if met else f"; {gap:.3g} {unit} are missing")
    )
    return Goal(
        metric,
        unit,
        kind,
        target,
        baseline,
        best,
        best_value,
        best_value / reference,
        gap,
        met,
        sentence,
    )


def _undecided(facts: HypothesisFacts) -> bool:
    if not facts.predictions:
        return False
    verdict = facts.verdict
    return verdict is None or verdict.outcome == Verdict.Outcome.UNDECIDED


def obstacles_in(found: Dossier) -> tuple[str, ...]:
    """What stands in the way of calling the investigation resolved, a sentence each."""
    goal = goal_of(found.investigation, found.runs)
    left = []
    if goal.met is None:
        left.append(f"the goal cannot be judged: {goal.sentence}")
    elif not goal.met:
        left.append(f"the goal is not met: {goal.sentence}")
    left += [
        f"the prediction of {facts.hypothesis.label} is undecided"
        for facts in found.hypotheses
        if _undecided(facts)
    ]
    grave = (Finding.Severity.CRITICAL, Finding.Severity.HIGH)
    left += [
        f"{facts.finding.severity} finding {facts.finding.code} is open"
        for facts in found.findings
        if facts.finding.state == Finding.State.OPEN and facts.finding.severity in grave
    ]
    return tuple(left)


def closing_obstacles(investigation: Investigation) -> tuple[str, ...]:
    """The same for an investigation that is not loaded yet."""
    return obstacles_in(dossier(investigation))
