"""What each page shows: one function per page, a fixed number of queries, frozen rows back.

A page that does not exist raises the model's DoesNotExist (Http404 is the view's word for it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from experiments.models import (
    ConfigChange,
    ConfigEntry,
    DecodeSample,
    Event,
    Evidence,
    Finding,
    FindingEvent,
    Hypothesis,
    Investigation,
    Repeat,
    Run,
    Verdict,
)
from experiments.queries.comparable import ratios
from experiments.queries.dossier import (
    Dossier,
    FindingFacts,
    HypothesisFacts,
    RunFacts,
    dossier,
    grouped,
)
from experiments.queries.figures import figures_of
from experiments.queries.goal import Goal, goal_of, obstacles_in

# Findings are drawn right after the figures; a worker that died in between is not waited for.
CONCLUDING = timedelta(seconds=60)
# The kind under which a run's own log is kept as evidence.
RUN_LOG = "server-log"


@dataclass(frozen=True)
class InvestigationPage:
    """An investigation with its goal, its rows and what is left before it can be resolved."""

    investigation: Investigation
    goal: Goal
    dossier: Dossier
    obstacles: tuple[str, ...]

    @property
    def open_findings(self) -> tuple[FindingFacts, ...]:
        return tuple(f for f in self.dossier.findings if f.finding.state == Finding.State.OPEN)


def investigation_page(slug: str) -> InvestigationPage:
    """One investigation: the dossier's queries and one for itself."""
    investigation = Investigation.objects.select_related("baseline").get(slug=slug)
    found = dossier(investigation)
    return InvestigationPage(
        investigation=investigation,
        goal=goal_of(investigation, found.runs),
        dossier=found,
        obstacles=obstacles_in(found),
    )


@dataclass(frozen=True)
class RunLive:
    """Where a run stands now. waiting_behind: active runs that come before it in the queue."""

    run: Run
    waiting_behind: int

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to watch."""
        return self.run.state not in Run.ACTIVE and not self.concluding

    @property
    def concluding(self) -> bool:
        """Measured, and its findings and verdicts are being drawn: a matter of seconds."""
        run = self.run
        if run.state not in (Run.State.DONE, Run.State.FAILED) or run.ended_at is None:
            return False
        drawn = run.checked_at is not None or bool(run.check_problem) or run.recorded
        return not drawn and timezone.now() - run.ended_at < CONCLUDING


def run_live(slug: str, number: int) -> RunLive:
    """The small part of a run's page that is asked for again and again: at most 2 queries."""
    run = (
        Run.objects.select_related("investigation")
        .defer("server_info", "argv", "env", "untried")
        .get(investigation__slug=slug, number=number)
    )
    return _live(run)


def _live(run: Run) -> RunLive:
    behind = 0
    if run.state == Run.State.QUEUED:
        earlier = Run.objects.filter(state=Run.State.QUEUED)
        if run.queued_at is not None:
            earlier = earlier.filter(queued_at__lt=run.queued_at)
        behind = earlier.exclude(pk=run.pk).count()
    return RunLive(run, behind)


