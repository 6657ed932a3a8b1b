"""Expected acceptance beside the measured one: from training, from other depths, from references.

Each is a guide with its own assumption, which stands beside it; none of them is a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from specdebug.diagnosis.account import DraftRun
from specdebug.eagle.curves import Curve
from specdebug.measure.acceptance import iid_accept_len
from specdebug.measure.depths import AcceptanceByDepth, Profile

__all__ = ["Expected", "expected_of"]

Source = Literal["training", "positions", "reference"]


@dataclass(frozen=True, slots=True)
class Expected:
    """One expectation for one run, accept lengths with the bonus token.

    low and high: its range, None where it has none. assumes: what has to hold for it. verifies:
    passes behind the measured figure, 0 where not known.
    """

    run: str
    num_steps: int
    measured: float
    verifies: int
    source: Source
    value: float
    low: float | None
    high: float | None
    assumes: str

    @property
    def percent(self) -> float:
        """The measured figure against the expected one."""
        return 100.0 * (self.measured / self.value - 1.0)


def expected_of(
    runs: Sequence[DraftRun], *, val_accuracy: float | None = None, curves: Iterable[Curve] = ()
) -> tuple[Expected, ...]:
    """All expectations for the chain runs that state an accept length, run by run."""
    known = list(curves)
    found: list[Expected] = []
    for run in runs:
        if not run.num_steps or run.accept_len is None:
            continue
        if val_accuracy is not None and 0 < val_accuracy < 1:
            found.append(_from_training(run, val_accuracy))
        others = [r for r in runs if r.conditional and r.num_steps not in (0, run.num_steps)]
        if others:
            found.append(_from_positions(run, others))
        found += [e for curve in known if (e := _from_curve(run, curve)) is not None]
    return tuple(found)


def _entry(
    run: DraftRun,
    source: Source,
    value: float,
    assumes: str,
    low: float | None = None,
    high: float | None = None,
) -> Expected:
    measured = run.accept_len or 0.0
    return Expected(
        run.label, run.num_steps, measured, run.verifies, source, value, low, high, assumes
    )


def _from_training(run: DraftRun, accuracy: float) -> Expected:
    return _entry(
        run,
        "training",
        iid_accept_len(accuracy, run.num_steps),
        f"validation accuracy {accuracy:.3f} at every position, each independent of the others: a "
        "guide, since serving feeds the draft its own states back",
    )


def _from_positions(run: DraftRun, others: Sequence[DraftRun]) -> Expected:
    profiles = [Profile(r.num_steps, r.conditional, r.verifies, r.accept_len) for r in others]
    at = AcceptanceByDepth(profiles).at(run.num_steps)
    depths = ", ".join(f"{r.label} ({r.num_steps})" for r in others)
    return _entry(
        run,
        "positions",
        at.value,
        f"acceptance by position as measured in {depths}, carried to this depth",
        at.low,
        at.high,
    )


def _from_curve(run: DraftRun, curve: Curve) -> Expected | None:
    value = curve.at(run.num_steps)
    if value is None:
        return None
    beyond = "" if run.num_steps in curve.accept_len else f", end of the curve at {curve.deepest}"
    return _entry(
        run,
        "reference",
        value,
        f"{curve.target}: {curve.about or curve.source}{beyond}; another draft on other prompts, "
        "so a flag and no proof",
    )
