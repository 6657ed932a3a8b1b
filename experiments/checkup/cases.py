"""From a run's rows and files to the library's Cases; judges nothing.

Two cases per run, because its log and its repeats tell of the same requests and would be counted
twice in one: the log's, with arguments, models and decode lines, and the figures', with the repeats
beside the baseline's. A third one, for findings that need figures at two depths, adds the earlier
runs that differ from the run in the number of draft steps alone: its family.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from experiments import evidence, store
from experiments.models import Evidence
from experiments.queries import Dossier, RunFacts
from experiments.queries.comparable import not_comparable
from experiments.queries.gpus import gpu_summaries
from specdebug.diagnosis.case import Case, Input, Measured, Positions, case_from_rows
from specdebug.diagnosis.gather import build_case
from specdebug.sglang.meta_info import pool_histogram

STEPS, TOPK = "speculative_num_steps", "speculative_eagle_topk"
DRAFT_TOKENS = "speculative_num_draft_tokens"
# What may differ within a family: the depth of the draft and what follows from it.
DEPTH = frozenset({STEPS, DRAFT_TOKENS})
# Kinds of files that stand for the whole investigation when a run has none of its own.
COMMON = (evidence.DRAFT_CONFIG, evidence.TARGET_CONFIG, "safetensors", "safetensors-header")
# /metrics holds averages since the start, warm-up included; the repeats' own figures are better.
LEFT_OUT = (evidence.METRICS, "unusable", "notes", *evidence.BESIDE)


@dataclass(frozen=True)
class Cases:
    """log: arguments, files and decode lines. figures: the repeats in their place; None for a run
    without figures. family: figures with the run's family's; None for a run that has none."""

    log: Case
    figures: Case | None = None
    family: Case | None = None


def cases_of(found: Dossier, facts: RunFacts) -> Cases:
    """What is known of one run by itself, and beside the baseline and its family."""
    run, notes = facts.run, dict(found.investigation.notes)
    files = [_input(row) for row in files_of(found, facts)]
    release = run.engine_release or notes.pop("engine_version", None)
    base = build_case(files, engine_version=release or None, notes=notes)
    log = case_from_rows(
        base=base,
        requested=_requested(facts),
        # The engine's own list, with its lines, comes from the files; a write-up has none.
        effective=_effective(facts) if run.recorded else None,
        env={k: str(v) for k, v in run.plan.get("env", {}).items()},
        concurrency=stated_concurrency(facts),
        exit_code=run.exit_code,
        gpus=gpu_summaries(run),
    )
    if facts.figures.tok_s is None:
        return Cases(log)
    rows = [] if facts.is_baseline else _baseline_rows(found, facts)
    boots = tuple(replace(boot, stretches=()) for boot in log.boots)
    states = tuple(replace(state, accept_len=None) for state in log.states)
    figures = case_from_rows(
        base=replace(log, boots=boots, states=states, measured=(), positions=()),
        runs=[*rows, measured(facts, asked=True)],
        positions=[p for p in (positions(facts),) if p is not None],
    )
    members = [measured(m, asked=False) for m in family(found, facts)]
    return Cases(log, figures, case_from_rows(base=figures, runs=members) if members else None)


def family(found: Dossier, facts: RunFacts) -> list[RunFacts]:
    """Earlier measured runs that differ from this one in the depth of the draft alone."""
    if not facts.speculative or not facts.measured or facts.figures.accept_len is None:
        return []
    key = family_key(found, facts)
    return [
        other
        for other in found.runs
        if other.run.number < facts.run.number
        and other.measured
        and other.speculative
        and not_comparable(facts, other) is None
        and family_key(found, other) == key
    ]


def family_key(found: Dossier, facts: RunFacts) -> str:
    """Equal for runs that differ in the depth of the draft alone."""
    draft = evidence.json_of(evidence.newest(files_of(found, facts), evidence.DRAFT_CONFIG))
    arguments = {
        k: e.effective if e.effective_known else e.requested
        for k, e in facts.config.items()
        if k not in DEPTH and (e.effective_known or e.was_requested)
    }
    if draft is not None:
        # The content tells drafts apart; where their folders lie does not matter.
        arguments.pop("speculative_draft_model_path", None)
    plan = facts.run.plan
    key = [facts.run.engine, plan.get("workload"), plan.get("env"), arguments, draft]
    return json.dumps(key, sort_keys=True, default=str)


def files_of(found: Dossier, facts: RunFacts | None) -> list[Evidence]:
    """The files a case is built from: the run's own, and common ones of kinds it has none of."""
    rows = [row for row in found.evidence if row.kind not in LEFT_OUT and not row.problem]
    common = [row for row in rows if row.run_id is None]
    if facts is None:
        return common
    own = [row for row in rows if row.run_id == facts.run.pk]
    kinds = {row.kind for row in own}
    return own + [row for row in common if row.kind in COMMON and row.kind not in kinds]


