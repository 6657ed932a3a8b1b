"""What the page of the cost account shows: runs of an investigation as accounts, one per family.

A family is the runs that differ in the depth of the draft alone. The arithmetic is the library's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.checkup import cases
from experiments.models import AcceptanceCurve
from experiments.queries import Dossier, InvestigationPage, RunFacts
from experiments.reports.build import known_beside_runs
from specdebug.diagnosis import reference
from specdebug.diagnosis.account import DraftRun, account_of, crossover, missing_run
from specdebug.diagnosis.case import Case
from specdebug.diagnosis.expected import Expected, expected_of
from specdebug.eagle.account import Account, Depth, Part, Range
from specdebug.eagle.curves import Curve, curve_from, curves_for, shipped_curves


@dataclass(frozen=True)
class Bar:
    """One depth on the page's drawing, in units of its width: the range, its middle, measured."""

    depth: Depth
    low: float
    value: float
    high: float
    measured: float | None
    measured_tok_s: float | None
    best: bool
    as_good: bool


@dataclass(frozen=True)
class Gap:
    """From the baseline to one run: each part in tok/s and in milliseconds a step."""

    run: RunFacts
    parts: tuple[Part, ...]
    break_even: float | None
    ceiling: float


@dataclass(frozen=True)
class Need:
    """What would reach the goal at a depth: an accept length, or a step time.

    possible: the accept length is one that the depth's window can yield.
    """

    num_steps: int
    accept_len: float
    has_accept_len: float
    step_ms: float
    has_step_ms: float
    possible: bool

    @property
    def ms_to_save(self) -> float:
        return self.has_step_ms - self.step_ms


@dataclass(frozen=True)
class Family:
    """The account of runs that differ in depth alone, at one number of requests at once.

    missing: the run or figure that would identify, or check, what the account lacks.
    """

    labels: tuple[str, ...]
    running: float
    account: Account | None
    missing: str | None
    bars: tuple[Bar, ...] = ()
    gaps: tuple[Gap, ...] = ()
    needs: tuple[Need, ...] = ()
    goal_place: float | None = None
    baseline_place: float | None = None
    few: bool = True

    @property
    def best(self) -> Depth | None:
        return None if self.account is None else self.account.best()

    @property
    def as_good(self) -> tuple[int, ...]:
        return () if self.account is None else self.account.as_good()

    @property
    def overhead_unexplained(self) -> bool:
        """Whether the fixed part above a plain step is surely more than half a plain step."""
        if self.account is None or self.account.plain is None or self.account.overhead is None:
            return False
        return self.account.overhead.low > 0.5 * self.account.plain.value


@dataclass(frozen=True)
class AccountPage:
    """All accounts of an investigation, and expected acceptance beside the measured one."""

    families: tuple[Family, ...]
    expected: tuple[Expected, ...]
    curves: tuple[Curve, ...]
    added: tuple[AcceptanceCurve, ...]
    target: str
    crossover: float | None


def account_page(page: InvestigationPage) -> AccountPage:
    """The accounts behind an investigation's runs, two queries more than its own page."""
    found = page.dossier
    case = known_beside_runs(found) or Case()
    grouped = _families(found)
    families = tuple(_family(page, runs) for runs in grouped)
    added = tuple(AcceptanceCurve.objects.all())
    names, method = reference.target_names(case), reference.method_of(case)
    curves = tuple(curves_for(names, [*shipped_curves(), *map(curve_of, added)], method))
    expected = [
        row
        for runs in grouped
        for row in expected_of(
            [draft_run(f) for f in runs], val_accuracy=case.training.val_accuracy, curves=curves
        )
    ]
    accounts = [f.account for f in families if f.account is not None]
    return AccountPage(
        families=families,
        expected=tuple(expected),
        curves=curves,
        added=added,
        target=names[0] if names else "",
        crossover=crossover(sorted(accounts, key=lambda a: a.running)),
    )


def curve_of(row: AcceptanceCurve) -> Curve:
    """A person's curve as the library takes it."""
    return curve_from(
        {
            "target": row.target,
            "method": row.method,
            "accept_len": row.accept_len,
            "about": row.about,
            "source": row.source,
            "ours": True,
        }
    )


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
    )


