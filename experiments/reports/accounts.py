"""What the page of the cost account shows: runs of an investigation as accounts, one per family.

A family is the runs that differ in the depth of the draft alone. The arithmetic is the library's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.models import AcceptanceCurve
from experiments.queries import InvestigationPage, RunFacts
from experiments.reports.build import known_beside_runs
from experiments.reports.families import draft_run, families_of
from specdebug.diagnosis import reference
from specdebug.diagnosis.account import DraftRun, Gap, account_of, crossover, gaps_of, missing_run
from specdebug.diagnosis.case import Case
from specdebug.diagnosis.expected import Expected, expected_of
from specdebug.eagle.account import Account, Depth, Range
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
    grouped = families_of(found)
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


def _family(page: InvestigationPage, runs: Sequence[RunFacts]) -> Family:
    drafts = [draft_run(facts) for facts in runs]
    labels = tuple(facts.run.label for facts in runs)
    account = account_of(drafts)
    missing = missing_run(drafts)
    gaps = gaps_of(drafts)
    if account is None:
        return Family(labels, drafts[0].running, None, missing, gaps=gaps)
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
        gaps=gaps,
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
