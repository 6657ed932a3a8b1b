"""Acceptance by draft position behind a case: measured, or inferred from runs at two depths.

It computes and names its sources; whether a figure is a fault is decided in checks/.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from specdebug.diagnosis.facts import Case, Positions
from specdebug.diagnosis.figures import Run, speculative_runs
from specdebug.diagnosis.findings import Evidence
from specdebug.measure import acceptance

__all__ = ["Profile", "first_position", "profile"]


@dataclass(frozen=True)
class Profile:
    """Conditional acceptance by position, with the weakest source it rests on.

    measured: read position by position; otherwise inferred from accept lengths at two depths, and
    then everything after the first position is one average.
    """

    conditional: tuple[float, ...]
    measured: bool
    drafts: int
    evidence: tuple[Evidence, ...]
    first_run: Run | None = None
    deep_run: Run | None = None
    positions: Positions | None = None

    @property
    def after_first(self) -> float | None:
        """Conditional acceptance after the first position, each position by how often it is
        reached; None for one position alone."""
        first, rest = self.conditional[0], self.conditional[1:]
        if not rest or not self.measured:
            return rest[0] if rest else None
        # Positions rarely reached are noise, so later ones count only while drafts reach them.
        reach, weight, total = first, 0.0, 0.0
        for rate in rest:
            weight += reach
            total += reach * rate
            reach *= rate
        return total / weight if weight else rest[0]


@lru_cache(maxsize=16)
def profile(case: Case) -> Profile | None:
    """Acceptance by position: measured if there is one, else from num_steps 1 and a deeper run."""
    for p in case.positions:
        if p.conditional:
            return Profile(
                p.conditional, True, p.drafts, (Evidence(p.source, p.line, p.text),), positions=p
            )
    chains = [r for r in speculative_runs(case) if r.chain and r.accept_len and r.num_steps]
    shallow = [r for r in chains if r.num_steps == 1]
    deep = [r for r in chains if (r.num_steps or 0) > 1]
    if not shallow:
        return None
    one = shallow[0]
    first = (one.accept_len or 1.0) - 1.0
    if not 0 < first <= 1:
        return None
    deep = [r for r in deep if not r.changes]
    if not deep:
        return Profile((first,), False, one.drafts or 0, one.evidence, one)
    far = deep[-1]
    tail = acceptance.constant_tail(first, far.accept_len or 1.0, far.num_steps or 1)
    conditional = (first,) + (tail,) * ((far.num_steps or 1) - 1)
    return Profile(conditional, False, one.drafts or 0, (*one.evidence, *far.evidence), one, far)


def first_position(case: Case) -> float | None:
    """Acceptance of the first draft position, None when nothing tells."""
    found = profile(case)
    return found.conditional[0] if found and found.conditional else None
