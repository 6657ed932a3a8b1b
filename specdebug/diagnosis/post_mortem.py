"""The frozen post-mortem of an investigation and its pure builder: rows and figures in, text out.

It is the one source of the page, the PDF, the Markdown and the JSON; it draws nothing and reads no
database.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from specdebug.diagnosis.account import Gap, draft_runs, gaps_of
from specdebug.diagnosis.advice import Advice, advise
from specdebug.diagnosis.causes import (
    Bug,
    RuleFired,
    RuleUntried,
    bugs,
    rules_fired,
    rules_untried,
)
from specdebug.diagnosis.definitions import DEFINITIONS
from specdebug.diagnosis.facts import Case, case_from_rows
from specdebug.diagnosis.figures import base_step_ms, baseline, speculative_runs
from specdebug.diagnosis.findings import severity_rank
from specdebug.diagnosis.gap import RunGap, run_gap
from specdebug.diagnosis.insights import Insight, insights
from specdebug.diagnosis.record import HypothesisRow, NoteRow, Record, RunRow, SettingRow
from specdebug.diagnosis.replication import replication
from specdebug.diagnosis.summary import Sentence, five_sentences, metric_value
from specdebug.diagnosis.timeline import Regression, TimelineEntry, regressions, steps
from specdebug.diagnosis.verdicts import (
    ASSUMED_CV,
    GoalStatus,
    OpenFinding,
    Undecided,
    closing_obstacles,
    goal_status,
    with_latest,
)
from specdebug.eagle.speedup import break_even_accept_len, ceiling_tok_s

__all__ = ["DEFINITIONS", "PostMortem", "RunFigures", "build_post_mortem", "investigation_case"]

FAULTS = ("critical", "high")


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One row of the table of runs. Asked and effective are (num_steps, topk, draft tokens).

    values: tok/s of each repeat; sd: their sample standard deviation, None below two.
    """

    label: str
    title: str
    state: str
    reason: str
    note: str
    recorded: bool
    baseline: bool
    asked: tuple[Any, Any, Any]
    effective: tuple[Any, Any, Any]
    changes: tuple[str, ...]
    tok_s: float | None
    sd: float | None
    n: int
    values: tuple[float, ...]
    accept_len: float | None
    step_ms: float | None
    break_even: float | None
    ceiling_tok_s: float | None
    change_percent: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class RunSettings:
    """A run's arguments that are not simply as asked: overridden or changed.

    rest: how many others there are, asked for and in force alike or chosen by the release.
    """

    run: str
    shown: tuple[SettingRow, ...]
    rest: int


@dataclass(frozen=True, slots=True)
class Patch:
    """A change to the engine's source that a run was measured with."""

    run: str
    file: str
    change: str
    note: str


@dataclass(frozen=True, slots=True)
class PostMortem:
    """Everything a report shows, frozen. `as_dict` gives it as JSON-ready objects.

    steps: the timeline's entries, findings of one run together. best: label of the best draft run.
    """

    title: str
    question: str
    state: str
    exception: str
    context: str
    people: tuple[str, ...]
    opened_at: datetime | None
    closed_at: datetime | None
    goal: GoalStatus
    metric: str
    baseline: str | None
    best: str | None
    obstacles: tuple[str, ...]
    summary: tuple[Sentence, ...]
    steps: tuple[TimelineEntry, ...]
    hypotheses: tuple[HypothesisRow, ...]
    beliefs: tuple[NoteRow, ...]
    bugs: tuple[Bug, ...]
    runs: tuple[RunFigures, ...]
    regressions: tuple[Regression, ...]
    gaps: tuple[RunGap, ...]
    insights: tuple[Insight, ...]
    advice: tuple[Advice, ...]
    settings: tuple[RunSettings, ...]
    patches: tuple[Patch, ...]
    fired: tuple[RuleFired, ...]
    untried: tuple[RuleUntried, ...]
    definitions: tuple[tuple[str, str], ...] = DEFINITIONS
    appendix: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def root_causes(self) -> tuple[Bug, ...]:
        """Critical and high findings that are causes, open or fixed."""
        return tuple(
            b
            for b in self.bugs
            if b.cause and b.severity in FAULTS and b.state in ("open", "fixed")
        )

    @property
    def open_bugs(self) -> tuple[Bug, ...]:
        """What is open, causes first."""
        return tuple(b for b in self.bugs if b.state == "open")

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
    gaps: Sequence[Gap] | None = None,
) -> PostMortem:
    """Build the report of an investigation from its rows. Pure: equal input, equal report.

    gaps: the accounts of its runs, where the caller knows which belong together; else those of the
    runs at the load of the main one.
    """
    case = investigation_case(record, base)
    best = _best(record)
    base_run = record.baseline
    plain = _middle(base_run) if base_run else None
    status = goal_status(record.goal, _metric(record, best), _baseline_metric(record, plain))
    latest = _latest(record)
    if latest is not None and best is not None and latest.label != best.label:
        status = with_latest(status, latest.label, metric_value(record, latest))
    live = [f for f in record.findings if f.state == "open"]
    codes = [f.code for f in live]
    compared = regressions(record, assumed_cv)
    known = bugs(record)
    ordered = sorted(record.runs, key=lambda r: r.order)
    return PostMortem(
        title=record.title,
        question=record.question,
        state=record.state,
        exception=record.exception,
        context=record.context,
        people=record.people,
        opened_at=record.opened_at,
        closed_at=record.closed_at,
        goal=status,
        metric=record.goal.metric,
        baseline=base_run.label if base_run else None,
        best=best.label if best else None,
        obstacles=closing_obstacles(
            status,
            [
                OpenFinding(f.code, f.severity, f.statement)
                for f in sorted(live, key=lambda f: severity_rank(cast("Any", f.severity)))
            ],
            [u for h in record.hypotheses if (u := _undecided(h)) is not None],
        ),
        summary=five_sentences(record, status, best, known, compared, latest),
        steps=steps(record, assumed_cv),
        hypotheses=tuple(sorted(record.hypotheses, key=lambda h: h.order)),
        beliefs=tuple(n for n in sorted(record.notes, key=_order) if n.kind == "belief"),
        bugs=known,
        runs=tuple(_figures(r, record, case, compared) for r in ordered),
        regressions=compared,
        gaps=tuple(map(run_gap, gaps_of(draft_runs(case)) if gaps is None else gaps)),
        insights=(*insights(case), *replication(record, compared, assumed_cv)),
        advice=advise(case, codes),
        settings=tuple(s for r in ordered if (s := _settings(r)) is not None),
        patches=tuple(
            Patch(r.label, c.key, "" if c.after is None else str(c.after), c.note)
            for r in ordered
            for c in r.changes
            if c.kind == "patch"
        ),
        fired=rules_fired(record),
        untried=rules_untried(record),
        appendix=dict(appendix or {}),
    )


