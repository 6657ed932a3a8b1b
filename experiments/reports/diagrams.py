"""The drawings of a report, from the plain data of its document: figures in, SVG and words out.

Each says its content in words too, with figures, units and n. A drawing fits one page of paper;
what has more rows becomes several.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.reports.svg import Svg, cut

WIDTH = 720.0
MOST_ROWS = 36  # of a drawing that has to fit a page
MOST_WATERFALLS = 4
UNITS = {"tok_s": "tok/s", "accept_len": "tokens a step", "step_ms": "ms"}

Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Diagram:
    """One drawing with its figures. says: its content in words, for those who do not see it; head,
    rows: the data table; name: of its files."""

    title: str
    says: str
    svg: str
    name: str = ""
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str | float | int | None, ...], ...] = ()

    @property
    def file(self) -> str:
        """As a file of its own, on white."""
        return self.svg.replace(
            "</title>", '</title><rect width="100%" height="100%" fill="#fff"/>', 1
        )

    @property
    def png(self) -> bytes:
        """The file as a picture, twice as fine."""
        import vl_convert

        picture: bytes = vl_convert.svg_to_png(self.file, scale=2.0)
        return picture


def ticks(high: float, most: int = 6) -> list[float]:
    """Round figures from 0 to at most `high`."""
    if not (high > 0 and math.isfinite(high)):
        return [0.0]
    rough = high / most
    size = 10.0 ** math.floor(math.log10(rough))
    step: float = next(size * k for k in (1, 2, 5, 10) if size * k >= rough)
    return [n * step for n in range(int(high / step + 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class _Axis:
    """From figures to pixels: 0 at `left`, `high` at `right`."""

    left: float
    right: float
    high: float

    def at(self, value: float) -> float:
        return self.left + (self.right - self.left) * value / self.high


def _frame(svg: Svg, axis: _Axis, top: float, bottom: float, title: str) -> None:
    for tick in ticks(axis.high):
        x = axis.at(tick)
        svg.line([(x, top), (x, bottom)], "rule", 0.7)
        svg.text(x, bottom + 12, f"{tick:g}", size=9, tint="ink-soft", anchor="middle")
    svg.text(
        (axis.left + axis.right) / 2, bottom + 25, title, size=9, tint="ink-soft", anchor="middle"
    )


def _pieces(rows: Sequence[Any]) -> Iterator[tuple[Sequence[Any], str]]:
    """Rows in pieces that fit a page, each with the words that tell it from the others."""
    count = -(-len(rows) // MOST_ROWS)
    for index in range(count):
        piece = rows[index * MOST_ROWS : (index + 1) * MOST_ROWS]
        words = "" if count == 1 else f", {piece[0]['label']} to {piece[-1]['label']}"
        yield piece, words


def throughput(told: Told) -> list[Diagram]:
    """Every run's mean with its repeats, its spread and the goal, where that is one of tok/s."""
    rows = [run for run in told["runs"] if run["tok_s"] is not None]
    goal = told["goal"]["target"] if told["metric"] == "tok_s" else None
    high = 1.14 * max([*(max(r["values"] or [r["tok_s"]]) for r in rows), goal or 0.0, 1e-9])
    drawn: list[Diagram] = []
    for piece, words in _pieces(rows):
        row_height = 22.0 if len(piece) <= 14 else 15.0
        top = 20.0
        bottom = top + row_height * len(piece)
        svg = Svg(WIDTH, bottom + 30)
        axis = _Axis(46, WIDTH - 60, high)
        _frame(svg, axis, top, bottom, "throughput, tok/s")
        for index, run in enumerate(piece):
            _bar(svg, axis, run, top + row_height * index, row_height)
        if goal is not None:
            x = axis.at(goal)
            svg.line([(x, top - 4), (x, bottom)], "critical", 1.2, "5 3")
            svg.text(x, top - 8, f"goal {goal:.4g}", size=9, tint="critical", anchor="middle")
        means = ", ".join(
            f"{r['label']} {r['tok_s']:.1f}"
            + (f" ± {r['sd']:.1f}" if r["sd"] is not None else "")
            + f" (n = {r['n']})"
            for r in piece
        )
        says = f"Mean throughput in tok/s: {means}"
        says += "." if goal is None else f"; the goal is {goal:.4g}."
        head = ("run", "mean, tok/s", "sample deviation, tok/s", "n", "repeats, tok/s")
        table = tuple(
            (r["label"], r["tok_s"], r["sd"], r["n"], " ".join(f"{v:.6g}" for v in r["values"]))
            for r in piece
        )
        name = f"throughput-{len(drawn) + 1}"
        title = f"Throughput by run{words}"
        drawn.append(Diagram(title, says, svg.drawn(says), name, head, table))
    return drawn