def _input(row: Evidence) -> Input:
    return Input(row.name, store.path_of(row.blob_id))


def _effective(facts: RunFacts) -> dict[str, Any]:
    return {k: e.effective for k, e in facts.config.items() if e.effective_known}


def _requested(facts: RunFacts) -> dict[str, Any] | None:
    """What was asked for; None, not nothing, where a write-up does not state it."""
    if facts.run.recorded and not facts.run.plan.get("server_args"):
        return None
    return {k: e.requested for k, e in facts.config.items() if e.was_requested}


def stated_concurrency(facts: RunFacts) -> float | None:
    """Requests at once, None where neither plan nor write-up says."""
    value = facts.run.plan.get("workload", {}).get("concurrency")
    return None if value is None else float(value)


def _baseline_rows(found: Dossier, facts: RunFacts) -> list[Measured]:
    base = found.run(facts.run.baseline_id) or found.baseline
    if base is None or not base.measured or base.run.pk == facts.run.pk:
        return []
    if not_comparable(facts, base) is not None:
        return []
    return [measured(base, asked=False)]


def measured(facts: RunFacts, *, asked: bool) -> Measured:
    """A run's figures as the library takes them; asked: with the draft tokens that were asked."""
    figures = facts.figures
    concurrency = stated_concurrency(facts)
    speculative = facts.speculative
    return Measured(
        label=facts.run.label,
        source=f"run {facts.run.label}",
        text=in_words(facts),
        speculative=speculative,
        num_steps=_number(facts.in_force(STEPS)) if speculative else None,
        topk=_number(facts.in_force(TOPK)) if speculative else None,
        draft_tokens_asked=_number(facts.requested(DRAFT_TOKENS)) if asked else None,
        draft_tokens=_number(facts.effective(DRAFT_TOKENS)) if speculative else None,
        tok_s=tuple(v for v in figures.values("tok_s") if v > 0),
        accept_len=figures.accept_len,
        accept_rate=figures.accept_rate,
        running=concurrency,
        concurrency=concurrency,
        # With a histogram the drafts are counted there.
        drafts=None if figures.histogram else figures.verify_ct,
        step_ms=figures.step_ms.mean if figures.step_ms else None,
    )


def in_words(facts: RunFacts) -> str:
    """The figures as evidence text, with n."""
    figures = facts.figures
    words = [f"{facts.run.label}: {figures.tok_s.mean:.4g} tok/s" if figures.tok_s else "no figure"]
    if figures.tok_s:
        words.append(f"n={figures.n}")
    if figures.accept_len is not None:
        words.append(f"accept length {figures.accept_len:.4g}")
    if figures.accept_rate is not None:
        words.append(f"accept rate {figures.accept_rate:.4g}")
    return ", ".join(words)


def positions(facts: RunFacts) -> Positions | None:
    """Acceptance by draft position from the requests' histograms, pooled over the repeats."""
    histogram = facts.figures.histogram
    if not histogram or not sum(histogram):
        return None
    pooled = pool_histogram(histogram)
    steps = _number(facts.in_force(STEPS))
    return Positions(
        source=f"run {facts.run.label}",
        line=None,
        text=f"{facts.run.label}: histogram of accepted drafts {list(histogram)}"[:400],
        conditional=tuple(pooled.conditional[:steps] if steps else pooled.conditional),
        drafts=pooled.verifies,
        formula="P(position k accepted | position k-1 was), from the summed histograms",
        num_steps=steps,
        accept_len=facts.figures.accept_len,
    )


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def files_case(found: Dossier) -> Case | None:
    """The files that belong to no run, as one case; None when there are none."""
    rows = files_of(found, None)
    if not rows:
        return None
    notes: Mapping[str, Any] = found.investigation.notes
    return build_case([_input(row) for row in rows], notes=notes)
