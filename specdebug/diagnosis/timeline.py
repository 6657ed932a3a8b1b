"""An investigation's rows in order: what happened, what it showed, what it ruled out.

Regressions are flagged and classified here; pages decide how it looks.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from specdebug.diagnosis.causes import by_severity, title_of
from specdebug.diagnosis.record import FindingRow, HypothesisRow, NoteRow, Record, RunRow
from specdebug.diagnosis.verdicts import ASSUMED_CV
from specdebug.measure.compare import Comparison, Split, compare, split_throughput

__all__ = [
    "Regression",
    "TimelineEntry",
    "compare_runs",
    "regressions",
    "split_runs",
    "steps",
    "timeline",
]

Cause = Literal["acceptance", "cost", "acceptance and cost", "unknown"]


@dataclass(frozen=True, slots=True)
class Regression:
    """One comparison of two runs. cause: which part lost, "unknown" without both accept lengths.

    flagged: the verdict is a regression. change_percent: of the throughput; low_percent and
    high_percent: its interval, None where the figures give none. rests_on: the interval's level and
    how it was made. figures: how many of `against`, how many of `run`. acceptance_percent and
    step_time_percent: change of the accept length and of the step, None where blind names the run
    without an accept length. sentence: all of it in words.
    """

    run: str
    against: str
    change_percent: float
    low_percent: float | None
    high_percent: float | None
    verdict: str
    rests_on: str
    figures: tuple[int, int]
    acceptance_percent: float | None
    step_time_percent: float | None
    blind: str
    cause: Cause
    sentence: str
    flagged: bool
    unreplicated: bool


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One step. kind: run, hypothesis, finding, or the note's own kind; ref: its label or code."""

    kind: str
    ref: str
    order: float
    at: datetime | None
    happened: str
    showed: str = ""
    ruled_out: str = ""
    regressions: tuple[Regression, ...] = ()


def timeline(record: Record, assumed_cv: float = ASSUMED_CV) -> tuple[TimelineEntry, ...]:
    """Every row as an entry, by order; a finding without a place follows the run that opened it."""
    compared = regressions(record, assumed_cv)
    entries = [_run(record, r, compared) for r in record.runs]
    entries += [_hypothesis(h) for h in record.hypotheses]
    entries += [_note(n) for n in record.notes]
    entries += [_finding(record, f) for f in record.findings]
    return tuple(sorted(entries, key=lambda e: e.order))


def steps(record: Record, assumed_cv: float = ASSUMED_CV) -> tuple[TimelineEntry, ...]:
    """The timeline for reading: what a run brought to light, and what it showed to be fixed, as one
    entry each behind the run. The entries of findings have the run's label as their ref."""
    others = [e for e in timeline(record, assumed_cv) if e.kind != "finding"]
    grouped = [e for run in record.runs for e in _found_by(record, run)]
    loose = [f for f in record.findings if record.run(f.opened_in) is None]
    if loose:
        grouped.append(_group("finding", "", -math.inf, "Found in the files", loose))
    return tuple(sorted([*others, *grouped], key=lambda e: e.order))


def _found_by(record: Record, run: RunRow) -> list[TimelineEntry]:
    after = math.nextafter(run.order, math.inf)
    opened = [f for f in record.findings if f.opened_in == run.label]
    fixed = [f for f in record.findings if f.state == "fixed" and f.fixed_in == run.label]
    found = []
    if fixed:
        words = f"Fixed, verified in {run.label}"
        found.append(_group("fixed", run.label, after, words, fixed))
    if opened:
        later = math.nextafter(after, math.inf)
        found.append(_group("finding", run.label, later, f"Found in {run.label}", opened))
    return found


def _group(
    kind: str, ref: str, order: float, words: str, rows: Sequence[FindingRow]
) -> TimelineEntry:
    ordered = by_severity(rows)
    count = "one finding" if len(rows) == 1 else f"{len(rows)} findings"
    grave = [f for f in ordered if f.severity in ("critical", "high")]
    named = "; ".join(f"{title_of(f.code)} ({f.severity})" for f in grave)
    if len(grave) < len(ordered):
        less = len(ordered) - len(grave)
        named += f"{' and ' if named else ''}{less} of less weight"
    at = min((f.at for f in rows if f.at), default=None)
    return TimelineEntry(kind, ref, order, at, f"{words}: {count}", named)


def compare_runs(
    before: RunRow, after: RunRow, assumed_cv: float = ASSUMED_CV
) -> Comparison | None:
    """Throughput of two runs, None when one was not measured. Single figures use assumed_cv.

    How many repeats an inconclusive answer lacks is left to the advice: working it out imports
    statsmodels, seconds that a page should not wait for.
    """
    if not before.figures.tok_s or not after.figures.tok_s:
        return None
    few = min(len(before.figures.tok_s), len(after.figures.tok_s)) < 3
    return compare(
        before.figures.tok_s,
        after.figures.tok_s,
        pooled_cv=assumed_cv if few else None,
        say_repeats=False,
    )


def split_runs(before: RunRow, after: RunRow) -> Split | None:
    """Acceptance and step-time part of the change, None without both accept lengths."""
    lengths = _accept_len(before), _accept_len(after)
    if lengths[0] is None or lengths[1] is None:
        return None
    if not before.figures.tok_s or not after.figures.tok_s:
        return None
    tok_s = [statistics.fmean(r.figures.tok_s) for r in (before, after)]
    return split_throughput(tok_s[0], tok_s[1], lengths[0], lengths[1])


def _accept_len(run: RunRow) -> float | None:
    """What the run's steps accepted, 1 without a draft; None where it is not known."""
    return 1.0 if run.figures.speculative is False else run.figures.accept_len


