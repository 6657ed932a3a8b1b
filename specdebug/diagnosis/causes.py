"""What is behind an investigation's figures: causes apart from their symptoms, each bug with its
life, and which rules fired or could not be tried.

Rows in, plain dataclasses out; which finding a run shows is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specdebug.diagnosis.findings import CATALOGUE, SEVERITIES
from specdebug.diagnosis.record import FindingRow, QuoteRow, Record

__all__ = [
    "SYMPTOMS",
    "Bug",
    "RuleFired",
    "RuleUntried",
    "bugs",
    "by_severity",
    "is_cause",
    "rules_fired",
    "rules_untried",
    "title_of",
]

# They say that something is wrong and how much; what is wrong stands behind them.
SYMPTOMS = frozenset(
    {
        "acceptance-below-reference",
        "acceptance-below-training",
        "below-break-even",
        "draft-too-deep",
        "effective-window-inferred",
        "first-position-low",
        "slower-than-baseline",
        "speculation-cannot-win",
    }
)
_VERBS = {
    "opened": "opened by",
    "seen": "seen again in",
    "fixed": "fixed, verified in",
    "reopened": "reopened by",
    "set-aside": "set aside",
    "withdrawn": "withdrawn",
}


@dataclass(frozen=True, slots=True)
class Bug:
    """One finding for a reader. life: its turns in order, each a few words that name the run.

    unjudged: what later runs lacked to judge an open one, as "R3: the input". cause: it is one
    itself and not the symptom of another. quotes: its evidence, verbatim, with line numbers.
    """

    code: str
    title: str
    family: str
    severity: str
    confidence: str
    cause: bool
    state: str
    statement: str
    opened_in: str | None
    fixed_in: str | None
    fix: str
    settled_by: str
    set_aside_reason: str
    life: tuple[str, ...]
    unjudged: tuple[str, ...]
    quotes: tuple[QuoteRow, ...]


@dataclass(frozen=True, slots=True)
class RuleFired:
    """A rule and the runs that it fired in."""

    code: str
    title: str
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleUntried:
    """A rule that no run gave what it needs; missing: what would have let it look."""

    code: str
    title: str
    missing: str


def title_of(code: str) -> str:
    """The catalogue's few words for a code; the code itself where a newer program wrote it."""
    return CATALOGUE[code].title if code in CATALOGUE else code


def is_cause(code: str) -> bool:
    """Whether a finding names what is wrong and not only that something is."""
    return code not in SYMPTOMS


def by_severity(findings: Iterable[FindingRow]) -> list[FindingRow]:
    """The gravest first; the order of the rows within one severity."""
    ranks: dict[str, int] = {s: i for i, s in enumerate(SEVERITIES)}
    return sorted(findings, key=lambda f: ranks.get(f.severity, len(ranks)))


def bugs(record: Record) -> tuple[Bug, ...]:
    """Every finding that is no mere fact, the gravest first, causes before symptoms."""
    rows = [f for f in by_severity(record.findings) if f.severity != "info"]
    rows.sort(key=lambda f: not is_cause(f.code))
    return tuple(_bug(record, row) for row in rows)


def _bug(record: Record, row: FindingRow) -> Bug:
    family = CATALOGUE[row.code].family if row.code in CATALOGUE else ""
    return Bug(
        code=row.code,
        title=title_of(row.code),
        family=family,
        severity=row.severity,
        confidence=row.confidence,
        cause=is_cause(row.code),
        state=row.state,
        statement=row.statement,
        opened_in=row.opened_in,
        fixed_in=row.fixed_in,
        fix=row.fix,
        settled_by=row.settled_by,
        set_aside_reason=row.set_aside_reason,
        life=_life(row),
        unjudged=_unjudged(record, row),
        quotes=row.evidence,
    )


def _life(row: FindingRow) -> tuple[str, ...]:
    """Turns in words; seen again and again is one turn that lists the runs."""
    said: list[str] = []
    seen: list[str] = []

    def close() -> None:
        if seen:
            said.append(f"{_VERBS['seen']} {', '.join(seen)}")
            seen.clear()

    for turn in row.turns:
        if turn.kind == "seen":
            seen.append(turn.run or "files")
            continue
        close()
        where = turn.run or ("" if turn.by else "files" if turn.kind == "opened" else "")
        who = f"by {turn.by}" if turn.by and not turn.run else ""
        verb = _VERBS.get(turn.kind, turn.kind)
        if turn.by and turn.kind == "reopened":
            verb, who, where = "reopened", f"by {turn.by}", ""
        said.append(" ".join(part for part in (verb, where, who) if part))
    close()
    if not row.turns and row.opened_in:
        said.append(f"opened by {row.opened_in}")
        if row.fixed_in:
            said.append(f"fixed, verified in {row.fixed_in}")
    return tuple(said)


def _unjudged(record: Record, row: FindingRow) -> tuple[str, ...]:
    """Runs after the last sight of an open finding that could not tell whether it is there."""
    if row.state != "open":
        return ()
    orders = {run.label: run.order for run in record.runs}
    sights = [orders[t.run] for t in row.turns if t.run in orders]
    last = max(sights, default=orders.get(row.opened_in or "", float("-inf")))
    later = sorted((r for r in record.runs if r.order > last), key=lambda r: r.order)
    return tuple(
        f"{run.label}: {run.untried[row.code]}" for run in later if row.code in run.untried
    )


def rules_fired(record: Record) -> tuple[RuleFired, ...]:
    """Which rules fired, and in which runs, by code."""
    found: dict[str, list[str]] = {}
    for run in sorted(record.runs, key=lambda r: r.order):
        for code in run.shown:
            found.setdefault(code, []).append(run.label)
    return tuple(
        RuleFired(code, title_of(code), tuple(runs)) for code, runs in sorted(found.items())
    )


def rules_untried(record: Record) -> tuple[RuleUntried, ...]:
    """Rules that none of the measured runs could try, with what the last draft run lacked."""
    looked = [r for r in record.runs if r.untried or r.shown]
    if not looked:
        return ()
    drafted = [r for r in looked if r.figures.speculative is not False] or looked
    last = max(drafted, key=lambda r: r.order)
    never = set.intersection(*(set(run.untried) for run in drafted))
    fired = {code for run in record.runs for code in run.shown}
    return tuple(
        RuleUntried(code, title_of(code), last.untried[code]) for code in sorted(never - fired)
    )
