"""Public acceptance curves for the target of a case: flags to compare with, never a proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specdebug.diagnosis.arguments import setups
from specdebug.diagnosis.facts import Case
from specdebug.eagle.curves import Curve, curves_for, shipped_curves

__all__ = ["Reference", "method_of", "reference_for", "target_names"]

_METHODS = {"EAGLE3": "eagle3", "EAGLE": "mtp", "NEXTN": "mtp"}


@dataclass(frozen=True, slots=True)
class Reference:
    """Accept length (bonus included) by num_steps for one target, lowest and highest published.

    caveat: what differs from the case at hand.
    """

    target: str
    curve: Mapping[int, tuple[float, float]]
    caveat: str

    def at(self, num_steps: int) -> tuple[float, float] | None:
        """The curve at num_steps; beyond its end the last value, which is a lower bound."""
        if num_steps in self.curve:
            return self.curve[num_steps]
        deepest = max(self.curve)
        return self.curve[deepest] if num_steps > deepest else None


def target_names(case: Case) -> tuple[str, ...]:
    """What the case calls its target: path and served name, in lower case."""
    found = []
    for setup in setups(case):
        for key in ("model_path", "served_model_name"):
            fact = setup.asked(key) or setup.logged(key)
            if fact is not None:
                found.append(str(fact.value).lower())
    return tuple(dict.fromkeys(found))


def method_of(case: Case) -> str:
    """How the case drafts, in the words of the curves; EAGLE-3 where nothing says."""
    named = [s.algorithm for s in setups(case) if s.algorithm]
    return _METHODS.get(str(named[0]).upper(), "eagle3") if named else "eagle3"


def reference_for(case: Case) -> Reference | None:
    """The span of the public curves for the case's target and method, None when there is none."""
    found: list[Curve] = curves_for(target_names(case), shipped_curves(), method_of(case))
    if not found:
        return None
    depths = sorted({n for curve in found for n in curve.accept_len})
    spans = {}
    for n in depths:
        at = [curve.accept_len[n] for curve in found if n in curve.accept_len]
        spans[n] = (min(at), max(at))
    return Reference(found[0].target, spans, "other draft, other quantisation, coding prompts")
