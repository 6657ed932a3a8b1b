"""Rows of an investigation to what its page and its report show."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from experiments import store
from experiments.checkup import cases
from experiments.models import Investigation
from experiments.queries import Dossier, FindingFacts, InvestigationPage, RunFacts
from experiments.reports import charts
from experiments.reports import story as telling
from experiments.reports.record import record_of
from specdebug import __version__
from specdebug.diagnosis.case import Case, Input, case_from_rows
from specdebug.diagnosis.findings import severity_rank
from specdebug.diagnosis.gather import build_case
from specdebug.diagnosis.post_mortem import PostMortem, build_post_mortem
from specdebug.diagnosis.timeline import timeline


def story(page: InvestigationPage) -> dict[str, Any]:
    """The timeline's steps with the scale of their bars; goal_line in tok/s where the goal is."""
    steps = telling.steps(page.dossier, timeline(record_of(page.dossier)))
    goal_line = page.goal.target if page.goal.metric == "tok_s" else None
    known = [step.value for step in steps if step.value is not None]
    if page.investigation.goal_kind == Investigation.Goal.AT_MOST:
        goal_line = None
    scale = 1.05 * max([*known, goal_line or 0.0, 1e-9])
    return {
        "steps": steps,
        "scale": scale,
        "goal_line": goal_line,
        "open_findings": by_severity(page.open_findings),
    }


def by_severity(findings: Iterable[FindingFacts]) -> list[FindingFacts]:
    """Findings with the gravest first."""
    return sorted(findings, key=lambda f: severity_rank(cast("Any", f.finding.severity)))


def places(dossier: Dossier) -> list[tuple[str, str]]:
    """Where an event may be put: after each hypothesis, run or event, by its position."""
    rows = [
        *((h.hypothesis.position, f"after {h.hypothesis}") for h in dossier.hypotheses),
        *((r.run.position, f"after {r.run}") for r in dossier.runs),
        *((event.position, f"after {event.title}") for event in dossier.events),
    ]
    return [(repr(position), words[:90]) for position, words in sorted(rows)]


@dataclass(frozen=True)
class Chart:
    """One drawing of a report. says: its content in words, for those who do not see it."""

    title: str
    says: str
    svg: str


@dataclass(frozen=True)
class Report:
    """A post-mortem with its charts. digest: SHA-256 of all it says; as_of: last change of a row.

    runs: the investigation's rows behind the labels, for badges and links.
    """

    post_mortem: PostMortem
    charts: tuple[Chart, ...]
    runs: tuple[RunFacts, ...]
    slug: str
    as_of: datetime
    digest: str

    @property
    def reference_engine(self) -> bool:
        return any(facts.reference_engine for facts in self.runs)

    @property
    def recorded(self) -> bool:
        return any(facts.run.recorded for facts in self.runs)


def report(page: InvestigationPage) -> Report:
    """The investigation as a report; equal rows give an equal report."""
    found = page.dossier
    told = build_post_mortem(record_of(found), known_beside_runs(found), appendix=_appendix(found))
    as_of = _as_of(page)
    said = json.dumps([told.as_dict(), as_of.isoformat(), __version__], sort_keys=True, default=str)
    return Report(
        post_mortem=told,
        charts=tuple(_charts(page, told)),
        runs=found.runs,
        slug=page.investigation.slug,
        as_of=as_of,
        digest=hashlib.sha256(said.encode()).hexdigest(),
    )


def known_beside_runs(found: Dossier) -> Case | None:
    """Models, training and release of the newest speculative run, and the arguments that all of
    them share. Logs are left out: a report rests on the record's figures and must open quickly."""
    speculative = [facts for facts in found.runs if facts.speculative and facts.measured]
    if not speculative:
        return None
    facts = speculative[-1]
    notes = dict(found.investigation.notes)
    release = facts.run.engine_release or notes.pop("engine_version", None)
    files = [
        Input(row.name, store.path_of(row.blob_id))
        for row in cases.files_of(found, facts)
        if row.kind in cases.COMMON
    ]
    return case_from_rows(
        base=build_case(files, engine_version=release or None, notes=notes),
        requested=_shared(speculative),
        concurrency=cases.stated_concurrency(facts),
    )


