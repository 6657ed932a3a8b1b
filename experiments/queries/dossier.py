"""Everything of one investigation, read once with a fixed number of queries and tied together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar

from django.db.models import ForeignKey, Model

from experiments.models import (
    AppliedCheck,
    ConfigChange,
    ConfigEntry,
    Event,
    Evidence,
    Finding,
    FindingEvent,
    Hypothesis,
    HypothesisLink,
    Investigation,
    Prediction,
    Repeat,
    Run,
    Verdict,
)
from experiments.queries.comparable import ratios
from experiments.queries.figures import Figures, figures_of
from experiments.queries.prepared import Prepared

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

SPECULATIVE = "speculative_algorithm"


@dataclass(frozen=True)
class RunFacts:
    """One run with its figures and arguments. ratio: tok/s over the goal's baseline, if known."""

    run: Run
    figures: Figures
    repeats: tuple[Repeat, ...]
    config: Mapping[str, ConfigEntry]
    changes: tuple[ConfigChange, ...]
    verdict: Verdict | None
    ratio: float | None = None
    is_baseline: bool = False

    def effective(self, key: str) -> Any:
        """The value in force, None where it is not known."""
        entry = self.config.get(key)
        return entry.effective if entry is not None and entry.effective_known else None

    def requested(self, key: str) -> Any:
        """The value asked for, None where none was."""
        entry = self.config.get(key)
        return entry.requested if entry is not None and entry.was_requested else None

    def in_force(self, key: str) -> Any:
        """The effective value, else the requested one."""
        value = self.effective(key)
        return self.requested(key) if value is None else value

    @cached_property
    def speculative(self) -> bool | None:
        """Whether it ran with a draft; None when no argument of the run is known."""
        if self.in_force(SPECULATIVE) is not None:
            return True
        if self.figures.accept_len is not None:
            return True
        return False if self.config or self.run.plan.get("server_args") else None

    @property
    def measured(self) -> bool:
        """Whether there is a figure to compare."""
        return self.run.state == Run.State.DONE and self.figures.tok_s is not None

    @property
    def concurrency(self) -> int:
        """Requests at once; 1 where the plan does not say."""
        return int(self.run.plan.get("workload", {}).get("concurrency") or 1)

    @property
    def reference_engine(self) -> bool:
        return self.run.engine == "reference"

    @property
    def differing(self) -> tuple[ConfigEntry, ...]:
        """Arguments whose effective value is not the one asked for."""
        return tuple(entry for entry in self.config.values() if entry.differs)


