"""The gap account as a report keeps it: plain numbers, so that published versions stay readable."""

from __future__ import annotations

from dataclasses import dataclass

from specdebug.diagnosis.account import Gap

__all__ = ["GapAccount", "GapPart", "RunGap", "run_gap"]


@dataclass(frozen=True, slots=True)
class GapPart:
    """One part of an account: tok/s won (+) or lost (-) and reached after it, milliseconds a step
    (None where the part is no time); low and high are 95 % ranges."""

    name: str
    tok_s: float
    low: float
    high: float
    reached: float
    ms: float | None
    ms_low: float | None
    ms_high: float | None


@dataclass(frozen=True, slots=True)
class GapAccount:
    """From the baseline to a measured figure, tok/s; `diagnosis.account.Gap` as plain numbers."""

    baseline: str
    baseline_tok_s: float
    measured_tok_s: float
    accept_len: float
    parts: tuple[GapPart, ...]
    break_even: float
    ceiling_tok_s: float
    spread: str
    note: str


@dataclass(frozen=True, slots=True)
class RunGap:
    """The gap account of one run."""

    run: str
    account: GapAccount


def run_gap(gap: Gap) -> RunGap:
    """The account of a run as a report keeps it."""
    parts = tuple(
        GapPart(
            part.name,
            part.tok_s.value,
            part.tok_s.low,
            part.tok_s.high,
            part.reached,
            part.ms.value if part.ms else None,
            part.ms.low if part.ms else None,
            part.ms.high if part.ms else None,
        )
        for part in gap.parts
    )
    account = GapAccount(
        gap.baseline,
        gap.baseline_tok_s,
        gap.measured_tok_s,
        gap.accept_len,
        parts,
        gap.break_even,
        gap.ceiling_tok_s,
        gap.spread,
        gap.note,
    )
    return RunGap(gap.run, account)
