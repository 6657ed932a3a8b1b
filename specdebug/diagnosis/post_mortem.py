"""The frozen post-mortem of an investigation and its pure builder: rows and figures in, text out.

It is the one source of the page, the PDF and the JSON; it draws nothing and reads no database.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from specdebug.diagnosis.advice import Advice, advise
from specdebug.diagnosis.facts import Case, case_from_rows
from specdebug.diagnosis.figures import base_step_ms, baseline, cost, speculative_runs
from specdebug.diagnosis.findings import SEVERITIES
from specdebug.diagnosis.insights import Insight, insights
from specdebug.diagnosis.record import FindingRow, HypothesisRow, Record, RunRow
from specdebug.diagnosis.timeline import Regression, TimelineEntry, regressions, timeline
from specdebug.diagnosis.verdicts import (
    ASSUMED_CV,
    GoalStatus,
    OpenFinding,
    closing_obstacles,
    goal_status,
)
from specdebug.eagle.speedup import (
    GapAccount,
    break_even_accept_len,
    ceiling_tok_s,
    gap_account,
)

__all__ = ["DEFINITIONS", "PostMortem", "RunFigures", "build_post_mortem", "investigation_case"]

DEFINITIONS: tuple[tuple[str, str], ...] = (
    ("accept length", "tokens a verification yields, bonus token included; 1.00 accepts no draft"),
    ("step time", "1000 x accept length x running requests / throughput, in ms"),
    ("break-even accept length", "step time / plain step time: where speculation draws level"),
    ("ceiling", "(num_steps + 1) tokens per step time: a perfect draft"),
    ("window", "tokens verified in one step, num_steps + 1 for a chain"),
    ("accept rate", "differs by release and source; never compared here"),
    (
        "gap account",
        "tok/s from baseline to measured: acceptance, then the loss shared by added ms",
    ),
    ("unreplicated", "a single figure; judged with an assumed run-to-run spread, which is named"),
)

FAULTS = ("critical", "high")


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One row of the table of runs. Asked and effective are (num_steps, topk, draft tokens)."""

    label: str
    title: str
    state: str
    asked: tuple[Any, Any, Any]
    effective: tuple[Any, Any, Any]
    changes: tuple[str, ...]
    tok_s: float | None
    n: int
    accept_len: float | None
    step_ms: float | None
    break_even: float | None
    ceiling_tok_s: float | None
    change_percent: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class RootCause:
    """A finding as a cause: what it is, whether it is fixed and verified, and where."""

    code: str
    severity: str
    confidence: str
    statement: str
    state: str
    fixed_in: str | None
    fix: str


@dataclass(frozen=True, slots=True)
class RunGap:
    """The gap account of one run."""

    run: str
    account: GapAccount


