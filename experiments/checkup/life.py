"""The life of a finding, folded from what each run showed; pure, no database.

A finding is opened by the first run that shows it, seen again by later ones, and fixed by a run
that would have shown it and does not. Looking at a run again folds the same life anew, so the
order in which runs and files arrive does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from specdebug.diagnosis.findings import CATALOGUE

Kind = Literal["opened", "seen", "fixed", "reopened"]
State = Literal["open", "fixed"]

# Faults of the process itself, which a run without a draft can show or disprove as well.
ANY_RUN = frozenset({"measurement", "server life"})


@dataclass(frozen=True)
class Sight:
    """What one run showed. run: its id, None for the files that belong to no run.

    shown: code -> the finding as a dict. untried: codes it could not have shown. proves: whether
    it was measured to the end, so that absence means something. speculative: it ran with a draft.
    """

    run: int | None
    shown: Mapping[str, Mapping[str, Any]]
    untried: frozenset[str] = frozenset()
    proves: bool = False
    speculative: bool = False

    def disproves(self, code: str) -> bool:
        """Whether this run would have shown the finding and does not."""
        if not self.proves or code in self.shown or code in self.untried:
            return False
        entry = CATALOGUE.get(code)
        return self.speculative or (entry is not None and entry.family in ANY_RUN)


@dataclass(frozen=True)
class Turn:
    """One turn of a life. run: where it happened."""

    kind: Kind
    run: int | None
    statement: str = ""


@dataclass(frozen=True)
class Life:
    """A folded life; latest: the finding as the newest run that shows it gives it."""

    code: str
    state: State
    turns: tuple[Turn, ...]
    latest: Mapping[str, Any]
    opened_in: int | None
    seen_in: int | None
    fixed_in: int | None


def fold(
    sights: Iterable[Sight], *, disbelieved: Mapping[str, frozenset[int]] | None = None
) -> dict[str, Life]:
    """Lives by code, from sights in the order of the runs.

    disbelieved: code -> runs whose fix a person has taken back by reopening the finding.
    """
    ordered = list(sights)
    codes = sorted({code for sight in ordered for code in sight.shown})
    return {
        code: _life(code, ordered, (disbelieved or {}).get(code, frozenset())) for code in codes
    }


def _life(code: str, sights: list[Sight], disbelieved: frozenset[int]) -> Life:
    turns: list[Turn] = []
    state: State | None = None
    latest: Mapping[str, Any] = {}
    opened_in: int | None = None
    seen_in: int | None = None
    fixed_in: int | None = None
    for sight in sights:
        found = sight.shown.get(code)
        if found is not None:
            kind: Kind = "opened" if state is None else "seen" if state == "open" else "reopened"
            turns.append(Turn(kind, sight.run, str(found.get("statement", ""))))
            if state is None:
                opened_in = sight.run
            state, latest, seen_in, fixed_in = "open", found, sight.run, None
        elif state == "open" and sight.disproves(code) and sight.run not in disbelieved:
            turns.append(Turn("fixed", sight.run))
            state, fixed_in = "fixed", sight.run
    return Life(code, state or "open", tuple(turns), latest, opened_in, seen_in, fixed_in)