def _chain(facts: RunFacts) -> bool:
    """A chain whose depth is known: a tree's step has other costs."""
    steps, topk = facts.in_force(cases.STEPS), facts.in_force(cases.TOPK)
    return isinstance(steps, int) and topk in (None, 1)


def _families(found: Dossier) -> list[list[RunFacts]]:
    """Measured chains by family, each with the plain run that it may be compared with first."""
    groups: dict[str, list[RunFacts]] = {}
    for facts in found.runs:
        if facts.measured and facts.speculative and _chain(facts):
            groups.setdefault(cases.family_key(found, facts), []).append(facts)
    out = []
    for members in groups.values():
        first = members[0]
        members = [m for m in members if cases.not_comparable(first, m) is None]
        base = found.run(first.run.baseline_id) or found.baseline
        usable = base is not None and base.measured and not base.speculative
        if base is not None and usable and cases.not_comparable(first, base) is None:
            members = [base, *members]
        out.append(members)
    return out


def _family(page: InvestigationPage, runs: Sequence[RunFacts]) -> Family:
    drafts = [draft_run(facts) for facts in runs]
    labels = tuple(facts.run.label for facts in runs)
    account = account_of(drafts)
    missing = missing_run(drafts)
    if account is None:
        return Family(labels, drafts[0].running, None, missing)
    goal = page.goal.target if page.goal.metric == "tok_s" else None
    depths = account.depths()
    measured: dict[int, float] = {}
    for facts, draft in zip(runs, drafts, strict=True):
        if draft.num_steps and facts.figures.tok_s is not None:
            measured[draft.num_steps] = facts.figures.tok_s.mean
    ends = [d.tok_s.high for d in depths] + list(measured.values())
    top = 1.04 * max([*ends, goal or 0.0, account.baseline_tok_s or 0.0])
    best, good = account.best().num_steps, account.as_good()
    return Family(
        labels=labels,
        running=account.running,
        account=account,
        missing=missing,
        bars=tuple(_bar(d, top, measured.get(d.num_steps), best, good) for d in depths),
        gaps=tuple(_gaps(account, runs, drafts)),
        needs=tuple(_needs(account, goal, drafts)),
        goal_place=100 * goal / top if goal else None,
        baseline_place=100 * account.baseline_tok_s / top if account.baseline_tok_s else None,
        few=not account.fit.checked,
    )


def _bar(depth: Depth, top: float, measured: float | None, best: int, good: Iterable[int]) -> Bar:
    return Bar(
        depth=depth,
        low=100 * depth.tok_s.low / top,
        value=100 * depth.tok_s.value / top,
        high=100 * depth.tok_s.high / top,
        measured=None if measured is None else 100 * measured / top,
        measured_tok_s=measured,
        best=depth.num_steps == best,
        as_good=depth.num_steps in good,
    )


def _gaps(account: Account, runs: Sequence[RunFacts], drafts: Sequence[DraftRun]) -> list[Gap]:
    out = []
    for facts, draft in zip(runs, drafts, strict=True):
        tok_s = facts.figures.tok_s
        if not draft.num_steps or draft.accept_len is None or tok_s is None:
            continue
        parts = account.parts(draft.num_steps, draft.accept_len, tok_s.mean)
        if parts:
            needed, top = account.break_even(draft.num_steps), account.ceiling(draft.num_steps)
            out.append(Gap(facts, parts, needed, top))
    return out


def _needs(account: Account, goal: float | None, drafts: Sequence[DraftRun]) -> list[Need]:
    """At the best depth and at each measured one."""
    if goal is None:
        return []
    depths = {account.best().num_steps, *(d.num_steps for d in drafts if d.num_steps)}
    out = []
    for n in sorted(depths):
        length, ms = account.needs(n, goal)
        depth = account.depth(n)
        has, step = depth.accept_len.value, depth.step_ms.value
        out.append(Need(n, length, has, ms, step, length <= n + 1))
    return out


def in_words(found: Range, digits: int = 1, unit: str = "") -> str:
    """A range for a page: "16.2 (14.3 to 18.1) ms"."""
    tail = f" {unit}" if unit else ""
    return (
        f"{found.value:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f}){tail}"
    ).replace("-", "−")