def _bar(svg: Svg, axis: _Axis, run: Told, y: float, height: float) -> None:
    middle, thick = y + height / 2, 0.55 * height
    tint = "ink-soft" if run["baseline"] else "deed"
    svg.text(4, middle + 3.5, run["label"], size=10, bold=True)
    svg.rect(axis.left, middle - thick / 2, axis.at(run["tok_s"]) - axis.left, thick, tint, 0.45)
    for value in run["values"][:60]:
        svg.dot(axis.at(value), middle, 1.8, tint)
    if run["sd"] is not None:
        ends = (max(run["tok_s"] - run["sd"], 0.0), run["tok_s"] + run["sd"])
        svg.line([(axis.at(ends[0]), middle), (axis.at(ends[1]), middle)], "ink", 1.0)
    edge = axis.at(max([run["tok_s"], *run["values"]]))
    svg.text(edge + 7, middle + 3.5, f"{run['tok_s']:.1f}", size=10)


def reaches(told: Told) -> list[Diagram]:
    """Accept lengths: measured, needed to draw level with the baseline, and at most."""
    rows = [run for run in told["runs"] if run["accept_len"] is not None]
    drawn: list[Diagram] = []
    for piece, words in _pieces(rows):
        # A deep chain's perfect draft would squeeze everything else into a corner.
        high = 1.25 * max(max(r["accept_len"], r["break_even"] or 0.0) for r in piece)
        row_height, top = 30.0 if len(piece) <= 14 else 18.0, 24.0
        bottom = top + row_height * len(piece)
        svg = Svg(WIDTH, bottom + 30)
        axis = _Axis(46, WIDTH - 60, high)
        _frame(svg, axis, top, bottom, "accept length, tokens a step")
        _legend(svg, ("deed", "measured"), ("critical", "draws level"), ("good", "perfect draft"))
        said = []
        for index, run in enumerate(piece):
            middle = top + row_height * (index + 0.55)
            said.append(_reach(svg, axis, run, middle, row_height))
        says = f"Accept length in tokens a step: {'; '.join(said)}."
        title = f"Accept length, and what it would take{words}"
        head = ("run", "accept length, tokens a step", "draws level at", "at most")
        table = tuple((r["label"], r["accept_len"], r["break_even"], _most(r)) for r in piece)
        name = f"accept-length-{len(drawn) + 1}"
        drawn.append(Diagram(title, says, svg.drawn(says), name, head, table))
    return drawn


def _legend(svg: Svg, *names: tuple[str, str]) -> None:
    x = 46.0
    for tint, name in names:
        svg.rect(x, 4, 9, 9, tint)
        svg.text(x + 13, 12, name, size=9, tint="ink-soft")
        x += 26 + 5.6 * len(name)


def _most(run: Told) -> float | None:
    """What a perfect draft would reach."""
    steps = run["effective"][0]
    return steps + 1.0 if isinstance(steps, int) else None


def _reach(svg: Svg, axis: _Axis, run: Told, middle: float, height: float) -> str:
    said = f"{run['label']} {run['accept_len']:.2f}"
    end = axis.at(run["accept_len"])
    svg.text(4, middle + 3.5, run["label"], size=10, bold=True)
    svg.rect(axis.left, middle - 0.2 * height, end - axis.left, 0.4 * height, "deed", 0.55)
    svg.text(end - 4, middle + 3.5, f"{run['accept_len']:.2f}", size=9, anchor="end")
    most = _most(run)
    for value, tint, words in (
        (run["break_even"], "critical", "draws level at"),
        (most, "good", "at most"),
    ):
        if value is None:
            continue
        said += f", {words} {value:.2f}".removesuffix(".00")
        if value <= axis.high:
            x = axis.at(value)
            svg.line([(x, middle - 0.36 * height), (x, middle + 0.36 * height)], tint, 3)
            svg.text(x + 4, middle + 3.5, f"{value:.2f}", size=9, tint=tint)
    if most is not None and most > axis.high:
        svg.text(WIDTH - 4, middle + 3.5, f"{most:.0f} →", size=9, tint="good", anchor="end")
    return said