def _cause(split: Split | None) -> Cause:
    if split is None:
        return "unknown"
    loss = -split.throughput
    if loss <= 0:
        return "unknown"
    by_acceptance = -split.acceptance > 0.2 * loss
    by_cost = split.step_time > 0.2 * loss
    if by_acceptance and by_cost:
        return "acceptance and cost"
    return "acceptance" if by_acceptance else "cost"


def regressions(record: Record, assumed_cv: float = ASSUMED_CV) -> tuple[Regression, ...]:
    """Each run against the baseline, the run it follows and the best draft run before it; flagged
    where it lost."""
    out: list[Regression] = []
    base = record.baseline
    measured = [r for r in sorted(record.runs, key=lambda r: r.order) if r.figures.tok_s]
    for run in measured:
        against: list[RunRow] = []
        for other in (base, record.run(run.follows), _best_draft_before(run, measured)):
            if other is not None and other.label != run.label and other not in against:
                against.append(other)
        for other in against:
            outcome = compare_runs(other, run, assumed_cv)
            if outcome is None:
                continue
            out.append(_regression(other, run, outcome))
    return tuple(out)


def _regression(before: RunRow, after: RunRow, outcome: Comparison) -> Regression:
    split = split_runs(before, after)
    blind = ""
    if split is None:
        blind = (after if _accept_len(after) is None else before).label
        part = f"Which part changed is not known: {blind} has no accept length"
    else:
        part = split.sentence[0].upper() + split.sentence[1:]
    return Regression(
        run=after.label,
        against=before.label,
        change_percent=outcome.change_percent,
        low_percent=None if outcome.low is None else 100 * (outcome.low - 1),
        high_percent=None if outcome.high is None else 100 * (outcome.high - 1),
        verdict=outcome.verdict,
        rests_on=f"{100 * outcome.level:.3g} % interval, {outcome.method}",
        figures=(outcome.n_before, outcome.n_after),
        acceptance_percent=None if split is None else 100 * math.expm1(split.acceptance),
        step_time_percent=None if split is None else 100 * math.expm1(split.step_time),
        blind=blind,
        cause=_cause(split),
        sentence=f"{after.label} against {before.label}: {outcome.sentence} {part}.",
        flagged=outcome.verdict == "regression",
        unreplicated=outcome.unreplicated,
    )


def _best_draft_before(run: RunRow, measured: Sequence[RunRow]) -> RunRow | None:
    """The fastest earlier run with a draft: better than the step before it is no progress yet."""
    earlier = [r for r in measured if r.order < run.order and r.figures.speculative]
    return max(earlier, key=lambda r: statistics.fmean(r.figures.tok_s), default=None)


def _figures(run: RunRow) -> str:
    said = []
    if run.figures.tok_s:
        mean = statistics.fmean(run.figures.tok_s)
        n = len(run.figures.tok_s)
        said.append(f"{mean:.4g} tok/s" + (" (one figure)" if n == 1 else f" (n={n})"))
    if run.figures.accept_len is not None:
        said.append(f"accept length {run.figures.accept_len:.2f}")
    elif run.figures.tok_s and run.figures.speculative is not False:
        said.append("no accept length recorded")
    return ", ".join(said)


def _run(record: Record, run: RunRow, compared: tuple[Regression, ...]) -> TimelineEntry:
    changes = "; ".join(str(c) for c in run.changes)
    mine = tuple(c for c in compared if c.run == run.label)
    if run.state in ("failed", "lost", "cancelled"):
        showed = f"{run.state}: {run.reason}" if run.reason else run.state
    else:
        against = "; ".join(
            f"{c.change_percent:+.1f} % against {c.against} ({c.verdict}"
            + (f", {c.cause}" if c.flagged else "")
            + ")"
            for c in mine
        )
        showed = ". ".join(p for p in (_figures(run), against) if p)
    ruled = [
        f"{h.label}: {h.claim}"
        for h in record.hypotheses
        if h.run == run.label and h.outcome is not None and h.outcome.outcome == "refuted"
    ]
    return TimelineEntry(
        "run",
        run.label,
        run.order,
        run.at,
        f"{run.label}: {run.title}" + (f" ({changes})" if changes else ""),
        showed,
        "; ".join(ruled),
        mine,
    )


def _hypothesis(row: HypothesisRow) -> TimelineEntry:
    showed = []
    if row.applied is not None:
        word = {"yes": "applied", "no": "not applied", "unknown": "not known whether applied"}
        showed.append(f"Change {word[row.applied.applied]}: {row.applied.reason}")
    if row.outcome is not None:
        showed.append(f"Prediction {row.outcome.outcome}: {row.outcome.reason}")
    return TimelineEntry(
        "hypothesis",
        row.label,
        row.order,
        row.at,
        f"{row.label}: {row.claim.rstrip('.')}."
        + (f" Predicted: {row.prediction}." if row.prediction else ""),
        " ".join(showed),
        ", ".join(row.rules_out),
    )


def _note(row: NoteRow) -> TimelineEntry:
    return TimelineEntry(
        row.kind, row.run or row.hypothesis or "", row.order, row.at, row.title, row.text
    )


def _finding(record: Record, row: FindingRow) -> TimelineEntry:
    order = row.order
    if order is None:
        run = record.run(row.opened_in)
        order = math.nextafter(run.order, math.inf) if run is not None else math.inf
    fixed = f" Fixed, verified in {row.fixed_in}." if row.state == "fixed" and row.fixed_in else ""
    return TimelineEntry(
        "finding",
        row.code,
        order,
        row.at,
        f"Found {row.code} ({row.severity})",
        row.statement + fixed,
    )
