"""The pages' own plots: figures placed on an axis and drawn as SVG by the server.

Every plot can also be had as rows, which are its data table and its CSV. A run has one hue and one
label wherever it is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from experiments.reports.drawing import Drawing

HUES = 8
ROW = 44  # pixels a run takes
LONGEST_NAME = 26  # characters of a run's title beside its figure; the table has them all


def hue(number: int) -> int:
    """The colour of a run: its place in the palette of tokens.css, by its number."""
    return number % HUES


def _named(drawing: Drawing, y: float, label: str, says: str, *, whole: bool = False) -> None:
    """The line above a row: who at the left, how much at the right."""
    first, _, rest = label.partition(" ")
    rest = rest if len(rest) <= LONGEST_NAME else f"{rest[:LONGEST_NAME].rstrip()}…"
    drawing.text(0, y + 14, label if whole else first, "name", more="" if whole else rest)
    drawing.text(100, y + 14, says, "value", "end")


def _rule(drawing: Drawing, x: float, y: float) -> None:
    """The baseline's rule beside one row, below the words."""
    drawing.line(x, y + 18, x, y + ROW - 2, "reference")


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with its figures. head, rows: the data table; name: of its files."""

    name: str
    title: str
    unit: str
    drawing: Drawing
    head: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """One run's figure. values: its repeats; low, high: its interval, where there is one."""

    label: str
    hue: int
    values: tuple[float, ...]
    mean: float
    says: str = ""
    low: float | None = None
    high: float | None = None


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round figures between two ends, at most about `most`."""
    span = high - low
    if not (span > 0 and math.isfinite(span)):
        return [low]
    rough = span / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * k for k in (1, 2, 5, 10) if size * k >= rough)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _axis(
    drawing: Drawing,
    marks: Sequence[float],
    at: Callable[[float], float],
    bottom: float,
) -> None:
    digits = _digits(marks)
    for value in marks:
        x = at(value)
        drawing.line(x, 0, x, bottom, "grid")
        anchor = "start" if x < 4 else "end" if x > 96 else "middle"
        drawing.text(x, bottom + 14, f"{value:.{digits}f}".replace("-", "−"), "tick", anchor)


def _digits(marks: Sequence[float]) -> int:
    step = min((b - a for a, b in pairwise(marks)), default=1.0)
    return 0 if step >= 1 else max(0, -math.floor(math.log10(step) + 1e-9))


def bars(
    name: str,
    title: str,
    unit: str,
    rows: Sequence[Bar],
    *,
    digits: int = 1,
    reference: float | None = None,
) -> Plot:
    """Each run's mean as a bar from zero, its repeats as dots; a rule at the baseline's mean."""
    top = 1.04 * max([*(max(r.values, default=r.mean) for r in rows), reference or 0.0, 1e-9])
    bottom = ROW * len(rows) + 2.0
    said = ", ".join(f"{r.label} {r.mean:.{digits}f} {unit} (n = {len(r.values)})" for r in rows)
    drawing = Drawing(bottom + 20, f"{title}: {said}.")

    def at(value: float) -> float:
        return 100.0 * value / top

    marks = ticks(0, top)
    _axis(drawing, marks, at, bottom)
    for i, row in enumerate(rows):
        y = ROW * i
        if reference is not None:
            _rule(drawing, at(reference), y)
        _named(drawing, y, row.label, row.says)
        drawing.rect(0, y + 21, at(row.mean), 14, f"fill-{row.hue} soft", row.says)
        drawing.rect(max(at(row.mean) - 0.2, 0), y + 19, 0.4, 18, f"fill-{row.hue}")
        for value in row.values if len(row.values) > 1 else ():
            drawing.dot(at(value), y + 28, 3.5, f"fill-{row.hue} dot", f"{value:.{digits}f} {unit}")
    head = ("run", f"mean, {unit}", "n", f"repeats, {unit}")
    table = tuple(
        (r.label, round(r.mean, digits + 2), len(r.values), " ".join(f"{v:.6g}" for v in r.values))
        for r in rows
    )
    return Plot(name, title, unit, drawing, head, table)


def changes(name: str, title: str, rows: Sequence[Bar], *, against: str) -> Plot:
    """Each run's change against one run in per cent, with its interval; zero is the baseline."""
    ends = [v for r in rows for v in (r.mean, r.low, r.high) if v is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.06 * max(high - low, 1.0)
    low, high = low - room, high + room
    bottom = ROW * len(rows) + 2.0
    said = "; ".join(f"{r.label} {r.says}" for r in rows)
    drawing = Drawing(bottom + 20, f"{title}: {said}.")

    def at(value: float) -> float:
        return 100.0 * (value - low) / (high - low)

    marks = ticks(low, high)
    _axis(drawing, marks, at, bottom)
    for i, row in enumerate(rows):
        y = ROW * i
        _rule(drawing, at(0), y)
        _named(drawing, y, row.label, row.says)
        if row.low is not None and row.high is not None:
            drawing.rect(at(row.low), y + 25, at(row.high) - at(row.low), 8, f"fill-{row.hue} soft")
            for end in (row.low, row.high):
                drawing.line(at(end), y + 22, at(end), y + 36, f"line-{row.hue}")
            drawing.line(at(row.low), y + 29, at(row.high), y + 29, f"line-{row.hue}")
        drawing.dot(at(row.mean), y + 29, 5, f"fill-{row.hue} dot", row.says)
    head = ("run", f"change against {against}, %", "interval from, %", "interval to, %")
    table = tuple((r.label, _r(r.mean), _r(r.low), _r(r.high)) for r in rows)
    return Plot(name, title, "%", drawing, head, table)


def _r(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


@dataclass(frozen=True, slots=True)
class Curve:
    """One run's share by draft position; ends: the interval of each point, where it is known."""

    label: str
    hue: int
    values: tuple[float, ...]
    counts: tuple[int, ...] = ()
    ends: tuple[tuple[float, float], ...] = ()


def curves(name: str, title: str, rows: Sequence[Curve], *, across: str) -> Plot:
    """Shares from 0 to 1 by position 1, 2 ...; each curve carries its label at its end."""
    longest = max(len(r.values) for r in rows)
    bottom, left, right = 190.0, 5.0, 94.0
    said = "; ".join(f"{r.label} " + " ".join(f"{v:.2f}" for v in r.values) for r in rows)
    drawing = Drawing(bottom + 36, f"{title}: {said}.")

    def at(position: int) -> float:
        return left + (right - left) * (position - 1) / max(longest - 1, 1)

    def down(value: float) -> float:
        return bottom - (bottom - 8) * value

    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        drawing.line(left, down(share), 100, down(share), "grid")
        drawing.text(0, down(share) + 4, f"{share:.2f}", "tick")
    every = -(-longest // 8)
    for position in range(1, longest + 1, every):
        drawing.text(at(position), bottom + 15, str(position), "tick", "middle")
    drawing.text(left, bottom + 32, across, "tick")
    placed: list[float] = []
    for row in rows:
        points = [(at(i), down(v)) for i, v in enumerate(row.values, start=1)]
        for (x, _), ends in zip(points, row.ends, strict=False):
            drawing.line(x, down(ends[1]), x, down(ends[0]), f"line-{row.hue} soft")
        drawing.path(points, f"line-{row.hue}")
        for (x, y), value in zip(points, row.values, strict=True):
            drawing.dot(x, y, 3.5, f"fill-{row.hue} dot", f"{row.label}: {value:.2f}")
        y = points[-1][1] + 4
        while any(abs(y - other) < 13 for other in placed):
            y -= 13
        placed.append(y)
        drawing.text(points[-1][0], y, row.label, f"name fill-{row.hue}", dx=8)
    head = ("position", *(r.label for r in rows), *(f"{r.label}, n" for r in rows if r.counts))
    table = tuple(
        (
            i + 1,
            *(round(r.values[i], 4) if i < len(r.values) else None for r in rows),
            *(r.counts[i] if i < len(r.counts) else None for r in rows if r.counts),
        )
        for i in range(longest)
    )
    return Plot(name, title, "", drawing, head, table)


@dataclass(frozen=True, slots=True)
class Fall:
    """One step of an account, from and to in the same unit; a total starts at zero. low, high: the
    interval of the change, where it is known."""

    name: str
    start: float
    end: float
    total: bool = False
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float] | None:
        """Between which figures the end lies; None where no interval is known or it has none."""
        if self.low is None or self.high is None or self.low == self.high:
            return None
        return self.start + self.low, self.start + self.high


def waterfall(name: str, title: str, unit: str, rows: Sequence[Fall], reading: str) -> Plot:
    """From one total to another, part by part; `reading` is the whole of it in words."""
    places: list[float] = [v for r in rows for v in (r.start, r.end, *(r.ends or ()))]
    low, high = min([0.0, *places]), max(places)
    bottom = ROW * len(rows) + 2.0
    drawing = Drawing(bottom + 20, f"{title}: {reading}")

    def at(value: float) -> float:
        return 100.0 * (value - low) / (high - low or 1.0)

    marks = ticks(low, high)
    _axis(drawing, marks, at, bottom)
    for i, row in enumerate(rows):
        y = ROW * i
        change = row.end - row.start
        words = f"{row.end:.1f}" if row.total else f"{change:+.1f}".replace("-", "−")
        tone = "total" if row.total else "won" if change >= 0 else "lost"
        _named(drawing, y, row.name, words, whole=True)
        start, end = sorted((at(row.start), at(row.end)))
        drawing.rect(start, y + 21, max(end - start, 0.3), 14, tone, f"{words} {unit}")
        if row.ends is not None:
            least, most = map(at, row.ends)
            drawing.line(least, y + 28, most, y + 28, "whisker")
            for edge in (least, most):
                drawing.line(edge, y + 24, edge, y + 32, "whisker")
        if i + 1 < len(rows):
            drawing.line(at(row.end), y + 21, at(row.end), y + ROW + 21, "joint")
    head = ("part", f"change, {unit}", f"from, {unit}", f"to, {unit}", f"reached, {unit}")
    table = tuple(
        (r.name, None if r.total else _r(r.end - r.start), _r(r.low), _r(r.high), _r(r.end))
        for r in rows
    )
    return Plot(name, title, unit, drawing, head, table)


@dataclass(frozen=True, slots=True)
class Point:
    """One decode line: its place, its figure, its line in the log, and whether it was measured."""

    at: float
    value: float
    line: int
    measured: bool
    rank: str = ""


# More than this many points of a rank are averaged in bins: a screen shows no more.
MOST_POINTS = 400


def series(
    name: str,
    title: str,
    unit: str,
    points: Sequence[Point],
    *,
    across: str,
    hue: int,
    digits: int = 1,
    floor: float = 0.0,
    reference: float | None = None,
    says: str = "",
) -> Plot:
    """A figure along a run, `across` naming the axis; `reference` is a rule that `says` names.

    Warm-up and idle stretches are grey; a line for every rank.
    """
    kept, width = _binned(points)
    values = [p.value for p in kept]
    top = max([*values, reference or floor, floor + 1e-9])
    top += 0.06 * (top - floor)
    last = max((p.at for p in kept), default=0.0) or 1.0
    bottom, left = 170.0, 6.0
    mean = sum(p.value for p in kept if p.measured) / max(sum(p.measured for p in kept), 1)
    words = f"{title} over the run: {mean:.{digits}f} {unit} on average of the measured lines"
    drawing = Drawing(bottom + 34, f"{words}; {says}." if says else f"{words}.")

    def x(value: float) -> float:
        return left + (100 - left) * value / last

    def y(value: float) -> float:
        return bottom - (bottom - 14) * (value - floor) / (top - floor)

    marks = ticks(floor, top, 4)
    for value in marks:
        drawing.line(left, y(value), 100, y(value), "grid")
        drawing.text(0, y(value) + 4, f"{value:.{_digits(marks)}f}", "tick")
    for value in ticks(0, last, 6):
        drawing.text(
            x(value), bottom + 15, f"{value:g}", "tick", "middle" if x(value) < 97 else "end"
        )
    note = f"{across} (each point is the mean of {width} lines)" if width > 1 else across
    drawing.text(left, bottom + 31, note, "tick")
    for some in _stretches(kept):
        tone = f"line-{hue}" if some[0].measured else "line-idle"
        drawing.path([(x(p.at), y(p.value)) for p in some], f"{tone} thin")
    for p in kept if len(kept) <= MOST_POINTS else ():
        tone = f"fill-{hue}" if p.measured else "fill-idle"
        drawing.dot(x(p.at), y(p.value), 2.2, tone, f"{p.value:.{digits}f} {unit}, line {p.line}")
    if reference is not None:
        drawing.line(left, y(reference), 100, y(reference), "reference")
        # Above the figures, which would run through words beside the rule.
        drawing.text(100, 9, f"dashed: {says}" if says else "", "tick", "end")
    head = (across, f"{title.lower()}, {unit}" if unit else title.lower(), "log line", "stretch")
    rows = tuple(
        (round(p.at, 2), round(p.value, 4), p.line, "measured" if p.measured else "warm-up or idle")
        for p in points
    )
    return Plot(name, title, unit, drawing, head, rows)


def _stretches(points: Sequence[Point]) -> list[list[Point]]:
    """Consecutive points of a rank that are all measured or all not."""
    found: list[list[Point]] = []
    for p in sorted(points, key=lambda p: (p.rank, p.line)):
        before = found[-1][-1] if found else None
        if before is not None and (before.rank, before.measured) == (p.rank, p.measured):
            found[-1].append(p)
        else:
            found.append([p])
    return found


def _binned(points: Sequence[Point]) -> tuple[list[Point], int]:
    """At most about `MOST_POINTS` a rank, by averaging neighbours; and how many became one."""
    ranks = max(len({p.rank for p in points}), 1)
    width = -(-len(points) // (MOST_POINTS * ranks))
    if width <= 1:
        return list(points), 1
    found = []
    for some in _stretches(points):
        for i in range(0, len(some), width):
            part = some[i : i + width]
            at, value = (sum(getattr(p, k) for p in part) / len(part) for k in ("at", "value"))
            found.append(Point(at, value, part[0].line, part[0].measured, part[0].rank))
    return found, width