@dataclass(frozen=True, slots=True)
class PostMortem:
    """Everything a report shows, frozen. `as_dict` gives it as JSON-ready objects."""

    title: str
    question: str
    state: str
    exception: str
    context: str
    goal: GoalStatus
    obstacles: tuple[str, ...]
    summary: tuple[str, ...]
    timeline: tuple[TimelineEntry, ...]
    hypotheses: tuple[HypothesisRow, ...]
    root_causes: tuple[RootCause, ...]
    runs: tuple[RunFigures, ...]
    regressions: tuple[Regression, ...]
    open_bugs: tuple[FindingRow, ...]
    gaps: tuple[RunGap, ...]
    insights: tuple[Insight, ...]
    advice: tuple[Advice, ...]
    definitions: tuple[tuple[str, str], ...] = DEFINITIONS
    appendix: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, strings and numbers; times in ISO form."""
        plain = _plain(dataclasses.asdict(self))
        assert isinstance(plain, dict)  # noqa: S101
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    return value


def investigation_case(record: Record, base: Case | None = None) -> Case:
    """All measured runs of a record as one Case; base: what is known beside the runs.

    base brings configs, training notes and the release. Its own measured rows and logs are left
    out, because the record's figures are the ones the report is about.
    """
    first = record.baseline
    ordered = sorted(record.runs, key=lambda r: r.order)
    rows = [
        replace(
            r.figures,
            label=r.label,
            changes=r.figures.changes or tuple(str(c) for c in r.changes if c.kind != "argument"),
        )
        for r in ordered
        if r.figures.tok_s or r.figures.accept_len is not None
    ]
    if first is not None:
        rows.sort(key=lambda m: m.label != first.label)
    kept = replace(base, measured=(), boots=(), baseline_tok_s=None) if base else None
    return case_from_rows(base=kept, runs=rows)


def build_post_mortem(
    record: Record,
    base: Case | None = None,
    *,
    assumed_cv: float = ASSUMED_CV,
    appendix: Mapping[str, Any] | None = None,
) -> PostMortem:
    """Build the report of an investigation from its rows. Pure: equal input, equal report."""
    case = investigation_case(record, base)
    best = _best(record)
    base_run = record.baseline
    plain = _middle(base_run) if base_run else None
    status = goal_status(record.goal, _metric(record, best), _baseline_metric(record, plain))
    live = [f for f in record.findings if f.state == "open"]
    codes = [f.code for f in live]
    compared = regressions(record, assumed_cv)
    causes = tuple(_cause(f) for f in _by_severity(record.findings) if f.state in ("open", "fixed"))
    points = insights(case)
    advice = advise(case, codes)
    return PostMortem(
        title=record.title,
        question=record.question,
        state=record.state,
        exception=record.exception,
        context=record.context,
        goal=status,
        obstacles=closing_obstacles(
            status, [OpenFinding(f.code, f.severity, f.statement) for f in live]
        ),
        summary=_summary(record, status, best, live, compared, advice),
        timeline=timeline(record, assumed_cv),
        hypotheses=tuple(sorted(record.hypotheses, key=lambda h: h.order)),
        root_causes=tuple(c for c in causes if c.severity in FAULTS),
        runs=tuple(_figures(r, case, compared) for r in sorted(record.runs, key=lambda r: r.order)),
        regressions=compared,
        open_bugs=tuple(f for f in _by_severity(live) if f.severity != "info"),
        gaps=_gaps(case),
        insights=(*points, *_replication(record, compared, assumed_cv)),
        advice=advice,
        appendix=dict(appendix or {}),
    )


def _middle(run: RunRow | None) -> float | None:
    if run is None or not run.figures.tok_s:
        return None
    return statistics.fmean(run.figures.tok_s)


def _best(record: Record) -> RunRow | None:
    """The best measured run that is not the baseline, by the goal's metric."""
    base = record.baseline
    others = [r for r in record.runs if base is None or r.label != base.label]
    rows = [r for r in others if _value(record, r) is not None]
    if not rows:
        return None
    sign = -1.0 if record.goal.kind == "at-most" else 1.0
    return max(rows, key=lambda r: sign * (_value(record, r) or 0.0))


def _value(record: Record, run: RunRow) -> float | None:
    if record.goal.metric == "accept_len":
        return run.figures.accept_len
    if record.goal.metric == "step_ms":
        return run.figures.step_ms
    return _middle(run)


def _metric(record: Record, best: RunRow | None) -> float | None:
    return _value(record, best) if best is not None else None


def _baseline_metric(record: Record, plain: float | None) -> float | None:
    base = record.baseline
    if base is None:
        return None
    return plain if record.goal.metric == "tok_s" else _value(record, base)


def _by_severity(findings: tuple[FindingRow, ...] | list[FindingRow]) -> list[FindingRow]:
    ranks: dict[str, int] = {s: i for i, s in enumerate(SEVERITIES)}
    return sorted(findings, key=lambda f: ranks.get(f.severity, len(ranks)))


def _cause(row: FindingRow) -> RootCause:
    return RootCause(
        row.code, row.severity, row.confidence, row.statement, row.state, row.fixed_in, row.fix
    )


