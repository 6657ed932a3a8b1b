"""From measured runs to the account of a speculative step: which runs fit, how surely, what misses.

The arithmetic is in eagle/account.py and measure/depths.py; here figures of runs become its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.figures import baseline, comparable, primary, speculative_runs
from specdebug.diagnosis.profile import profile
from specdebug.eagle.account import FACTOR, Account, Part, Range, StepPoint, fit_steps, whole_step
from specdebug.eagle.speedup import CostPoint, missing_cost_run, step_ms
from specdebug.measure.acceptance import conditional_from_histogram, constant_tail
from specdebug.measure.depths import AcceptanceByDepth, Profile
from specdebug.measure.middle import mean, median
from specdebug.measure.two_means import variance

__all__ = [
    "DraftRun",
    "Gap",
    "account_of",
    "accounts_by_batch",
    "crossover",
    "draft_runs",
    "gaps_of",
    "missing_run",
]

# Taken where no run was repeated, and for what two starts of one configuration differ by beyond
# the spread of repeats within one start.
ASSUMED_CV = 0.03
BETWEEN_STARTS = 0.02


@dataclass(frozen=True, slots=True)
class DraftRun:
    """One measured configuration as the account takes it; num_steps 0 is the plain run.

    tok_s: output tokens per second of each repeat. accept_len: bonus included, pooled.
    conditional: acceptance by position over `verifies` passes, empty where only accept_len is
    known. running: requests decoded at once. chain: False for a tree of drafts, whose step has
    other costs.
    """

    label: str
    num_steps: int
    tok_s: tuple[float, ...]
    accept_len: float | None = None
    running: float = 1.0
    conditional: tuple[float, ...] = ()
    verifies: int = 0
    chain: bool = True

    @classmethod
    def with_histogram(
        cls,
        label: str,
        num_steps: int,
        tok_s: Sequence[float],
        accept_len: float,
        histogram: Sequence[int],
        running: float = 1.0,
    ) -> DraftRun:
        """With counts of exactly k accepted drafts."""
        rates = conditional_from_histogram(histogram, num_steps)
        return cls(label, num_steps, tuple(tok_s), accept_len, running, rates, sum(histogram))

    @property
    def step_ms(self) -> float | None:
        """Mean step time; None without the figures for it."""
        length = 1.0 if self.num_steps == 0 else self.accept_len
        if not self.tok_s or length is None:
            return None
        return step_ms(length, mean(self.tok_s), self.running)


@dataclass(frozen=True, slots=True)
class _Spread:
    """How far runs repeat: sd of repeats on logarithms (None: nothing was repeated), its freedom,
    and the standard errors in a 95 % range."""

    sd: float | None
    freedom: int
    factor: float

    @classmethod
    def of(cls, runs: Iterable[DraftRun]) -> _Spread:
        total, freedom = 0.0, 0
        for run in runs:
            if len(run.tok_s) > 1:
                logs = [math.log(v) for v in run.tok_s]
                total += variance(logs) * (len(logs) - 1)
                freedom += len(logs) - 1
        if not freedom:
            return cls(None, 0, FACTOR)
        if freedom >= 30:
            return cls(math.sqrt(total / freedom), freedom, FACTOR)
        from scipy.special import stdtrit

        return cls(math.sqrt(total / freedom), freedom, float(stdtrit(freedom, 0.975)))

    def error(self, repeats: int) -> float:
        """Relative standard error of a run's mean, against another start of the same."""
        if self.sd is None:
            return ASSUMED_CV
        return math.hypot(self.sd / math.sqrt(repeats), BETWEEN_STARTS)

    def around(self, value: float, repeats: int) -> Range:
        reach = self.factor * value * self.error(repeats)
        return Range(value, value - reach, value + reach)

    @property
    def said(self) -> str:
        if self.sd is None:
            return f"{100 * ASSUMED_CV:.1f} % between repeats (assumed: nothing was repeated)"
        return (
            f"{100 * self.sd:.1f} % between repeats ({self.freedom} d.f.), "
            f"{100 * BETWEEN_STARTS:.0f} % between starts (assumed)"
        )


