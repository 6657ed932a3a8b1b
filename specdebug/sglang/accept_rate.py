"""What the accept rate of a decode line means by release, and the draft window it betrays."""

from __future__ import annotations

from dataclasses import dataclass

from specdebug.sglang.releases import KNOWN, Release, nearest_known
from specdebug.sglang.rules import table

_RATES = (
    "accept_rate_log_absent",
    "accept_rate_log_v1",
    "accept_rate_log_v2",
    "accept_rate_log_v3",
)
_STRICT = "accept_rate_log_v3"


@dataclass(frozen=True)
class AcceptRate:
    """How releases `since` to `until` compute the logged accept rate, and the rule's name."""

    rule: str
    formula: str
    since: Release
    until: Release | None


@dataclass(frozen=True)
class WindowReading:
    """One reading of (accept len, accept rate): `window` tokens per step if `formula` is in use."""

    window: float
    formula: str
    since: Release
    until: Release | None


def accept_rates() -> tuple[AcceptRate, ...]:
    """Every definition of the logged accept rate, oldest first."""
    rules = {rule.id: rule for rule in table().rules}
    return tuple(
        AcceptRate(name, rules[name].formula, rules[name].since, rules[name].until)
        for name in _RATES
    )


def accept_rate_formula(release: Release) -> AcceptRate:
    """How the decode line of `release` defines its accept rate ("absent": it carries none)."""
    judged = nearest_known(release)
    return next(
        rate for rate in reversed(accept_rates()) if rate.since <= judged or rate.since == KNOWN[0]
    )


def infer_window(
    accept_len: float,
    accept_rate: float,
    release: Release | None = None,
    *,
    between: tuple[Release | None, Release | None] | None = None,
) -> list[WindowReading]:
    """The draft window that (accept len, accept rate) betrays, one entry per reading possible.

    Without `release`, `between` bounds the releases possible (None: open at that end, as a log
    gives it); without both, any release is. `window` is not rounded: both inputs carry two
    decimals, so average over several lines before rounding. Empty when the pair fits no definition.
    """
    if not (accept_len >= 1.0 and 0.0 < accept_rate <= 1.005):
        return []
    first, last = between or (None, None)
    if release is not None:
        possible: list[AcceptRate] = [accept_rate_formula(release)]
    else:
        possible = [
            rate
            for rate in accept_rates()
            if (last is None or rate.since <= last)
            and (first is None or rate.until is None or rate.until >= first)
        ]
    out: list[WindowReading] = []
    with_bonus = [rate for rate in possible if rate.rule not in (_STRICT, _RATES[0])]
    if with_bonus:
        window = accept_len / accept_rate
        formula = "window = accept len / accept rate"
        out.append(WindowReading(window, formula, with_bonus[0].since, with_bonus[-1].until))
    strict = [rate for rate in possible if rate.rule == _STRICT]
    if strict and accept_len > 1.0:
        window = 1 + (accept_len - 1) / accept_rate
        formula = "window = 1 + (accept len - 1) / accept rate"
        out.append(WindowReading(window, formula, strict[0].since, strict[0].until))
    return out