@dataclass(frozen=True)
class HypothesisFacts:
    """One hypothesis with all that was registered and decided about it."""

    hypothesis: Hypothesis
    links: tuple[HypothesisLink, ...]
    linked_from: tuple[HypothesisLink, ...]
    predictions: tuple[Prediction, ...]
    checks: tuple[AppliedCheck, ...]
    runs: tuple[Run, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def verdict(self) -> Verdict | None:
        """The verdict in force after its latest run."""
        held = [v for v in self.verdicts if v.in_force]
        return max(held, key=lambda v: (v.run.position, v.pk)) if held else None

    @property
    def prediction(self) -> Prediction | None:
        """The newest version."""
        return self.predictions[-1] if self.predictions else None


@dataclass(frozen=True)
class FindingFacts:
    """One finding with the turns of its life."""

    finding: Finding
    events: tuple[FindingEvent, ...]


@dataclass(frozen=True)
class Dossier:
    """An investigation with all its rows; runs, hypotheses and events in timeline order."""

    investigation: Investigation
    runs: tuple[RunFacts, ...]
    hypotheses: tuple[HypothesisFacts, ...]
    events: tuple[Event, ...]
    findings: tuple[FindingFacts, ...]
    evidence: tuple[Evidence, ...]

    @cached_property
    def baseline(self) -> RunFacts | None:
        """The run that the goal compares with."""
        return next((r for r in self.runs if r.is_baseline), None)

    def run(self, pk: int | None) -> RunFacts | None:
        return next((r for r in self.runs if r.run.pk == pk), None)


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Rows by key, each list in the order of `rows`."""
    found: dict[K, list[T]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def tie(rows: Iterable[Model]) -> None:
    """Point the rows' foreign keys at each other's objects, so that following one asks nothing."""
    held = list(rows)
    known = {(type(row), row.pk): row for row in held}
    for row in held:
        for field in _keys(type(row)):
            other = known.get((field.related_model, row.__dict__.get(field.attname)))
            if other is not None:
                field.set_cached_value(row, other)


@cache
def _keys(model: type[Model]) -> tuple[ForeignKey[Any, Any], ...]:
    """A model's foreign keys."""
    return tuple(f for f in model._meta.concrete_fields if isinstance(f, ForeignKey))


# All that an investigation has, each by the investigation's key.
_RUNS = Prepared(lambda pk: Run.objects.filter(investigation=pk))
_REPEATS = Prepared(lambda pk: Repeat.objects.filter(run__investigation=pk))
_CONFIG = Prepared(lambda pk: ConfigEntry.objects.filter(run__investigation=pk))
_CHANGES = Prepared(lambda pk: ConfigChange.objects.filter(run__investigation=pk))
_HYPOTHESES = Prepared(lambda pk: Hypothesis.objects.filter(investigation=pk))
_LINKS = Prepared(lambda pk: HypothesisLink.objects.filter(origin__investigation=pk).order_by("pk"))
_PREDICTIONS = Prepared(lambda pk: Prediction.objects.filter(hypothesis__investigation=pk))
_CHECKS = Prepared(lambda pk: AppliedCheck.objects.filter(hypothesis__investigation=pk))
_VERDICTS = Prepared(lambda pk: Verdict.objects.filter(hypothesis__investigation=pk))
_EVENTS = Prepared(lambda pk: Event.objects.filter(investigation=pk))
_FINDINGS = Prepared(lambda pk: Finding.objects.filter(investigation=pk))
_TURNS = Prepared(lambda pk: FindingEvent.objects.filter(finding__investigation=pk))
_EVIDENCE = Prepared(lambda pk: Evidence.objects.filter(investigation=pk).select_related("blob"))


def dossier(investigation: Investigation) -> Dossier:
    """All rows of one investigation, 13 queries however large it is."""
    pk = investigation.pk
    runs = _RUNS.all(pk)
    repeats = _REPEATS.all(pk)
    config = _CONFIG.all(pk)
    changes = _CHANGES.all(pk)
    hypotheses = _HYPOTHESES.all(pk)
    links = _LINKS.all(pk)
    predictions = _PREDICTIONS.all(pk)
    checks = _CHECKS.all(pk)
    verdicts = _VERDICTS.all(pk)
    events = _EVENTS.all(pk)
    findings = _FINDINGS.all(pk)
    turns = _TURNS.all(pk)
    evidence = _EVIDENCE.all(pk)
    tie(
        [
            *(investigation, *runs, *repeats, *config, *changes),
            *(*hypotheses, *links, *predictions, *checks, *verdicts),
            *(*events, *findings, *turns, *evidence),
        ]
    )
    lives = grouped(turns, lambda e: e.finding_id)
    return Dossier(
        investigation=investigation,
        runs=_run_facts(investigation, runs, repeats, config, changes, verdicts),
        hypotheses=_hypothesis_facts(hypotheses, links, predictions, checks, runs, verdicts),
        events=tuple(events),
        findings=tuple(FindingFacts(f, tuple(lives.get(f.pk, ()))) for f in findings),
        evidence=tuple(evidence),
    )


def _run_facts(
    investigation: Investigation,
    runs: list[Run],
    repeats: list[Repeat],
    config: list[ConfigEntry],
    changes: list[ConfigChange],
    verdicts: list[Verdict],
) -> tuple[RunFacts, ...]:
    passes = grouped(repeats, lambda r: r.run_id)
    entries = grouped(config, lambda c: c.run_id)
    changed = grouped(changes, lambda c: c.run_id)
    in_force = {v.run_id: v for v in verdicts if v.in_force}
    figures = {run.pk: figures_of(passes.get(run.pk, [])) for run in runs}
    against = ratios(runs, figures, investigation.baseline_id)
    return tuple(
        RunFacts(
            run=run,
            figures=figures[run.pk],
            repeats=tuple(passes.get(run.pk, ())),
            config={entry.key: entry for entry in entries.get(run.pk, ())},
            changes=tuple(changed.get(run.pk, ())),
            verdict=in_force.get(run.pk),
            ratio=against[run.pk],
            is_baseline=run.pk == investigation.baseline_id,
        )
        for run in runs
    )


def _hypothesis_facts(
    hypotheses: list[Hypothesis],
    links: list[HypothesisLink],
    predictions: list[Prediction],
    checks: list[AppliedCheck],
    runs: list[Run],
    verdicts: list[Verdict],
) -> tuple[HypothesisFacts, ...]:
    versions = grouped(predictions, lambda p: p.hypothesis_id)
    registered = grouped(checks, lambda c: c.hypothesis_id)
    tested_by = grouped(runs, lambda r: r.hypothesis_id)
    decided = grouped(verdicts, lambda v: v.hypothesis_id)
    origins = grouped(links, lambda link: link.origin_id)
    others = grouped(links, lambda link: link.other_id)
    return tuple(
        HypothesisFacts(
            hypothesis=row,
            links=tuple(origins.get(row.pk, ())),
            linked_from=tuple(others.get(row.pk, ())),
            predictions=tuple(versions.get(row.pk, ())),
            checks=tuple(registered.get(row.pk, ())),
            runs=tuple(tested_by.get(row.pk, ())),
            verdicts=tuple(decided.get(row.pk, ())),
        )
        for row in hypotheses
    )