def account_of(runs: Sequence[DraftRun]) -> Account | None:
    """The account of runs at one batch size; None with fewer than two depths (`missing_run`)."""
    drafted = [r for r in runs if r.num_steps > 0 and r.step_ms and r.chain]
    acceptance = _acceptance(drafted)
    if acceptance is None:
        return None
    spread = _Spread.of(runs)
    fit = fit_steps(
        [
            StepPoint(r.num_steps, ms, ms * spread.error(len(r.tok_s)), r.label, len(r.tok_s))
            for r in drafted
            if (ms := r.step_ms)
        ],
        spread.factor,
    )
    if fit is None:
        return None
    plain = next((r for r in runs if r.num_steps == 0 and r.tok_s), None)
    typical = round(median(len(r.tok_s) for r in drafted))

    def accept_len_at(num_steps: int) -> Range:
        found = acceptance.at(num_steps)
        return Range(found.value, found.low, found.high)

    return Account(
        running=drafted[0].running,
        fit=fit,
        plain=spread.around(plain.step_ms, len(plain.tok_s)) if plain and plain.step_ms else None,
        accept_len_at=accept_len_at,
        new_run=spread.error(typical),
        spread=spread.said,
        deepest_known=acceptance.deepest,
    )


@dataclass(frozen=True, slots=True)
class Gap:
    """From the baseline to one run in tok/s; the parts add up to the difference exactly.

    note: why the longer step stays in one part, empty where it is shared out. break_even: accept
    length at which the run draws level; ceiling_tok_s: of a perfect draft; both by the fit where
    there is one, else by the run's own step.
    """

    run: str
    baseline: str
    baseline_tok_s: float
    measured_tok_s: float
    accept_len: float
    parts: tuple[Part, ...]
    break_even: float
    ceiling_tok_s: float
    spread: str
    note: str = ""


ONE_DEPTH = "one num_steps only: drafting and fixed overhead cannot be told apart"
NO_LONGER = "the step is no longer than a plain one: there is nothing to share out"
TREE = "a tree of drafts: its step is on no cost line over num_steps"


def gaps_of(runs: Sequence[DraftRun]) -> tuple[Gap, ...]:
    """The way from the plain run to each drafted one, for runs that one account may hold.

    Empty without a plain run; a drafted run without throughput or accept length is left out.
    """
    plain = next((r for r in runs if r.num_steps == 0 and r.tok_s), None)
    if plain is None:
        return ()
    account, spread = account_of(runs), _Spread.of(runs)
    return tuple(
        _gap(plain, run, account if run.chain else None, spread)
        for run in runs
        if run.num_steps > 0 and run.tok_s and run.accept_len
    )


def _gap(plain: DraftRun, run: DraftRun, account: Account | None, spread: _Spread) -> Gap:
    length, tok_s = run.accept_len or 1.0, mean(run.tok_s)
    base, own = plain.step_ms or 0.0, run.step_ms or 0.0
    parts: tuple[Part, ...] = ()
    note, needed, top = "", own / base, 1000.0 * (run.num_steps + 1) * run.running / own
    if account is not None:
        parts = account.parts(run.num_steps, length, tok_s)
        needed = account.break_even(run.num_steps) or needed
        top = account.ceiling(run.num_steps)
    if not parts:
        note = NO_LONGER if own <= base else ONE_DEPTH if run.chain else TREE
        known = _acceptance([run]) if run.chain else None
        reach = ASSUMED_CV * length
        around = Range(length, max(length - reach, 1.0), length + reach)
        if known is not None:
            at = known.at(run.num_steps)
            around = Range(length, length * at.low / at.value, length * at.high / at.value)
        parts = whole_step(
            spread.around(mean(plain.tok_s), len(plain.tok_s)),
            around,
            spread.around(tok_s, len(run.tok_s)),
        )
    return Gap(
        run.label,
        plain.label,
        mean(plain.tok_s),
        tok_s,
        length,
        parts,
        needed,
        top,
        spread.said,
        note,
    )