def _order(note: NoteRow) -> float:
    return note.order


def _settings(run: RunRow) -> RunSettings | None:
    """None for a run of which no argument is known."""
    if not run.settings:
        return None
    changed = {c.key for c in run.changes}
    shown = tuple(
        s for s in run.settings if s.differs or s.origin == "override" or s.key in changed
    )
    return RunSettings(run.label, shown, len(run.settings) - len(shown))


def _middle(run: RunRow | None) -> float | None:
    if run is None or not run.figures.tok_s:
        return None
    return statistics.fmean(run.figures.tok_s)


def _best(record: Record) -> RunRow | None:
    """The best measured run with a draft, by the goal's metric."""
    base = record.baseline
    rows = [
        (value, run)
        for run in record.runs
        if (base is None or run.label != base.label)
        and run.figures.speculative is not False
        and (value := metric_value(record, run)) is not None
    ]
    if not rows:
        return None
    sign = -1.0 if record.goal.kind == "at-most" else 1.0
    return max(rows, key=lambda pair: sign * pair[0])[1]


def _latest(record: Record) -> RunRow | None:
    """The last run in the story that the goal can be held against."""
    rows = [
        run
        for run in sorted(record.runs, key=lambda r: r.order)
        if not run.is_baseline
        and run.figures.speculative is not False
        and metric_value(record, run) is not None
    ]
    return rows[-1] if rows else None


def _undecided(row: HypothesisRow) -> Undecided | None:
    if not row.prediction or (row.outcome is not None and row.outcome.outcome != "undecided"):
        return None
    return Undecided(row.label, row.run or "", row.outcome.reason if row.outcome else "")


def _metric(record: Record, best: RunRow | None) -> float | None:
    return metric_value(record, best) if best is not None else None


def _baseline_metric(record: Record, plain: float | None) -> float | None:
    base = record.baseline
    if base is None:
        return None
    return plain if record.goal.metric == "tok_s" else metric_value(record, base)


_SPEC = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def _figures(
    row: RunRow, record: Record, case: Case, compared: tuple[Regression, ...]
) -> RunFigures:
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
        reason=row.reason,
        note=row.note,
        recorded=row.recorded,
        baseline=record.baseline is not None and record.baseline.label == row.label,
        asked=(asked[0], asked[1], asked[2]),
        effective=(effective[0], effective[1], effective[2]),
        changes=tuple(str(c) for c in row.changes),
        tok_s=_middle(row),
        sd=statistics.stdev(row.figures.tok_s) if len(row.figures.tok_s) > 1 else None,
        n=len(row.figures.tok_s),
        values=row.figures.tok_s,
        accept_len=row.figures.accept_len,
        step_ms=spec_step,
        break_even=needed,
        ceiling_tok_s=top,
        change_percent=mine.change_percent if mine else None,
        verdict=mine.verdict if mine else "",
    )
