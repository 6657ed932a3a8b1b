"""A release that was noted, against what the log beside it betrays; says both and chooses none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

from specdebug.diagnosis.arguments import ReleaseKnowledge, Setup, release_knowledge, setups
from specdebug.diagnosis.decode import OLD_RATE, WindowReading, window_reading
from specdebug.diagnosis.facts import Boot, Case
from specdebug.diagnosis.findings import Evidence
from specdebug.sglang.releases import Release, nearest_known

__all__ = ["Doubt", "doubts"]

_ANY = ReleaseKnowledge(None, None, None, None)
_FEWEST = 3  # lines; one alone may be mangled


@dataclass(frozen=True)
class Doubt:
    """What in a log the noted release cannot have printed.

    reading: the window by the other definition of the accept rate, where the rates say it.
    """

    release: Release
    noted: Evidence
    source: str
    said: str
    reading: WindowReading | None = None


@lru_cache(maxsize=16)
def doubts(case: Case) -> tuple[Doubt, ...]:
    """Every start whose lines are not of the release that a person or another input names."""
    found = [_doubt(setup, setup.boot) for setup in setups(case) if setup.boot is not None]
    return tuple(doubt for doubt in found if doubt is not None)


def _doubt(setup: Setup, boot: Boot) -> Doubt | None:
    known = release_knowledge(setup)
    noted = known.evidence
    if known.release is None or noted is None or noted.source == boot.source:
        return None
    if boot.engine != "sglang":
        return None
    denied = _denied_rates(boot, known)
    said = _rates_say(boot, denied) if denied else _lines_say(boot, known.release)
    return Doubt(known.release, noted, boot.source, said, denied) if said else None


def _denied_rates(boot: Boot, known: ReleaseKnowledge) -> WindowReading | None:
    """The window by a definition of the accept rate that is not the release's own, where its own
    fits no window at all."""
    if window_reading(boot, known) is not None:
        return None
    reading = window_reading(boot, _ANY)
    if reading is None or reading.lines < _FEWEST or len(reading.by_formula) != 1:
        return None
    return reading


def _rates_say(boot: Boot, reading: WindowReading) -> str:
    formula = next(iter(reading.by_formula))
    printed = "up to 0.5.10.post1" if formula == OLD_RATE else "from 0.5.11 on"
    windows = " or ".join(map(str, reading.windows))
    return (
        f"the accept rates of {reading.lines} lines of {PurePath(boot.source).name} are {formula} "
        f"with a window of {windows}, which releases {printed} print"
    )


def _lines_say(boot: Boot, release: Release) -> str:
    """What the log names itself, or which releases alone print lines like its own."""
    name = PurePath(boot.source).name
    own = Release.find(boot.release) if boot.release else None
    if own is not None:
        return f"{name} names release {own} itself" if own != release else ""
    low = Release.find(boot.release_from) if boot.release_from else None
    high = Release.find(boot.release_until) if boot.release_until else None
    read = nearest_known(release)
    if low is not None and read < low:
        return f"{name} has lines of a form that was read from {low} on"
    if high is not None and read > high:
        return f"{name} has lines of a form that was read up to {high}"
    return ""
