"""A sweep drawn: throughput along one axis with the optimum and its range, or a map of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.queries.groups import GroupPage, PointRow
from experiments.reports.drawing import Drawing
from experiments.reports.plots import Plot, ticks

SHADES = 10


def varied(page: GroupPage) -> list[str]:
    """The axes along which the points differ, in the order they were given."""
    names = list(dict.fromkeys(name for row in page.rows for name in row.point.values))
    return [n for n in names if len({str(row.point.values.get(n)) for row in page.rows}) > 1]


def course(page: GroupPage) -> Plot | None:
    """tok/s over the one axis of numbers that a sweep varies; None for another sweep.

    Each point with its repeats; the shaded stretch is what noise cannot tell from the optimum; what
    was left out stands at the foot.
    """
    axes = varied(page)
    if len(axes) != 1 or not page.measured:
        return None
    rows = [(_number(row.point.values.get(axes[0])), row) for row in page.rows]
    placed = sorted(((x, row) for x, row in rows if x is not None), key=lambda pair: pair[0])
    if len(placed) != len(rows) or len(placed) < 2:
        return None
    known = [(x, row) for x, row in placed if row.figures is not None]
    values = [value for _, row in known for value in (row.figures.tok_s if row.figures else ())]
    top = 1.06 * max(values)
    bottom, left = 200.0, 6.0
    first, last = placed[0][0], placed[-1][0]
    said = "; ".join(f"{row.point.name}: {_mean(row):.1f} tok/s" for _, row in known)
    best = ", ".join(row.point.name for row in page.best) or "none"
    drawing = Drawing(bottom + 36, f"Throughput over {axes[0]}: {said}. Best: {best}.")

    def at(x: float) -> float:
        return left + 3 + (94 - left) * (x - first) / ((last - first) or 1.0)

    def down(value: float) -> float:
        return bottom - (bottom - 10) * value / top

    for mark in ticks(0, top, 4):
        drawing.line(left, down(mark), 100, down(mark), "grid")
        drawing.text(0, down(mark) + 4, f"{mark:g}", "tick")
    close = [x for x, row in known if row.how in ("best", "within noise of it")]
    if close:
        start, end = at(min(close)) - 1.2, at(max(close)) + 1.2
        drawing.rect(start, 0, end - start, bottom, "optimum", "not told apart from the best")
    for x, row in placed:
        drawing.text(at(x), bottom + 15, f"{x:g}", "tick", "middle")
        if row.figures is None:
            drawing.text(at(x), bottom - 6, "×" if row.how == "left out" else "·", "tick", "middle")
    drawing.text(left, bottom + 32, f"{axes[0]} (× left out)", "tick")
    drawing.path([(at(x), down(_mean(row))) for x, row in known], "line-1")
    for x, row in known:
        for value in row.figures.tok_s if row.figures else ():
            drawing.dot(at(x), down(value), 2.5, "fill-1 soft", f"{value:.1f} tok/s")
        drawing.dot(at(x), down(_mean(row)), 4.5, "fill-1 dot", f"{_mean(row):.1f} tok/s")
    for top_row in page.best:
        mean, x = _mean(top_row), _number(top_row.point.values.get(axes[0])) or 0.0
        drawing.text(at(x), down(mean) - 10, f"{mean:.1f}", "name", "middle")
    head = (axes[0], "mean, tok/s", "n", "accept length", "step, ms", "how it stands")
    table = tuple(
        (
            x,
            round(_mean(row), 2) if row.figures else None,
            len(row.figures.tok_s) if row.figures else 0,
            round(row.figures.accept_len, 3) if row.figures and row.figures.accept_len else None,
            round(row.figures.step_ms, 2) if row.figures and row.figures.step_ms else None,
            row.how,
        )
        for x, row in placed
    )
    return Plot("course", f"Throughput over {axes[0]}", "tok/s", drawing, head, table)


@dataclass(frozen=True)
class Cell:
    """One square of a map. shade: 0 the slowest to SHADES - 1 the best; None: not measured."""

    row: PointRow | None
    shade: int | None


@dataclass(frozen=True)
class HeatMap:
    """Two axes: down and across, their values, and the cells in that order."""

    down: str
    across: str
    columns: tuple[Any, ...]
    rows: tuple[tuple[Any, tuple[Cell, ...]], ...]


def heat_map(page: GroupPage) -> HeatMap | None:
    """The map of a sweep over two axes; None for another sweep."""
    axes = varied(page)
    if len(axes) != 2 or not page.measured:
        return None
    down, across = axes
    by_place = {(r.point.values.get(down), r.point.values.get(across)): r for r in page.rows}
    columns = tuple(sorted({key[1] for key in by_place}, key=_order))
    means = [_mean(row) for row in page.rows if row.figures is not None]
    low, high = min(means), max(means)

    def cell(y: Any, x: Any) -> Cell:
        row = by_place.get((y, x))
        if row is None or row.figures is None:
            return Cell(row, None)
        share = (_mean(row) - low) / ((high - low) or 1.0)
        return Cell(row, min(SHADES - 1, int(share * SHADES)))

    lines = sorted({key[0] for key in by_place}, key=_order)
    rows = tuple((y, tuple(cell(y, x) for x in columns)) for y in lines)
    return HeatMap(down, across, columns, rows)


def map_plot(page: GroupPage) -> Plot | None:
    """The same map as a drawing with its figures, to keep as a file."""
    found = heat_map(page)
    if found is None:
        return None
    left, wide, tall = 14.0, 86.0 / len(found.columns), 40.0
    title = f"Throughput over {found.down} and {found.across}"
    drawing = Drawing(26 + tall * len(found.rows), f"{title}, tok/s.")
    drawing.text(0, 16, f"{found.down} ↓ {found.across} →", "tick")
    for i, value in enumerate(found.columns):
        drawing.text(left + wide * (i + 0.5), 16, _said(value), "name", "middle")
    table: list[tuple[str | float | int | None, ...]] = []
    for j, (value, cells) in enumerate(found.rows):
        top = 24 + tall * j
        drawing.text(0, top + 24, _said(value), "name")
        for i, cell in enumerate(cells):
            shade = "none" if cell.shade is None else str(cell.shade)
            drawing.rect(left + wide * i, top, wide - 0.3, tall - 2, f"shade-{shade}")
            figures = cell.row.figures if cell.row else None
            words = f"{figures.mean:.1f}" if figures else cell.row.how if cell.row else "–"
            drawing.text(left + wide * (i + 0.5), top + 24, words, "value", "middle")
            mean = round(figures.mean, 3) if figures else None
            n = len(figures.tok_s) if figures else 0
            how = cell.row.how if cell.row else ""
            table.append((_said(value), _said(found.columns[i]), mean, n, how))
    head = (found.down, found.across, "mean, tok/s", "n", "how it stands")
    return Plot("map", title, "tok/s", drawing, head, tuple(table))


def _said(value: Any) -> str:
    return "as it was" if value is None else str(value)


def _mean(row: PointRow) -> float:
    return row.figures.mean if row.figures is not None else 0.0


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _order(value: Any) -> tuple[int, float, str]:
    known = _number(value)
    return (0, known, "") if known is not None else (1, 0.0, str(value))