_SPEC = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def _figures(row: RunRow, case: Case, compared: tuple[Regression, ...]) -> RunFigures:
    run = next((r for r in speculative_runs(case) if r.label == row.label), None)
    base = baseline(case)
    needed = top = None
    if run is not None and run.step_ms is not None:
        plain = base_step_ms(base, run) if base is not None else None
        needed = break_even_accept_len(run.step_ms, plain) if plain else None
        top = ceiling_tok_s(run.window, run.step_ms, run.running) if run.window else None
    base_label = base.label if base is not None else None
    mine = next((c for c in compared if c.run == row.label and c.against == base_label), None)
    asked = tuple(row.requested.get(k) for k in _SPEC)
    effective = tuple(row.effective.get(k) for k in _SPEC)
    spec_step = run.step_ms if run is not None else None
    if run is None and base is not None and base.label == row.label:
        spec_step = base.step_ms
    return RunFigures(
        label=row.label,
        title=row.title,
        state=row.state,
        asked=(asked[0], asked[1], asked[2]),
        effective=(effective[0], effective[1], effective[2]),
        changes=tuple(str(c) for c in row.changes),
        tok_s=_middle(row),
        n=len(row.figures.tok_s),
        accept_len=row.figures.accept_len,
        step_ms=spec_step,
        break_even=needed,
        ceiling_tok_s=top,
        change_percent=mine.change_percent if mine else None,
        verdict=mine.verdict if mine else "",
    )


def _gaps(case: Case) -> tuple[RunGap, ...]:
    base, line = baseline(case), cost(case)
    if base is None or base.tok_s is None:
        return ()
    out: list[RunGap] = []
    for run in speculative_runs(case):
        if run.tok_s is None or run.accept_len is None or not run.num_steps:
            continue
        account = gap_account(
            base.tok_s,
            run.tok_s,
            run.accept_len,
            run.num_steps,
            ms_per_draft_step=line.slope_ms if line else None,
            running=run.running,
        )
        out.append(RunGap(run.label, account))
    return tuple(out)


def _replication(
    record: Record, compared: tuple[Regression, ...], assumed_cv: float
) -> tuple[Insight, ...]:
    """Which comparisons stand although figures are single, and the regressions among all."""
    single = [c for c in compared if c.unreplicated]
    out: list[Insight] = []
    pairs = list(compared)
    spec = [
        r
        for r in sorted(record.runs, key=lambda r: r.order)
        if r.figures.speculative is not False and r.figures.tok_s
    ]
    if len(spec) > 2:
        extra = replace(record, runs=(spec[0], replace(spec[-1], follows=spec[0].label)))
        known = {(c.run, c.against) for c in pairs}
        added = [c for c in regressions(extra, assumed_cv) if (c.run, c.against) not in known]
        pairs += added
        single += [c for c in added if c.unreplicated]
    if single:
        said = "; ".join(
            f"{c.run} against {c.against} {c.change_percent:+.1f} %: {c.verdict}" for c in single
        )
        out.append(
            Insight(
                "replication",
                "What single figures can carry",
                f"Figures are unreplicated. With a run-to-run spread of {100 * assumed_cv:.0f} % "
                f"taken for granted: {said}.",
            )
        )
    flagged = [c for c in pairs if c.flagged]
    if flagged:
        said = "; ".join(
            f"{c.run} against {c.against} {c.change_percent:+.1f} % ({c.cause})" for c in flagged
        )
        out.append(Insight("regressions", "Regressions", said + "."))
    return tuple(out)


def _summary(
    record: Record,
    status: GoalStatus,
    best: RunRow | None,
    live: list[FindingRow],
    compared: tuple[Regression, ...],
    advice: tuple[Advice, ...],
) -> tuple[str, ...]:
    said = [status.sentence]
    base = record.baseline
    if best is not None and base is not None and status.met is False:
        said.append(
            f"Best so far is {best.label} ({best.title}), {_middle(best) or 0:.4g} against "
            f"{_middle(base) or 0:.4g} tok/s of {base.label}."
        )
    fixed = [f for f in record.findings if f.state == "fixed"]
    if fixed:
        said.append(
            "Fixed and verified: "
            + ", ".join(f"{f.code}" + (f" in {f.fixed_in}" if f.fixed_in else "") for f in fixed)
            + (". A verified fix is not a met goal." if status.met is not True else ".")
        )
    refuted = [h for h in record.hypotheses if h.outcome and h.outcome.outcome == "refuted"]
    if refuted:
        said.append("Refuted: " + "; ".join(f"{h.label} ({h.claim})" for h in refuted) + ".")
    serious = [f.code for f in _by_severity(live) if f.severity in FAULTS]
    if serious:
        said.append("Open: " + ", ".join(serious) + ".")
    lost = [c for c in compared if c.flagged]
    if lost:
        said.append(f"{len(lost)} comparisons are regressions.")
    if advice:
        said.append(f"Next: {advice[0].action[0].lower()}{advice[0].action[1:]}.")
    return tuple(said)
