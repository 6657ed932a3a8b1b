"""Makes a run and its prediction out of an advice: what to start, what it is expected to show.

Advice that needs no run, or a person's hand, gives none. What it costs comes from earlier starts.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from specdebug.diagnosis.account import account_of, draft_runs
from specdebug.diagnosis.advice import Advice, Effort
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.figures import Run, runs

__all__ = ["Cost", "NextRun", "Spent", "cost_of", "next_run", "without_speculation"]

STEPS, TOKENS = "--speculative-num-steps", "--speculative-num-draft-tokens"
# How far a run that should not differ may lie from the one it repeats, at a spread of 3 %.
SAME = (0.94, 1.06)


@dataclass(frozen=True, slots=True)
class NextRun:
    """One run to start from an earlier one, with the hypothesis that it tests.

    of: label of the run whose plan it takes. flags: arguments to set. plain: take the draft out.
    The prediction is registered before it starts: metric, baseline label, direction, ratio bounds.
    """

    title: str
    claim: str
    mechanism: str
    of: str
    metric: str
    baseline: str
    direction: Literal["up", "down", "within"]
    low: float | None = None
    high: float | None = None
    flags: Mapping[str, int] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    plain: bool = False


def next_run(advice: Advice, case: Case) -> NextRun | None:
    """The run behind an advice; None where nothing can be started from it."""
    of = next((r for r in runs(case) if r.label == advice.run), None)
    if of is None:
        return None
    if advice.key in ("accept-length", "positions"):
        return _again(advice, of, "records acceptance by position")
    if advice.key in ("repeat-baseline", "repeat-variants"):
        return _again(advice, of, "says how far it repeats")
    if advice.key == "overhead":
        return _recorded_steps(advice, of)
    if advice.key == "plain-run":
        return _plain(advice, of)
    if advice.key in ("second-depth", "best-depth") and advice.num_steps:
        return _depth(advice, of, case)
    return None


def _again(advice: Advice, of: Run, why: str) -> NextRun:
    return NextRun(
        title=f"{of.label} again: {why}"[:200],
        claim=f"{of.label} repeats: its throughput comes again within {100 * (SAME[1] - 1):.0f} %",
        mechanism=f"{advice.action}. It settles {advice.settles}.",
        of=of.label,
        metric="tok_s",
        baseline=of.label,
        direction="within",
        low=SAME[0],
        high=SAME[1],
    )


def _recorded_steps(advice: Advice, of: Run) -> NextRun:
    found = _again(advice, of, "records the time of each step")
    return NextRun(
        title=found.title,
        claim=f"Recording step times shows the overhead of {of.label} and costs no throughput",
        mechanism=found.mechanism,
        of=of.label,
        metric="tok_s",
        baseline=of.label,
        direction="within",
        low=SAME[0],
        high=SAME[1],
        env={"SGLANG_RECORD_STEP_TIME": "1"},
    )


def _plain(advice: Advice, of: Run) -> NextRun:
    return NextRun(
        title=f"{of.label} without speculation: the baseline",
        claim=f"The draft of {of.label} makes serving faster: without it throughput falls",
        mechanism=f"{advice.action}. It settles {advice.settles}.",
        of=of.label,
        metric="tok_s",
        baseline=of.label,
        direction="down",
        plain=True,
    )


def _depth(advice: Advice, of: Run, case: Case) -> NextRun:
    steps = advice.num_steps or 1
    account = account_of(draft_runs(case))
    metric, low, high = "step_ms", 0.5, 2.0
    claim = f"At num_steps {steps} a step costs more or less by draft forwards alone"
    if account is not None and of.tok_s:
        at = account.depth(steps).tok_s
        metric, low, high = "tok_s", at.low / of.tok_s, at.high / of.tok_s
        claim = f"At num_steps {steps} throughput is {at.low:.0f} to {at.high:.0f} tok/s"
    elif of.num_steps:
        # Between nothing and a plain step for each draft step: wide, as one depth allows no more.
        ends = (0.98, 3.0) if steps > of.num_steps else (0.2, 1.02)
        low, high = ends
        claim = f"At num_steps {steps} a step takes {low:g} to {high:g} times that of {of.label}"
    return NextRun(
        title=f"{of.label} at num_steps {steps}",
        claim=claim,
        mechanism=f"{advice.action}. It settles {advice.settles}.",
        of=of.label,
        metric=metric,
        baseline=of.label,
        direction="within",
        low=low,
        high=high,
        flags={STEPS: steps, TOKENS: steps + 1},
    )


def without_speculation(argv: Sequence[str]) -> list[str]:
    """The arguments without every flag of speculation, in either spelling."""
    kept: list[str] = []
    dropping = False
    for argument in argv:
        if argument.startswith("--"):
            dropping = argument.startswith(("--speculative-", "--speculative_"))
        if not dropping:
            kept.append(argument)
    return kept


@dataclass(frozen=True, slots=True)
class Spent:
    """What an earlier run took: seconds to be ready, seconds after that, GPUs held."""

    start_seconds: float
    measure_seconds: float
    gpus: int = 1


@dataclass(frozen=True, slots=True)
class Cost:
    """GPU minutes of an experiment from `n` earlier starts: their median, and the dearest."""

    gpu_minutes: float
    most: float
    n: int


_STARTS: dict[Effort, int] = {"no run": 0, "one request": 1, "one run": 1, "several runs": 2}


def cost_of(effort: Effort, spent: Iterable[Spent], repeats: int = 3) -> Cost | None:
    """What an effort costs on this host; None where no run was ever started here.

    "one request" pays for a start alone, "several runs" for two starts with `repeats` times the
    measuring of an earlier run each.
    """
    known = [s for s in spent if s.start_seconds >= 0 and s.measure_seconds >= 0]
    if not known or not _STARTS[effort]:
        return None if not known else Cost(0.0, 0.0, len(known))
    share = {"one request": 0.1, "one run": 1.0}.get(effort, float(repeats))
    minutes = [
        _STARTS[effort] * s.gpus * (s.start_seconds + share * s.measure_seconds) / 60 for s in known
    ]
    return Cost(statistics.median(minutes), max(minutes), len(known))
