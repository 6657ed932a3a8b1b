"""Cells of tables: a line taken apart, and the number in a cell; knows no titles."""

from __future__ import annotations

import re
from collections.abc import Callable

from specdebug.sglang.patterns import regex

Split = Callable[[str], list[str] | None]

_NUMBER = regex(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?")
_THOUSANDS = regex(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL_COMMA = regex(r"[-+]?\d+,\d+|[-+]?\d{1,3}(?:\.\d{3})+,\d+")


def value_of(text: str) -> float | None:
    """The number in a cell ("~1.6", "1,234.5", "56.8 tok/s"), None for "-" and words.

    A comma with other than three digits behind it is a decimal one ("56,8", "1.234,5").
    """
    match = _NUMBER.search(text.replace("\u2212", "-"))
    if match is None or not re.fullmatch(
        r"[~\u2248<>= ]*[-+]?[\d.,eE+-]+ *[A-Za-z%/]*", text.strip()
    ):
        return None
    figure = match[0].rstrip(".,")
    if not _THOUSANDS.fullmatch(figure) and _DECIMAL_COMMA.fullmatch(figure):
        figure = figure.replace(".", "").replace(",", ".")
    try:
        return float(figure.replace(",", ""))
    except ValueError:
        return None  # "1.2.3"


_SECONDS = regex(r"(?i)(?:\(|\[|\bin |\d ?)(?:s|sec|seconds)(?:\)|\]|\b)")
_MILLISECONDS = regex(r"(?i)\bms\b|millisec|_ms\b|\d ?ms\b")


def milliseconds(value: float, cell: str, title: str) -> float:
    """A time in ms; one without a unit is in seconds where no step is that short."""
    for told in (cell, title):
        if _MILLISECONDS.search(told):
            return value
        if _SECONDS.search(told):
            return 1000 * value
    return 1000 * value if value < 0.5 else value


_RULE = regex(r":?-+:?")
_GAP = regex(r"\s{2,}")
_CELL = regex(r"\S+(?: \S+)*")


def is_rule(cells: list[str]) -> bool:
    """Whether the cells are those of a line between rows."""
    return all(_RULE.fullmatch(cell) for cell in cells if cell)


_BOX_SIDES = str.maketrans(dict.fromkeys("\u2502\u2503\u2551\u2506", "|"))
_BOX_RULE = regex(r"\s*[+|\u2500-\u257f][-+=|\u2500-\u257f\s]*")


def unboxed(line: str) -> str:
    """A line of a drawn box as one of a Markdown table."""
    if _BOX_RULE.fullmatch(line) and not line.replace("|", "").strip(" -"):
        return line  # Markdown's own rule
    return "|---|" if _BOX_RULE.fullmatch(line) else line.translate(_BOX_SIDES)


def by_pipe(line: str) -> list[str] | None:
    """Cells between bars."""
    if line.count("|") < 1 or len(line) > 4_000:
        return None
    return [cell.strip(" *`") for cell in line.strip().strip("|").split("|")]


def by_tab(line: str) -> list[str] | None:
    """Cells between tabs."""
    return [cell.strip() for cell in line.split("\t")] if "\t" in line else None


def by_comma(line: str) -> list[str] | None:
    """Cells between commas."""
    return [cell.strip(' "') for cell in line.split(",")] if line.count(",") > 1 else None


def by_space(line: str) -> list[str] | None:
    """Cells between wide spaces."""
    if "  " not in line and "\t" not in line:
        return None
    cells = _GAP.split(line.strip()) if len(line) < 4_000 else []
    return cells if len(cells) > 1 else None


def below(titles: str, line: str) -> list[str]:
    """The cells of a line of fixed width by the title each stands under; blank where none does."""
    columns = [match.span() for match in _CELL.finditer(titles)]
    cells = [""] * len(columns)
    free = 0
    for match in _CELL.finditer(line):
        if free == len(columns):
            break
        start, end = match.span()

        def apart(at: int, start: int = start, end: int = end) -> int:
            return max(columns[at][0] - end, start - columns[at][1])

        at = min(range(free, len(columns)), key=apart)
        cells[at] = match[0]
        free = at + 1
    return cells
