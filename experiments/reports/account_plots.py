"""Throughput by draft steps as a drawing to keep: what is predicted for each depth with its range,
what was measured, the plain run and the goal. Predicts nothing: see `accounts`."""

from __future__ import annotations

from collections.abc import Callable

from experiments.reports.accounts import Bar, Family
from experiments.reports.drawing import Drawing
from experiments.reports.plots import Plot, ticks

ROW, TOP = 40.0, 22.0
HEAD = (
    "draft steps",
    "predicted, tok/s",
    "from, tok/s",
    "to, tok/s",
    "measured, tok/s",
    "accept length",
    "step, ms",
)


def depths(family: Family, number: int, goal: float | None) -> Plot | None:
    """The depths of one account, whose place on the page is `number`; None where it has none.

    goal: tok/s, None where the goal is of another figure.
    """
    if family.account is None or not family.bars:
        return None
    plain = family.account.baseline_tok_s
    ends = [bar.depth.tok_s.high for bar in family.bars]
    ends += [bar.measured_tok_s for bar in family.bars if bar.measured_tok_s is not None]
    top = 1.06 * max([*ends, goal or 0.0, plain or 0.0])
    bottom = TOP + ROW * len(family.bars)
    said = "; ".join(f"{b.depth.num_steps} draft steps: {_range(b)}" for b in family.bars)
    title = f"Throughput by draft steps, {', '.join(family.labels)}"
    drawing = Drawing(bottom + 36, f"{title}, in tok/s: {said}.")

    def at(value: float) -> float:
        return 100.0 * value / top

    for value in ticks(0, top):
        anchor = "start" if value == 0 else "end" if at(value) > 96 else "middle"
        drawing.line(at(value), TOP, at(value), bottom, "grid")
        drawing.text(at(value), bottom + 14, f"{value:g}", "tick", anchor)
    drawing.text(0, bottom + 30, "tok/s; bar: predicted, 95 %; dot: measured", "tick")
    for index, bar in enumerate(family.bars):
        _row(drawing, bar, TOP + ROW * index, at)
    for rule, words in ((plain, "plain run"), (goal, "goal")):
        # One rule where both are the same figure: the goal's name stands.
        if rule is not None and not (words == "plain run" and rule == goal):
            for index in range(len(family.bars)):  # beside the bars, not through the words
                y = TOP + ROW * index
                drawing.line(at(rule), y + 18, at(rule), y + ROW - 2, "reference")
            anchor = "end" if at(rule) > 60 else "start"
            drawing.text(at(rule), TOP - 8, f"{words} {rule:.1f}", "tick", anchor)
    return Plot(f"depths-{number}", title, "tok/s", drawing, HEAD, tuple(map(_cells, family.bars)))


def _range(bar: Bar) -> str:
    found = bar.depth.tok_s
    said = f"{found.value:.1f} ({found.low:.1f} to {found.high:.1f})"
    return said if bar.measured_tok_s is None else f"{said}, measured {bar.measured_tok_s:.1f}"


def _row(drawing: Drawing, bar: Bar, y: float, at: Callable[[float], float]) -> None:
    found = bar.depth.tok_s
    drawing.text(0, y + 13, f"{bar.depth.num_steps}", "name", more="draft steps")
    drawing.text(100, y + 13, _range(bar), "value", "end")
    tone = "won" if bar.as_good else "fill-1"
    drawing.rect(at(found.low), y + 22, at(found.high) - at(found.low), 8, f"{tone} soft")
    drawing.line(at(found.value), y + 19, at(found.value), y + 33, "line-1")
    if bar.measured_tok_s is not None:
        drawing.dot(at(bar.measured_tok_s), y + 26, 4, "fill-0 dot", f"{bar.measured_tok_s:.1f}")


def _cells(bar: Bar) -> tuple[float | int | None, ...]:
    depth = bar.depth
    figures = (depth.tok_s.value, depth.tok_s.low, depth.tok_s.high, bar.measured_tok_s)
    rounded = (None if v is None else round(v, 3) for v in figures)
    lengths = (round(depth.accept_len.value, 3), round(depth.step_ms.value, 3))
    return (depth.num_steps, *rounded, *lengths)
