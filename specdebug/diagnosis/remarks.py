"""What the summary of an input says beside what was read from it: where it does not fit another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from specdebug.diagnosis.configs import unseen
from specdebug.diagnosis.doubts import doubts
from specdebug.diagnosis.facts import Case, InputSummary
from specdebug.diagnosis.strangers import strangers

__all__ = ["remarked"]


def remarked(case: Case) -> tuple[InputSummary, ...]:
    """The inputs of a case, each with the remarks on it behind its summary."""
    said: dict[str, list[str]] = {}
    for launch in case.launches:
        if remark := unseen(launch):
            said.setdefault(launch.source, []).append(remark)
    for stranger in strangers(case):
        name = PurePath(stranger.launch.source).name
        why = ", ".join(f"{k} {a.value} and {b.value}" for k, a, b in stranger.differing()[:4])
        if stranger.plain:
            why = "one of the two is without speculation"
        remark = f"not the start that {name} asks for ({why})"
        said.setdefault(stranger.start.source, []).append(remark)
    for doubt in doubts(case):
        said.setdefault(doubt.noted.source, []).append(f"release {doubt.release}, but {doubt.said}")
    return tuple(
        replace(given, summary="; ".join([given.summary, *dict.fromkeys(said[given.name])]))
        if given.name in said
        else given
        for given in case.inputs
    )
