"""The rows of an investigation as plain data, which a report is built from; no database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from specdebug.diagnosis.facts import Measured
from specdebug.diagnosis.verdicts import AppliedVerdict, Goal, PredictionVerdict

__all__ = [
    "ChangeRow",
    "FindingRow",
    "HypothesisRow",
    "NoteRow",
    "QuoteRow",
    "Record",
    "RunRow",
    "SettingRow",
    "TurnRow",
]


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One thing a run changed. kind: argument, draft-config, patch, environment or version."""

    key: str
    before: Any = None
    after: Any = None
    kind: str = "argument"
    note: str = ""

    def __str__(self) -> str:
        if self.before is None and self.after is None:
            return f"{self.key}: {self.note}" if self.note else self.key
        return f"{self.key} {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One argument of a run. asked, in_force: None with was_asked, known False where not stated.

    origin: explicit, default, override or unknown; line: of the run's log, where it says so.
    """

    key: str
    asked: Any = None
    was_asked: bool = False
    in_force: Any = None
    known: bool = False
    origin: str = "unknown"
    why: str = ""
    line: int | None = None

    @property
    def differs(self) -> bool:
        """Whether something else is in force than was asked."""
        return self.was_asked and self.known and self.asked != self.in_force


@dataclass(frozen=True, slots=True)
class QuoteRow:
    """A piece of evidence, verbatim. line: 1-based, None where lines mean nothing."""

    source: str
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One turn of a finding's life: opened, seen, fixed, reopened, set-aside; run: its label."""

    kind: str
    run: str | None = None
    by: str = ""
    at: datetime | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run. order: its place in the story; at: its time, None where only the order is known.

    figures: what was measured, under the run's label. follows: label of the run it was derived
    from. requested, effective: by the engine's argument names, effective empty where not known.
    shown: codes of the findings this run shows; untried: code -> the input missing to judge it.
    """

    label: str
    title: str
    order: float
    figures: Measured
    at: datetime | None = None
    is_baseline: bool = False
    follows: str | None = None
    hypothesis: str | None = None
    state: str = "done"
    reason: str = ""
    note: str = ""
    requested: Mapping[str, Any] = field(default_factory=dict)
    effective: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[ChangeRow, ...] = ()
    settings: tuple[SettingRow, ...] = ()
    shown: tuple[str, ...] = ()
    untried: Mapping[str, str] = field(default_factory=dict)
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class HypothesisRow:
    """A claim with its registered prediction and both verdicts, each None until there is one.

    registered: in words, when the prediction was made: before its run, afterwards, or not at all.
    """

    label: str
    claim: str
    order: float
    mechanism: str = ""
    prediction: str = ""
    applied: AppliedVerdict | None = None
    outcome: PredictionVerdict | None = None
    run: str | None = None
    rules_out: tuple[str, ...] = ()
    follows_from: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    at: datetime | None = None
    author: str = ""
    registered: str = ""


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding with its life. state: open, fixed, set-aside or withdrawn; *_in: run labels."""

    code: str
    severity: str
    confidence: str
    statement: str
    state: str = "open"
    opened_in: str | None = None
    fixed_in: str | None = None
    fix: str = ""
    settled_by: str = ""
    set_aside_reason: str = ""
    order: float | None = None
    at: datetime | None = None
    evidence: tuple[QuoteRow, ...] = ()
    turns: tuple[TurnRow, ...] = ()


@dataclass(frozen=True, slots=True)
class NoteRow:
    """An event that is no run and no hypothesis. kind: observation, source, fix, belief or note."""

    kind: str
    title: str
    order: float
    text: str = ""
    run: str | None = None
    hypothesis: str | None = None
    at: datetime | None = None
    author: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One investigation. exception: the signed reason for closing against the rules, "" if none.

    people: who opened it, stated, added or decided something, each once.
    """

    title: str
    question: str
    goal: Goal
    runs: tuple[RunRow, ...]
    hypotheses: tuple[HypothesisRow, ...] = ()
    findings: tuple[FindingRow, ...] = ()
    notes: tuple[NoteRow, ...] = ()
    state: str = "open"
    context: str = ""
    exception: str = ""
    people: tuple[str, ...] = ()
    opened_at: datetime | None = None
    closed_at: datetime | None = None

    @property
    def baseline(self) -> RunRow | None:
        """The baseline run, else the first plain one that was measured."""
        marked = [r for r in self.runs if r.is_baseline]
        plain = [r for r in self.runs if r.figures.speculative is False and r.figures.tok_s]
        return next(iter(marked or plain), None)

    def run(self, label: str | None) -> RunRow | None:
        """The run with this label."""
        return next((r for r in self.runs if r.label == label), None)