def _acceptance(runs: Sequence[DraftRun]) -> AcceptanceByDepth | None:
    """Profiles by position; from accept lengths alone only the first position and one tail."""
    profiles = [
        Profile(r.num_steps, r.conditional, r.verifies, r.accept_len) for r in runs if r.conditional
    ]
    lengths = {r.num_steps: r for r in runs if r.accept_len and not r.conditional}
    firsts = [p.conditional[0] for p in profiles]
    if 1 in lengths and 1 < (lengths[1].accept_len or 0) <= 2:
        firsts.insert(0, (lengths[1].accept_len or 1.0) - 1)
        profiles.append(Profile(1, (firsts[0],), lengths[1].verifies))
    for steps, run in lengths.items():
        if steps > 1 and firsts:
            tail = constant_tail(firsts[0], run.accept_len or 1.0, steps)
            profiles.append(Profile(steps, (firsts[0], *(tail,) * (steps - 1)), run.verifies))
    return AcceptanceByDepth(profiles) if profiles else None


def accounts_by_batch(runs: Sequence[DraftRun]) -> tuple[Account, ...]:
    """One account for each number of running requests that has enough runs, smallest first."""
    batches = sorted({r.running for r in runs})
    found = (account_of([r for r in runs if r.running == batch]) for batch in batches)
    return tuple(account for account in found if account is not None)


def crossover(accounts: Sequence[Account]) -> float | None:
    """The number of running requests at which the best draft stops paying; None if it is not seen.

    Between two measured batch sizes the logarithm of the speed-up is taken as a straight line in
    the logarithm of the batch.
    """
    points = []
    for account in accounts:
        base = account.baseline_tok_s
        if base is not None:
            gain = math.log(account.best().tok_s.value / base)
            points.append((math.log(account.running), gain))
    for (x, before), (y, after) in pairwise(points):
        if before > 0 >= after:
            return math.exp(x + (y - x) * before / (before - after))
    return None


def missing_run(runs: Sequence[DraftRun]) -> str | None:
    """The run, or the figure of a run, that would identify the account's missing term."""
    blind = [r for r in runs if r.num_steps > 0 and r.tok_s and r.accept_len is None]
    points = [
        CostPoint(r.num_steps, ms, r.label) for r in runs if r.num_steps > 0 and (ms := r.step_ms)
    ]
    plain = next((r.step_ms for r in runs if r.num_steps == 0), None)
    if blind and len({p.num_steps for p in points}) < 2:
        return f"the accept length of {blind[-1].label}: without it its step time is unknown"
    lacking = missing_cost_run(points, plain)
    if lacking is not None:
        return lacking
    if account_of(runs) is None:
        return (
            "a run at num_steps 1, or acceptance by position: how the first draft position is "
            "accepted is unknown"
        )
    if len({p.num_steps for p in points}) == 2:
        middle = sorted({p.num_steps for p in points})
        between = round(math.sqrt(middle[0] * middle[1]))
        if middle[0] < between < middle[1]:
            return (
                f"a run at num_steps {between}: two depths always lie on a line, a third one "
                "checks it"
            )
    return None


def draft_runs(case: Case) -> tuple[DraftRun, ...]:
    """The runs of a case that one account may hold: chains at the load of the main one."""
    main, base = primary(case), baseline(case)
    if main is None:
        return ()
    found: list[DraftRun] = []
    if base is not None and base.tok_s:
        samples = base.samples or (base.tok_s,)
        batch = base.running if base.running_known else main.running
        found.append(DraftRun(base.label, 0, samples, None, batch))
    known = profile(case)
    # Rows win over logs of the same depth, as in the cost line.
    rows = {r.num_steps: r for r in sorted(speculative_runs(case), key=lambda r: r.origin == "row")}
    for steps, run in sorted(rows.items(), key=lambda pair: pair[0] or 0):
        if not steps or not run.chain or not comparable(main, run) or not run.tok_s:
            continue
        position = next((p for p in case.positions if p.num_steps == steps and p.conditional), None)
        found.append(
            DraftRun(
                run.label,
                steps,
                run.samples or (run.tok_s,),
                run.accept_len,
                main.running,
                position.conditional if position else (),
                position.drafts if position else (run.drafts or 0),
            )
        )
    if known is not None and known.measured and not any(r.conditional for r in found):
        # A profile that names no depth belongs to the deepest run there is.
        deep = max((r for r in found if r.num_steps), key=lambda r: r.num_steps, default=None)
        if deep is not None:
            found[found.index(deep)] = DraftRun(
                deep.label,
                deep.num_steps,
                deep.tok_s,
                deep.accept_len,
                deep.running,
                known.conditional[: deep.num_steps],
                known.drafts,
            )
    return tuple(found)
