"""What becomes of a run's hypothesis: was its change applied, and did its prediction hold.

The library decides; here its questions are put together from rows, and its answers kept.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import sqrt
from pathlib import Path
from typing import IO, Any, cast

from django.db import transaction

from experiments import evidence, store
from experiments.checkup.alarm import drift_between
from experiments.checkup.cases import files_of
from experiments.checkup.look import captured_layers
from experiments.models import AppliedCheck, Evidence, Run, Verdict
from experiments.queries import Dossier, HypothesisFacts, RunFacts
from experiments.queries.comparable import not_comparable
from specdebug.diagnosis import verdicts
from specdebug.diagnosis.case import Case
from specdebug.measure import looks

# Long enough for any line that an engine prints; a longer one is looked at in pieces.
LONGEST_LINE = 1 << 16
REASON_LENGTH = 600


def judge(found: Dossier, facts: RunFacts, own: Case) -> None:
    """Write both verdicts of the run's hypothesis, unless they stand already or a person's does."""
    run = facts.run
    hypothesis = next((h for h in found.hypotheses if h.hypothesis.pk == run.hypothesis_id), None)
    if hypothesis is None:
        return
    applied = _applied(found, facts, hypothesis, own)
    outcome = _outcome(found, facts)
    values = {
        "prediction_id": run.prediction_id,
        "applied": applied.applied,
        "applied_reason": applied.reason[:REASON_LENGTH],
        "outcome": outcome.outcome,
        "outcome_reason": outcome.reason[:REASON_LENGTH],
    }
    with transaction.atomic():
        held = Verdict.objects.filter(hypothesis=hypothesis.hypothesis, run=run, in_force=True)
        standing = held.first()
        if standing is not None:
            if standing.decided_by or all(getattr(standing, k) == v for k, v in values.items()):
                return
            held.update(in_force=False)
        Verdict.objects.create(hypothesis=hypothesis.hypothesis, run=run, **values)


def _applied(
    found: Dossier, facts: RunFacts, hypothesis: HypothesisFacts, own: Case
) -> verdicts.AppliedVerdict:
    claimed = facts.run.claimed_at
    checks = [
        check for check in hypothesis.checks if claimed is None or check.registered_at <= claimed
    ]
    effective: dict[str, Any] = {}
    for state in reversed(own.states):
        effective |= {key: fact.value for key, fact in state.effective.items()}
    for boot in own.boots:
        effective |= {key: fact.value for key, fact in boot.effective.items()}
    effective |= {k: e.effective for k, e in facts.config.items() if e.effective_known}
    return verdicts.applied_verdict(
        [verdicts.AppliedCheck(_kind(c), c.key, c.expected) for c in checks],
        effective or None,
        _log_facts(found, facts, own, checks),
        captured_layers(found, facts, own),
        {key: entry.requested for key, entry in facts.config.items() if entry.differs},
    )


def _kind(check: AppliedCheck) -> Any:
    return AppliedCheck.Kind(check.kind).value


def _log_facts(
    found: Dossier, facts: RunFacts, own: Case, checks: Iterable[AppliedCheck]
) -> verdicts.LogFacts | None:
    row = evidence.newest(files_of(found, facts), evidence.SERVER_LOG)
    if row is None:
        return None
    texts = [c.key for c in checks if c.kind.startswith("log-")]
    lines = tuple(_lines_with(row, texts)) if texts else ()
    return verdicts.LogFacts(lines, whole=any(not boot.excerpt for boot in own.boots))


def _lines_with(row: Evidence, texts: Sequence[str]) -> Iterator[str]:
    """The first line of the log that holds each text; the log is read once, in bounded pieces."""
    left = set(texts)
    try:
        with _opened(store.path_of(row.blob_id)) as file:
            while left and (piece := file.readline(LONGEST_LINE)):
                line = piece.decode("utf-8", "replace")
                hits = {text for text in left if text in line}
                if hits:
                    left -= hits
                    yield line.rstrip()
    except OSError:
        return


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as plain:
        packed = plain.read(2) == b"\x1f\x8b"
        plain.seek(0)
        if packed:
            with gzip.open(plain) as unpacked:
                yield cast("IO[bytes]", unpacked)
        else:
            yield plain


def _outcome(found: Dossier, facts: RunFacts) -> verdicts.PredictionVerdict:
    run, row = facts.run, facts.run.prediction
    if run.state == Run.State.FAILED:
        return verdicts.PredictionVerdict("undecided", f"The run failed: {run.reason}")
    if row is None:
        return verdicts.PredictionVerdict(
            "undecided", "No prediction was registered before the run."
        )
    base = found.run(row.baseline_id)
    if base is None:
        return verdicts.PredictionVerdict(
            "undecided", "The run that it was to be compared with is gone."
        )
    cv, df = pooled_spread(found, facts, row.metric)
    until = max(facts.run.number, base.run.number)
    mine = repeats_of(found, facts, until) if facts.measured else []
    theirs = repeats_of(found, base, until) if base.measured else []
    return verdicts.prediction_verdict(
        verdicts.Prediction(
            row.metric,
            base.run.label,
            cast("Any", row.direction),
            row.low,
            row.high,
            row.margin,
        ),
        _figures(mine, row.metric),
        _figures(theirs, row.metric),
        cv,
        pooled_df=df,
        extra=_extra_looks(found, facts),
        invalid=not_comparable(facts, base) or drift_between(run, base.run),
    )


def repeats_of(found: Dossier, facts: RunFacts, until: int) -> list[RunFacts]:
    """The run with those that repeat it or that it repeats, measured, none after number `until`.

    Each is a start of its own. A run that no longer compares with it is left out.
    """
    root = facts.run.repeats_run_id or facts.run.pk
    return [
        other
        for other in found.runs
        if root in (other.run.pk, other.run.repeats_run_id)
        and other.measured
        and other.run.number <= until
        and (other is facts or not_comparable(facts, other) is None)
    ]


def _figures(starts: Sequence[RunFacts], metric: str) -> tuple[float, ...]:
    return looks.figures_of([_positive(s.figures.values(metric)) for s in starts])


def _extra_looks(found: Dossier, facts: RunFacts) -> int:
    """Which look at the question the run's verdict is, 0 where it is the planned one.

    A comparison plans several starts of a point; any other run is planned once. A start that
    failed is spent as well, or a comparison with one failure would never be complete.
    """
    root = facts.run.repeats_run_id or facts.run.pk
    starts = [
        other.run
        for other in found.runs
        if root in (other.run.pk, other.run.repeats_run_id)
        and other.run.state in Run.ENDED
        and other.run.number <= facts.run.number
    ]
    first = next((run for run in starts if run.pk == root), facts.run)
    return looks.extra_looks(max(len(starts), 1), _planned_starts(first))


def _planned_starts(first: Run) -> int:
    group = first.group
    if group is None or first.group_place is None:
        return 1
    made, order = group.plan.get("made") or [], group.plan.get("order") or []
    if first.group_place >= len(made):
        return 1
    return max(order.count(made[first.group_place]), 1)


def _positive(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(v for v in values if v > 0)


def pooled_spread(found: Dossier, facts: RunFacts, metric: str) -> tuple[float | None, int | None]:
    """Spread of `metric` over all replicated runs of the same engine, with its freedom degrees."""
    total, freedom = 0.0, 0
    for other in found.runs:
        values = _positive(other.figures.values(metric))
        if other.run.engine != facts.run.engine or not other.measured or len(values) < 2:
            continue
        mean = sum(values) / len(values)
        total += sum((v / mean - 1) ** 2 for v in values)
        freedom += len(values) - 1
    return (sqrt(total / freedom), freedom) if freedom else (None, None)