@dataclass(frozen=True)
class RunPage:
    """One run. samples: the log's decode lines; log: the run's own log as evidence, if kept.

    findings: those that this run opened, showed or fixed, each with its turns in this run alone and
    in this run's words.
    """

    facts: RunFacts
    investigation: Investigation
    baseline: RunFacts | None
    live: RunLive
    samples: tuple[DecodeSample, ...]
    findings: tuple[FindingFacts, ...]
    evidence: tuple[Evidence, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def run(self) -> Run:
        return self.facts.run

    @property
    def foreseen(self) -> tuple[Mapping[str, Any], ...]:
        """What the plan gave away before the run was measured, as docs/check-json.md has it."""
        return () if self.run.checked_at else tuple(self.run.shown)

    @property
    def log(self) -> Evidence | None:
        return next((e for e in self.evidence if e.kind == RUN_LOG), None)


def run_page(slug: str, number: int) -> RunPage:
    """One run with all that is known of it: at most 11 queries."""
    run = Run.objects.select_related(
        *("investigation__baseline", "hypothesis", "baseline", "follows", "repeats_run"),
        *("prediction__baseline", "group"),
    ).get(investigation__slug=slug, number=number)
    base = run.baseline or run.investigation.baseline
    if base is not None:
        base.investigation = run.investigation
    verdicts = tuple(
        Verdict.objects.filter(run=run).select_related("hypothesis", "prediction__baseline")
    )
    own, other = _both_facts(run, base, next((v for v in verdicts if v.in_force), None))
    return RunPage(
        facts=own,
        investigation=run.investigation,
        baseline=other,
        live=_live(run),
        samples=tuple(DecodeSample.objects.filter(run=run)),
        findings=_findings_as_shown(run),
        evidence=tuple(Evidence.objects.filter(run=run).select_related("blob")),
        verdicts=verdicts,
    )


def _both_facts(
    run: Run, base: Run | None, verdict: Verdict | None
) -> tuple[RunFacts, RunFacts | None]:
    """A run with its figures and arguments, and its baseline, None where it has none or is it."""
    rows = [run, *([base] if base is not None else [])]
    both = [row.pk for row in rows]
    repeats = grouped(Repeat.objects.filter(run__in=both), lambda r: r.run_id)
    config = grouped(ConfigEntry.objects.filter(run__in=both), lambda c: c.run_id)
    figures = {pk: figures_of(repeats.get(pk, [])) for pk in both}
    against = ratios(rows, figures, base.pk if base is not None else None)

    def facts(row: Run, decided: Verdict | None, changes: tuple[ConfigChange, ...]) -> RunFacts:
        return RunFacts(
            run=row,
            figures=figures[row.pk],
            repeats=tuple(repeats.get(row.pk, ())),
            config={entry.key: entry for entry in config.get(row.pk, ())},
            changes=changes,
            verdict=decided,
            ratio=against[row.pk],
            is_baseline=row.pk == row.investigation.baseline_id,
        )

    own = facts(run, verdict, tuple(ConfigChange.objects.filter(run=run)))
    return own, None if base is None or base.pk == run.pk else facts(base, None, ())


def _findings_as_shown(run: Run) -> tuple[FindingFacts, ...]:
    """Findings that turned in a run, in its words and with its evidence, whatever a later one
    said."""
    turns = grouped(
        FindingEvent.objects.filter(run=run).select_related("finding"), lambda e: e.finding_id
    )
    shown = {f["code"]: f for f in run.shown}
    found = []
    for events in turns.values():
        finding = events[0].finding
        finding.investigation = run.investigation
        for name in ("statement", "evidence", "fix", "settled_by", "severity", "confidence"):
            if name in shown.get(finding.code, {}):
                setattr(finding, name, shown[finding.code][name])
        found.append(FindingFacts(finding, tuple(events)))
    return tuple(found)


@dataclass(frozen=True)
class HypothesisPage:
    """One hypothesis within its investigation; runs: those that test it, with their figures."""

    facts: HypothesisFacts
    dossier: Dossier
    runs: tuple[RunFacts, ...]
    events: tuple[Event, ...]


def hypothesis_page(slug: str, number: int) -> HypothesisPage:
    """One hypothesis; raises Hypothesis.DoesNotExist or Investigation.DoesNotExist."""
    investigation = Investigation.objects.select_related("baseline").get(slug=slug)
    found = dossier(investigation)
    facts = next((h for h in found.hypotheses if h.hypothesis.number == number), None)
    if facts is None:
        raise Hypothesis.DoesNotExist(f"no hypothesis H{number} in {slug}")
    pk = facts.hypothesis.pk
    return HypothesisPage(
        facts=facts,
        dossier=found,
        runs=tuple(r for r in found.runs if r.run.hypothesis_id == pk),
        events=tuple(e for e in found.events if e.hypothesis_id == pk),
    )


@dataclass(frozen=True)
class FindingPage:
    """One finding with its life. turns: opened, seen, fixed, reopened, set aside, oldest first."""

    finding: Finding
    investigation: Investigation
    turns: tuple[FindingEvent, ...]


def finding_page(slug: str, pk: int) -> FindingPage:
    """One finding of an investigation: 2 queries; raises Finding.DoesNotExist."""
    finding = Finding.objects.select_related(
        "investigation", "opened_in", "seen_in", "fixed_in"
    ).get(investigation__slug=slug, pk=pk)
    turns = FindingEvent.objects.filter(finding=finding).select_related("run")
    return FindingPage(finding, finding.investigation, tuple(turns))