def waterfalls(told: Told) -> list[Diagram]:
    """The gap accounts drawn: all of a few runs, else of the first, the best and the last."""
    return [_waterfall(gap) for gap in chosen_gaps(told)]


def chosen_gaps(told: Told) -> list[Told]:
    """The gap accounts worth a drawing of their own."""
    gaps: list[Told] = list(told["gaps"])
    if len(gaps) <= MOST_WATERFALLS:
        return gaps
    best = max(gaps, key=lambda g: g["account"]["measured_tok_s"])
    picked = {id(gap): gap for gap in (gaps[0], best, gaps[-1])}
    return [gap for gap in gaps if id(gap) in picked]


def part_in_words(part: Told) -> str:
    """A part with its range; a version that was published before there were ranges has none."""
    said = f"{part['name']} {part['tok_s']:+.1f}"
    if part.get("low") is not None and part["low"] != part["high"]:
        said += f" ({part['low']:+.1f} to {part['high']:+.1f})"
    return said.replace(" -", " −").replace("(-", "(−")


def _span(part: Told) -> tuple[float, float] | None:
    """Between which tok/s a part of an account ends; None where no range of it is known."""
    if part.get("low") is None or part["low"] == part["high"]:
        return None
    start = part["reached"] - part["tok_s"]
    return start + part["low"], start + part["high"]


def _waterfall(gap: Told) -> Diagram:
    account = gap["account"]
    rows: list[tuple[str, float, float, str]] = [
        ("baseline", 0.0, account["baseline_tok_s"], "ink-soft")
    ]
    for part in account["parts"]:
        start = part["reached"] - part["tok_s"]
        rows.append(
            (part["name"], start, part["reached"], "good" if part["tok_s"] >= 0 else "critical")
        )
    rows.append((f"measured, {gap['run']}", 0.0, account["measured_tok_s"], "deed"))
    top, row_height = 6.0, 24.0
    bottom = top + row_height * len(rows)
    svg = Svg(WIDTH, bottom + 30)
    spans = [None, *map(_span, account["parts"]), None]
    places = [v for _, a, b, _ in rows for v in (a, b)] + [s[1] for s in spans if s]
    axis = _Axis(236, WIDTH - 64, 1.05 * max(places))
    _frame(svg, axis, top, bottom, "throughput, tok/s")
    for index, (name, start, end, tint) in enumerate(rows):
        y = top + row_height * index
        low, high = axis.at(min(start, end)), axis.at(max(start, end))
        svg.text(axis.left - 8, y + 15.5, cut(name, 220, 10), anchor="end")
        svg.rect(low, y + 4, max(high - low, 1.0), 16, tint, 0.8)
        words = f"{end:.1f}" if index in (0, len(rows) - 1) else f"{end - start:+.1f}"
        if span := spans[index]:
            ends = [axis.at(max(value, 0.0)) for value in span]
            svg.line([(ends[0], y + 12), (ends[1], y + 12)], "ink", 1.0)
            for edge in ends:
                svg.line([(edge, y + 8), (edge, y + 16)], "ink", 1.0)
            high = max(high, ends[1])
        svg.text(high + 6, y + 15.5, words.replace("-", "−"), size=10)
        if index < len(rows) - 1:
            x = axis.at(end)
            svg.line([(x, y + 20), (x, y + 28)], "ink-soft", 0.8)
    moves = ", ".join(map(part_in_words, account["parts"]))
    says = (
        f"{gap['run']}: from {account['baseline_tok_s']:.1f} to {account['measured_tok_s']:.1f} "
        f"tok/s by {moves}."
    )
    if account.get("note"):
        says += f" Note: {account['note']}."
    head = ("part", "change, tok/s", "from", "to", "reached, tok/s")
    table: list[tuple[str | float | None, ...]] = [
        ("baseline", None, None, None, account["baseline_tok_s"])
    ]
    table += [
        (p["name"], p["tok_s"], p.get("low"), p.get("high"), p["reached"]) for p in account["parts"]
    ]
    table.append((f"measured, {gap['run']}", None, None, None, account["measured_tok_s"]))
    title, name = f"Gap account of {gap['run']}", f"account-{gap['run'].lower()}"
    return Diagram(title, says, svg.drawn(says), name, head, tuple(table))