def _shared(runs: Iterable[RunFacts]) -> dict[str, Any]:
    """Arguments in force or asked for that are the same in every run that states them."""
    stated: dict[str, Any] = {}
    differing: set[str] = set()
    for facts in runs:
        for key in facts.config:
            value = facts.in_force(key)
            if value is not None and stated.setdefault(key, value) != value:
                differing.add(key)
    return {key: value for key, value in stated.items() if key not in differing}


def _as_of(page: InvestigationPage) -> datetime:
    """The newest change of any row that the report shows."""
    row = page.investigation
    known = [row.updated_at, row.created_at]
    known += [f.run.ended_at for f in page.dossier.runs if f.run.ended_at]
    known += [f.finding.updated_at for f in page.dossier.findings]
    known += [event.created_at for event in page.dossier.events]
    known += [v.decided_at for h in page.dossier.hypotheses for v in h.verdicts]
    return max(known)


def _appendix(found: Dossier) -> dict[str, Any]:
    """What was run and what it rests on: commands, environment, files with their hashes."""
    return {
        "runs": [
            {
                "label": facts.run.label,
                "title": facts.run.title,
                "engine": f"{facts.run.engine} {facts.run.engine_release}".strip(),
                "host": facts.run.host,
                "command": shlex.join(map(str, facts.run.argv)),
                "environment": dict(sorted(facts.run.env.items())),
                "versions": dict(sorted(facts.run.versions.items())),
                "recorded": facts.run.recorded,
            }
            for facts in found.runs
        ],
        "files": _files(found),
    }


def _files(found: Dossier) -> list[dict[str, Any]]:
    """Each content once, with the runs that it belongs to."""
    files: dict[tuple[str, str], dict[str, Any]] = {}
    for row in found.evidence:
        entry = files.setdefault(
            (row.blob_id, row.name),
            {
                "name": row.name,
                "runs": [],
                "kind": row.kind,
                "bytes": row.blob.size,
                "sha256": row.blob_id,
            },
        )
        if row.run is not None:
            entry["runs"].append(row.run.label)
    return list(files.values())


def _charts(page: InvestigationPage, told: PostMortem) -> list[Chart]:
    """Throughput by run, accept length against what it needs, and the gap account of each run."""
    drawn = []
    runs = [
        charts.RunFigures(facts.run.label, facts.figures.tok_s.values)
        for facts in page.dossier.runs
        if facts.measured and facts.figures.tok_s
    ]
    if runs:
        goal = page.goal.target if page.goal.metric == "tok_s" else None
        line = "" if goal is None else f"goal {goal:.4g}"
        chart = charts.runs_against(runs, "tok_s", reference=goal, says=line)
        means = ", ".join(f"{r.label} {r.tok_s:.1f}" for r in told.runs if r.tok_s is not None)
        says = f"Means in tok/s: {means}" + (f"; {line}." if line else ".")
        drawn.append(Chart("Throughput by run", says, charts.svg(chart)))
    lengths = [
        charts.Reach(row.label, row.accept_len, row.break_even, _most(row.effective[0]))
        for row in told.runs
        if row.accept_len is not None
    ]
    if lengths:
        said = [
            f"{row.label} {row.measured:.2f}"
            + (f", draws level at {row.needed:.2f}" if row.needed is not None else "")
            + (f", at most {row.most:.0f}" if row.most is not None else "")
            for row in lengths
        ]
        says = f"In tokens a step: {'; '.join(said)}."
        title = "Accept length, and what it would take"
        drawn.append(Chart(title, says, charts.svg(charts.reaches(lengths))))
    for gap in told.gaps:
        account = gap.account
        falls = [
            charts.Fall("baseline", 0.0, account.baseline_tok_s),
            *(charts.Fall(p.name, p.reached - p.tok_s, p.reached) for p in account.parts),
            charts.Fall(f"measured, {gap.run}", 0.0, account.measured_tok_s),
        ]
        moves = ", ".join(f"{part.name} {part.tok_s:+.1f}" for part in account.parts)
        says = f"From {account.baseline_tok_s:.1f} to {account.measured_tok_s:.1f} tok/s: {moves}."
        drawn.append(Chart(f"Gap account of {gap.run}", says, charts.svg(charts.waterfall(falls))))
    return drawn


def _most(num_steps: Any) -> float | None:
    """The accept length of a perfect chain; None where the number of steps is not known."""
    return num_steps + 1.0 if isinstance(num_steps, int) else None
