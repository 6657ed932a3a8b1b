"""The five sentences on top of a report: asked, found, fixed, open, how far from the goal.

Each is built from rows and figures; where the record does not know, the sentence says so.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specdebug.diagnosis.causes import Bug
from specdebug.diagnosis.record import Record, RunRow
from specdebug.diagnosis.timeline import Regression
from specdebug.diagnosis.verdicts import GoalStatus

__all__ = ["Sentence", "five_sentences", "metric_of", "metric_value"]

METRICS = {
    "tok_s": ("tok/s", "throughput", 1),
    "accept_len": ("tokens a step", "accept length", 2),
    "step_ms": ("ms", "step time", 1),
}
FAULTS = ("critical", "high")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence. lead: Asked, Found, Fixed, Open or Goal."""

    lead: str
    text: str


def metric_of(record: Record) -> tuple[str, str, int]:
    """Unit, name and digits of the goal's metric."""
    return METRICS.get(record.goal.metric, ("", record.goal.metric, 2))


def metric_value(record: Record, run: RunRow) -> float | None:
    """A run's figure in the goal's metric: the mean of its repeats for a throughput."""
    if record.goal.metric == "accept_len":
        return run.figures.accept_len
    if record.goal.metric == "step_ms":
        return run.figures.step_ms
    return statistics.fmean(run.figures.tok_s) if run.figures.tok_s else None


def five_sentences(
    record: Record,
    status: GoalStatus,
    best: RunRow | None,
    known: Sequence[Bug],
    compared: Sequence[Regression],
    latest: RunRow | None = None,
) -> tuple[Sentence, ...]:
    """Always five, in this order."""
    return (
        Sentence("Asked", _ended(record.question)),
        Sentence("Found", _found(record, known, compared)),
        Sentence("Fixed", _fixed(known, status)),
        Sentence("Open", _open(known)),
        Sentence("Goal", _goal(record, status, best, latest)),
    )


def _ended(text: str) -> str:
    clean = " ".join(text.split())
    return clean if clean.endswith((".", "?", "!")) else f"{clean}."


def _found(record: Record, known: Sequence[Bug], compared: Sequence[Regression]) -> str:
    figures = _figures_in_words(record, compared)
    causes = [b for b in known if b.cause and b.severity in FAULTS and b.state != "set-aside"]
    if not causes:
        named = "no rule names a cause"
    else:
        one = "one cause" if len(causes) == 1 else f"{len(causes)} causes"
        named = f"the record names {one}: {'; '.join(lower_first(b.title) for b in causes)}"
    return f"{figures}, and {named}." if figures else f"Nothing has been measured yet, and {named}."


def _figures_in_words(record: Record, compared: Sequence[Regression]) -> str:
    """The spread of the draft runs beside the baseline, with what the comparison said."""
    base = record.baseline
    rows = [r for r in record.runs if r.figures.tok_s and (base is None or r.label != base.label)]
    drafted = [r for r in rows if r.figures.speculative is not False]
    if not drafted:
        return "" if base is None or not base.figures.tok_s else "Only the baseline is measured"
    means = sorted(statistics.fmean(r.figures.tok_s) for r in drafted)
    made = f"{means[0]:.1f}" if len(means) == 1 else f"{means[0]:.1f} to {means[-1]:.1f}"
    runs = "One run" if len(drafted) == 1 else f"{len(drafted)} runs"
    said = f"{runs} with a draft made {made} tok/s"
    if base is None or not base.figures.tok_s:
        return f"{said}, with no baseline to compare with"
    n = len(base.figures.tok_s)
    said += f" against {statistics.fmean(base.figures.tok_s):.1f} without ({base.label}, n = {n})"
    slower = {c.run for c in compared if c.against == base.label and c.flagged}
    if slower:
        said += f", {len(slower)} of {len(drafted)} shown to be slower"
    return said


def _fixed(known: Sequence[Bug], status: GoalStatus) -> str:
    fixed = [b for b in known if b.state == "fixed" and b.severity in FAULTS]
    if not fixed:
        return "Nothing has been fixed and verified yet."
    causes = [b for b in fixed if b.cause] or fixed
    said = _row_of(b.title + (f" (verified in {b.fixed_in})" if b.fixed_in else "") for b in causes)
    with_them = len(fixed) - len(causes)
    if with_them:
        said += f", and {_symptoms(with_them)} with it"
    tail = "" if status.met else "; a verified fix is not a met goal"
    return f"{said}{tail}."


def _symptoms(count: int) -> str:
    return "one symptom" if count == 1 else f"{count} symptoms"


def _row_of(titles: Iterable[str]) -> str:
    """Titles in a row, the first as the beginning of a sentence."""
    first, *rest = titles
    return "; ".join([first, *map(lower_first, rest)])


def _open(known: Sequence[Bug]) -> str:
    live = [b for b in known if b.state == "open" and b.severity in FAULTS]
    if not live:
        return "No critical or high finding is open."
    causes = [b for b in live if b.cause]
    said = _row_of(b.title for b in causes) if causes else "No cause is named"
    if len(live) > len(causes):
        said += f"; beside {_symptoms(len(live) - len(causes))} of slowness or low acceptance"
    blind: dict[str, int] = {}
    for bug in causes:
        for item in bug.unjudged:
            run = item.split(":", 1)[0]
            blind[run] = blind.get(run, 0) + 1
    for run, count in list(blind.items())[-3:]:
        said += f"; {run} could not judge {_of_them(count, len(causes))}"
    return f"{said}."


def _of_them(count: int, all_: int) -> str:
    """How many of the causes a run was blind for."""
    if all_ == 1:
        return "it"
    return f"any of the {all_}" if count == all_ else f"{count} of the {all_}"


def _goal(
    record: Record, status: GoalStatus, best: RunRow | None, latest: RunRow | None = None
) -> str:
    unit, name, digits = metric_of(record)
    value = None if best is None else metric_value(record, best)
    if status.target is None:
        return f"How far it is cannot be said: the {name} of the baseline is not known."
    if best is None or value is None:
        return f"How far it is to {status.target:.{digits}f} {unit} cannot be said: no run yet."
    word = "Met" if status.met else "Not met"
    share = f" ({100 * value / status.target:.0f} %)" if status.target else ""
    missing = abs(status.target - value)
    side = "beyond it" if status.met else "short"
    last = None if latest is None or latest is best else metric_value(record, latest)
    since = ""
    if latest is not None and last is not None and status.target:
        part = 100 * last / status.target
        since = f"; the latest, {latest.label}, has {last:.{digits}f} ({part:.0f} %)"
    return (
        f"{word}: the best run, {best.label}, has {value:.{digits}f} of "
        f"{status.target:.{digits}f} {unit}{share}, {missing:.{digits}f} {side}{since}."
    )


def lower_first(title: str) -> str:
    """A title inside a sentence; names and abbreviations keep their capitals."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]
