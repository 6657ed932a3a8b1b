"""An investigation as one drawing: swim-lanes of what was thought, done and learnt, and the lives
of its findings under them, with lines between what belongs together.

From left to right is the order of the timeline and not the clock: of many steps only the order is
known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from django.urls import reverse

from experiments.models import Finding, FindingEvent, HypothesisLink
from experiments.queries import Dossier, FindingFacts, HypothesisFacts, RunFacts
from experiments.reports.drawing import Drawing
from experiments.reports.plots import Plot, hue
from specdebug.diagnosis.findings import severity_rank

LEFT, RIGHT = 1.0, 99.0  # per cent
THOUGHTS, EVENTS, RUNS = 34.0, 84.0, 216.0  # the lanes' base lines, pixels
TALLEST = 84.0  # pixels of the fastest run
FIRST_LIFE, LIFE = 284.0, 24.0
COLUMNS_A_STRETCH = 8  # a stretch is as wide as plot.css makes it: 20rem at least
MOST_STRETCHES = 24
MOST_LIVES = 40
Kind = FindingEvent.Kind


@dataclass(frozen=True)
class Places:
    """Where each row stands from left to right, in per cent, by kind and key."""

    at: dict[tuple[str, int], float]
    columns: int

    @property
    def stretches(self) -> int:
        """How wide it should be drawn, 1 to `MOST_STRETCHES`."""
        return max(1, min(MOST_STRETCHES, -(-self.columns // COLUMNS_A_STRETCH)))


def places(found: Dossier) -> Places:
    """One column for every step of the timeline."""
    rows = [
        *((h.hypothesis.position, "hypothesis", h.hypothesis.pk) for h in found.hypotheses),
        *((e.position, "event", e.pk) for e in found.events),
        *((r.run.position, "run", r.run.pk) for r in found.runs),
    ]
    rows.sort()
    width = (RIGHT - LEFT) / max(len(rows), 1)
    at = {(kind, pk): LEFT + width * (i + 0.5) for i, (_, kind, pk) in enumerate(rows)}
    return Places(at, len(rows))


def lanes(found: Dossier, goal: float | None) -> Plot:
    """The drawing and its table. goal: tok/s to reach, None where the goal is another figure."""
    where = places(found)
    lives = _lives(found)
    bottom = FIRST_LIFE + LIFE * len(lives) + 6
    drawing = Drawing(bottom, _in_words(found), links=True)
    measured = "measured, tok/s" + (
        "" if goal is None else f"; the dashed line is the goal, {goal:.4g}"
    )
    for words, y in (("thought", 12), ("done", EVENTS - 22), (measured, RUNS - 108)):
        drawing.text(0, y, words, "lane-name")
    if lives:
        drawing.text(0, FIRST_LIFE - 12, "findings, from opened to fixed", "lane-name")
    for y in (THOUGHTS, EVENTS, RUNS):
        drawing.line(0, y, 100, y, "rail")
    _edges(drawing, found, where, lives)
    for facts in found.hypotheses:
        _hypothesis(drawing, facts, where)
    for event in found.events:
        x = where.at["event", event.pk]
        drawing.begin_link(f"#e{event.pk}", f"{event.get_kind_display()}: {event.title}")
        drawing.dot(x, EVENTS, 6, f"event-{event.kind}", event.title)
        drawing.end_link()
    _runs(drawing, found, where, goal)
    for i, life in enumerate(lives):
        _life(drawing, life, where, FIRST_LIFE + LIFE * i)
    head = ("place", "lane", "label", "what", "state")
    return Plot("map", "Map of the investigation", "", drawing, head, tuple(_rows(found, lives)))


def _lives(found: Dossier) -> list[FindingFacts]:
    """Findings that a run has shown, the gravest first; what was withdrawn is left out."""
    known = [f for f in found.findings if f.events and f.finding.state != Finding.State.WITHDRAWN]
    known.sort(key=lambda f: severity_rank(cast("Any", f.finding.severity)))
    return known[:MOST_LIVES]


def _edges(drawing: Drawing, found: Dossier, where: Places, lives: Iterable[FindingFacts]) -> None:
    """What a run tests, what it opened, and how hypotheses follow from each other."""
    for facts in found.runs:
        run = facts.run
        if run.hypothesis_id and ("hypothesis", run.hypothesis_id) in where.at:
            x1, x2 = where.at["hypothesis", run.hypothesis_id], where.at["run", run.pk]
            drawing.curve(x1, THOUGHTS + 9, x2, RUNS, "edge tests")
    for i, life in enumerate(lives):
        opened = life.finding.opened_in_id
        if opened and ("run", opened) in where.at:
            x = where.at["run", opened]
            drawing.line(x, RUNS + 26, x, FIRST_LIFE + LIFE * i + 10, "edge opened")
    for known in found.hypotheses:
        for link in known.links:
            ends = [where.at.get(("hypothesis", pk)) for pk in (link.other_id, link.origin_id)]
            if ends[0] is not None and ends[1] is not None:
                tone = "rules-out" if link.kind == HypothesisLink.Kind.RULES_OUT else "follows"
                drawing.arc(ends[0], ends[1], THOUGHTS - 9, 22, f"edge {tone}")


def _hypothesis(drawing: Drawing, facts: HypothesisFacts, where: Places) -> None:
    row, verdict = facts.hypothesis, facts.verdict
    outcome = verdict.outcome if verdict else "untested"
    x = where.at["hypothesis", row.pk]
    drawing.begin_link(f"#h{row.number}", f"{row}: {outcome}")
    drawing.dot(x, THOUGHTS, 11, f"claim {outcome}", f"{row.claim} ({outcome})")
    sign = {"supported": "✓", "refuted": "✗", "undecided": "?"}.get(outcome, "")
    drawing.text(x, THOUGHTS + 4, row.label, "in-mark", "middle")
    if sign:
        drawing.text(x, THOUGHTS - 6, sign, f"sign {outcome}", dx=11)
    drawing.end_link()


def _runs(drawing: Drawing, found: Dossier, where: Places, goal: float | None) -> None:
    values = [f.figures.tok_s.mean for f in found.runs if f.figures.tok_s]
    top = max([*values, goal or 0.0, 1e-9])
    if goal is not None:
        y = RUNS - TALLEST * goal / top
        drawing.line(0, y, 100, y, "reference")
    width = min(2.6, 0.55 * (RIGHT - LEFT) / max(where.columns, 1))
    for facts in found.runs:
        run, x = facts.run, where.at["run", facts.run.pk]
        value = facts.figures.tok_s.mean if facts.figures.tok_s else None
        says = "no figure" if value is None else f"{value:.1f} tok/s, n = {facts.figures.n}"
        drawing.begin_link(f"#r{run.number}", f"{run}: {run.state}, {says}")
        if value is None:
            drawing.dot(x, RUNS, 5, f"state-{run.state}", f"{run}: {run.state}")
        else:
            tall = TALLEST * value / top
            drawing.rect(x - width / 2, RUNS - tall, width, tall, f"fill-{hue(run.number)}", says)
            drawing.text(x, RUNS - tall - 5, f"{value:.3g}", "tick", "middle")
        drawing.text(x, RUNS + 15, run.label, "name", "middle")
        drawing.end_link()


def _life(drawing: Drawing, facts: FindingFacts, where: Places, y: float) -> None:
    """A finding from its opening to its fix, or on to the right edge while it is open."""
    row = facts.finding
    turns = [
        (where.at["run", turn.run_id], turn.kind)
        for turn in facts.events
        if turn.run_id is not None and ("run", turn.run_id) in where.at
    ]
    begin = min((x for x, _ in turns), default=LEFT)
    slug = row.investigation.slug
    says = f"{row.severity} {row.code}, {row.get_state_display()}"
    drawing.begin_link(reverse("finding", args=[slug, row.pk]), says)
    for start, end in _stretches(turns, row.state == Finding.State.OPEN):
        drawing.rect(start, y + 6, end - start, 8, f"life {row.severity}", row.statement)
    for x, kind in turns:
        tone = "fixed" if kind == Kind.FIXED else row.severity
        drawing.dot(x, y + 10, 4.5, f"turn {tone}", f"{kind}")
        if kind == Kind.FIXED:
            drawing.text(x, y + 14, "✓", "sign supported", dx=7)
    late = begin > 60
    drawing.text(
        begin, y + 2, row.code, f"code {row.severity}", "end" if late else "", -8 if late else 8
    )
    drawing.end_link()


def _stretches(turns: list[tuple[float, str]], still_open: bool) -> list[tuple[float, float]]:
    """From each opening to the fix after it; the last one runs on while the finding is open."""
    found: list[tuple[float, float]] = []
    begin: float | None = None
    for x, kind in sorted(turns):
        if kind in (Kind.OPENED, Kind.REOPENED, Kind.SEEN) and begin is None:
            begin = x
        elif kind == Kind.FIXED and begin is not None:
            found.append((begin, x))
            begin = None
    if begin is not None:
        found.append((begin, 100.0 if still_open else max(x for x, _ in turns)))
    return found


def _in_words(found: Dossier) -> str:
    return (
        f"Map of the investigation: {len(found.hypotheses)} hypotheses, {len(found.runs)} runs "
        f"and {len(found.findings)} findings in order; the timeline below tells it in words."
    )


def _rows(
    found: Dossier, lives: Iterable[FindingFacts]
) -> Iterable[tuple[str | float | int | None, ...]]:
    steps: list[tuple[float, tuple[str, str, str, str]]] = []
    for facts in found.hypotheses:
        state = facts.verdict.outcome if facts.verdict else "untested"
        row = facts.hypothesis
        steps.append((row.position, ("thought", row.label, row.claim, state)))
    steps += [(e.position, ("done", e.kind, e.title, "")) for e in found.events]
    steps += [
        (r.run.position, ("measured", r.run.label, r.run.title, _said(r))) for r in found.runs
    ]
    for number, (_, cells) in enumerate(sorted(steps), start=1):
        yield (number, *cells)
    for life in lives:
        turns = ", ".join(f"{t.kind} {t.run.label if t.run else ''}".strip() for t in life.events)
        yield (None, "finding", life.finding.code, turns, life.finding.state)


def _said(facts: RunFacts) -> str:
    if facts.figures.tok_s is None:
        return facts.run.state
    return f"{facts.figures.tok_s.mean:.1f} tok/s, n = {facts.figures.n}"
