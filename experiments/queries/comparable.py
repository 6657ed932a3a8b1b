"""Which runs may be compared at all; how they compare is for the library to say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from experiments.models import Run
from experiments.queries.figures import Figures

# A server that somebody else started is SGLang as much as one started here.
SAME = {"sglang", "attached"}


class Side(Protocol):
    """A run with its figures."""

    @property
    def run(self) -> Run: ...

    @property
    def figures(self) -> Figures: ...


class Measured(NamedTuple):
    """The plainest Side."""

    run: Run
    figures: Figures


def not_comparable(one: Side, other: Side) -> str | None:
    """Why two runs must not be compared at all; None when nothing speaks against it."""
    if one.run.engine != other.run.engine and {one.run.engine, other.run.engine} != SAME:
        return f"{one.run.label} ran on {one.run.engine}, {other.run.label} on {other.run.engine}"
    mine, theirs = (r.run.plan.get("workload") or {} for r in (one, other))
    differing = sorted(
        key
        for key in mine.keys() & theirs.keys()
        # More repeats of the same work are more of the same figure.
        if key not in ("repeats", "warm_up_prompts") and mine[key] != theirs[key]
    )
    if differing:
        return "the workloads differ in " + ", ".join(
            f"{key} ({theirs[key]} and {mine[key]})" for key in differing
        )
    asked, before = one.figures.prompts, other.figures.prompts
    if asked and before and asked != before:
        return f"{one.run.label} and {other.run.label} were asked different prompts"
    if one.run.host and other.run.host and one.run.host != other.run.host:
        return f"{one.run.label} ran on {one.run.host}, {other.run.label} on {other.run.host}"
    return None


def ratio(one: Side, baseline: Side | None) -> float | None:
    """tok/s of a run over tok/s of the baseline, None where the two cannot be compared."""
    if baseline is None or one.figures.tok_s is None or baseline.figures.tok_s is None:
        return None
    if not baseline.figures.tok_s.mean or not_comparable(one, baseline) is not None:
        return None
    return one.figures.tok_s.mean / baseline.figures.tok_s.mean


def ratios(
    runs: Iterable[Run], figures: Mapping[int, Figures], baseline: int | None
) -> dict[int, float | None]:
    """Each run's `ratio` to the one of key `baseline`; figures by key of their run."""
    sides = {run.pk: Measured(run, figures[run.pk]) for run in runs}
    base = sides.get(baseline or 0)
    return {pk: ratio(side, base) for pk, side in sides.items()}
