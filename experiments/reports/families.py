"""Which measured runs one cost account may hold, and the way from the plain run to each of them;
the arithmetic is the library's, the one answer is for page, report and API alike."""

from __future__ import annotations

from experiments.checkup import cases
from experiments.queries import Dossier, RunFacts
from experiments.queries.comparable import not_comparable
from specdebug.diagnosis.account import DraftRun, Gap, gaps_of


def draft_run(facts: RunFacts) -> DraftRun:
    """One run as the account takes it."""
    known = facts.figures
    tok_s = tuple(v for v in known.values("tok_s") if v > 0)
    running = float(facts.concurrency)
    if not facts.speculative:
        return DraftRun(facts.run.label, 0, tok_s, None, running)
    steps = facts.in_force(cases.STEPS)
    depth = steps if isinstance(steps, int) and not isinstance(steps, bool) else 0
    position = cases.positions(facts)
    return DraftRun(
        facts.run.label,
        depth,
        tok_s,
        known.accept_len,
        running,
        position.conditional if position else (),
        position.drafts if position else (known.verify_ct or 0),
        chain=_chain(facts),
    )


def _chain(facts: RunFacts) -> bool:
    """A chain whose depth is known: a tree's step has other costs."""
    steps, topk = facts.in_force(cases.STEPS), facts.in_force(cases.TOPK)
    return isinstance(steps, int) and topk in (None, 1)


def families_of(found: Dossier) -> list[list[RunFacts]]:
    """Measured chains by family, each with the plain run that it may be compared with first."""
    groups: dict[str, list[RunFacts]] = {}
    for facts in found.runs:
        if facts.measured and facts.speculative and _chain(facts):
            groups.setdefault(cases.family_key(found, facts), []).append(facts)
    out = []
    for members in groups.values():
        first = members[0]
        members = [m for m in members if not_comparable(first, m) is None]
        out.append([*_plain(found, first), *members])
    return out


def _plain(found: Dossier, first: RunFacts) -> list[RunFacts]:
    """The plain run that a run may be compared with, if there is one."""
    base = found.run(first.run.baseline_id) or found.baseline
    if base is None or not base.measured or base.speculative:
        return []
    return [base] if not_comparable(first, base) is None else []


def gaps_by_run(found: Dossier) -> tuple[Gap, ...]:
    """The way from the plain run to each measured draft run, in the order of the runs: by the
    account of its family, and of a tree as one part."""
    groups = [[draft_run(facts) for facts in members] for members in families_of(found)]
    groups += [
        [draft_run(one) for one in (*_plain(found, facts), facts)]
        for facts in found.runs
        if facts.measured and facts.speculative and not _chain(facts)
    ]
    told = {gap.run: gap for runs in groups for gap in gaps_of(runs)}
    return tuple(told[f.run.label] for f in found.runs if f.run.label in told)
