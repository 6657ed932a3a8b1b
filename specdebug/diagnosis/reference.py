"""Public acceptance curves for a few targets: flags to compare with, never a proof.

Figures: published accept lengths by number of draft tokens (EAGLE-3, vLLM, a coding data set).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specdebug.diagnosis.arguments import setups
from specdebug.diagnosis.facts import Case

__all__ = ["Reference", "reference_for"]


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


# Thinking off (temperature 0.6) and on (temperature 1.0); a flag needs the lower one to be missed.
_CURVES = (
    (
        ("kimi-k2.5", "kimik25"),
        Reference(
            "Kimi-K2.5",
            {
                1: (1.80, 1.83),
                2: (2.33, 2.43),
                3: (2.75, 2.88),
                4: (3.06, 3.24),
                5: (3.25, 3.46),
                6: (3.43, 3.62),
                7: (3.46, 3.71),
                8: (3.51, 3.77),
            },
            "other draft, other quantisation, coding prompts",
        ),
    ),
)


def reference_for(case: Case) -> Reference | None:
    """The curve for the case's target by its name, None when there is none."""
    names = []
    for setup in setups(case):
        for key in ("model_path", "served_model_name"):
            fact = setup.asked(key) or setup.logged(key)
            if fact is not None:
                names.append(str(fact.value).lower())
    for keys, reference in _CURVES:
        if any(key in name for key in keys for name in names):
            return reference
    return None
