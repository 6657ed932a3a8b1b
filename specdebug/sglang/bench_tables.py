"""Figures in tables with a header, drawn in any way; knows layouts, not what titles mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from specdebug.sglang.bench_titles import (
    Found,
    best_titles,
    field_of,
    fields_of,
    is_known,
    may_be_header,
    typed,
)
from specdebug.sglang.headings import heading_above, load_of, under_headings
from specdebug.sglang.key_columns import (
    filled_down,
    key_columns,
    keys_of,
    label_column,
    row_keys,
)
from specdebug.sglang.patterns import regex
from specdebug.sglang.run_names import Side, bare_side, is_baseline, side_of, speaks_of_drafts
from specdebug.sglang.side_by_side import RunColumns, side_by_side
from specdebug.sglang.table_cells import (
    Split,
    below,
    by_comma,
    by_pipe,
    by_space,
    by_tab,
    is_rule,
    milliseconds,
    unboxed,
    value_of,
)


@dataclass
class _Table:
    """A table as it is read: the heading above it, and its runs with the lines they stand on."""

    heading: str | None
    spans: list[tuple[int, int]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def found(self) -> list[Found]:
        return [(*span, row) for span, row in zip(self.spans, self.rows, strict=True)]

    def unread(self) -> list[str]:
        """Columns of figures whose titles nothing here understands."""
        extras = [row.get("extra", {}) for row in self.rows]
        keys = {title for row in self.rows for title, _ in row.get("keys", ())}
        titles = dict.fromkeys(t for extra in extras for t in extra if t.casefold() not in keys)
        return [
            f"column '{title}' is not understood"
            for title in titles
            if title and not is_known(title)
            if all(isinstance(e.get(title, 0.0), float) for e in extras)
        ]


_MOST_REMARKS = 4


def pipe_tables(lines: list[str], remarks: list[str] | None = None) -> list[Found]:
    """Rows of tables with a header: Markdown, tab-separated, comma-separated, wide spaces, boxes.

    remarks: takes what has to be said about columns that were not read, or belong to no run.
    """
    lines = [unboxed(line) for line in lines]
    titled = [may_be_header([line]) for line in lines]
    for split in (by_pipe, by_tab, by_comma, by_space):
        tables = _upright(lines, titled, split) or _turned(lines, titled, split)
        if tables:
            _apart(tables)
            under_headings([(table.heading, table.rows) for table in tables])
            said = [r for table in tables for r in (*table.remarks, *table.unread())]
            if remarks is not None:
                remarks += list(dict.fromkeys(said))[:_MOST_REMARKS]
            return [run for table in tables for run in table.found()]
    return []


def _apart(tables: list[_Table]) -> None:
    """Where each of several tables has a plain run of its own, that is the baseline of its runs."""
    plain = [
        [
            bool(row.get("is_baseline")) or is_baseline(str(row.get("label") or ""))
            for row in table.rows
            if "output_tok_s" in row
        ]
        for table in tables
    ]
    if len(tables) < 2 or not all(any(rows) and not all(rows) for rows in plain):
        return
    for number, table in enumerate(tables, 1):
        for row in table.rows:
            row["keys"] = (*row.get("keys", ()), ("table", str(number)))


def _upright(lines: list[str], titled: list[bool], split: Split) -> list[_Table]:
    """Tables that have a row for each run, or for each load of two runs."""
    out: list[_Table] = []
    at = 0
    while at < len(lines):
        header = _header(lines, at, titled[at], split)
        names = _columns(header) if header else None
        if names is None or header is None:
            at += 1
            continue
        table = _Table(heading_above(lines, at))
        titles, above = lines[at], _above(lines, at)
        found: list[tuple[int, list[str]]] = []
        at += 1
        while at < len(lines):
            cells = split(lines[at])
            if cells is not None and is_rule(cells):
                at += 1
                continue
            if cells is None or len(cells) > len(header) + 1:
                break
            if split is by_space and len(cells) < len(header):
                cells = below(titles, lines[at])
            if _row(names, header, cells) is None:
                break
            found.append((at, cells))
            at += 1
        layout = _Layout.of(header, names, [cells for _, cells in found], above)
        rows = filled_down([cells for _, cells in found], layout.keys)
        for (index, _), cells in zip(found, rows, strict=True):
            runs = layout.rows(header, cells)
            table.rows += runs
            table.spans += [(index + 1, index + 1)] * len(runs)
        if table.rows:
            table.remarks += layout.remarks
            out.append(table)
    return out


def _header(lines: list[str], at: int, titled: bool, split: Split) -> list[str] | None:
    """The titles in lines[at]; "batch | without MTP | with MTP" with the unit that stands above."""
    line = lines[at][:_LONGEST_HEADER]
    drafts = "|" in line and (speaks_of_drafts(line) or _BARE_PAIR.search(line) is not None)
    header = split(lines[at]) if titled or drafts else None
    if not header or not drafts:
        return header
    sides = [
        (side_of(cell) or bare_side(cell)) if field_of(cell) in (None, "label") else None
        for cell in header
    ]
    if not {"plain", "drafting"} <= set(sides):
        return header
    rows = [cells for line in lines[at + 1 : at + 1 + _MOST_FIGURES] if (cells := split(line))]
    if "output_tok_s" in map(field_of, header) or any(field_of(c[0]) for c in rows if c and c[0]):
        return header  # the rows are figures themselves
    if field_of(_above(lines, at)) != "output_tok_s" and not _in_tokens(rows, sides):
        return header
    return [f"{cell} (tok/s)" if side else cell for cell, side in zip(header, sides, strict=True)]


_LONGEST_HEADER = 400
_BARE_PAIR = regex(r"(?i)\|\s*(?:without|off|before|with|on|after)\s*\|")
_SPEED = regex(r"(?i)[\d.,]+\s*(?:output )?(?:(?:tok\w*|t)\s*/\s*s\w*|tps)")


def _in_tokens(rows: list[list[str]], sides: list[Side | None]) -> bool:
    """Whether every cell below the columns that name a side has the unit of a speed with it."""
    rows = [cells for cells in rows if len(cells) == len(sides) and not is_rule(cells)]
    cells = [cell for row in rows for cell, side in zip(row, sides, strict=True) if side]
    return bool(cells) and all(_SPEED.fullmatch(cell.strip()) for cell in cells)


def _above(lines: list[str], at: int) -> str:
    """The words in the lines above a table."""
    return " ".join(lines[max(0, at - 3) : at])[-_LONGEST_HEADER:]


@dataclass(frozen=True)
class _Layout:
    """How the rows of a table are read: of each run in a row the field that each column fills.

    keys: the columns that say what a run was measured on.
    """

    runs: tuple[RunColumns, ...]
    remarks: tuple[str, ...] = ()
    keys: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, header: list[str], names: list[str | None], rows: list[list[str]], above: str
    ) -> _Layout:
        """The layout of rows below a header; rows that name their own side are one run each."""
        first = label_column(names, rows)
        named = first is not None and any(side_of(cells[first]) for cells in rows if cells[first:])
        keys = key_columns(header, names, rows, first)
        beside = None if named else side_by_side(header, above)
        if beside is not None:
            return cls(beside.runs, beside.remarks, keys)
        return cls((RunColumns("", -1, None, tuple(_labelled(names, first))),), (), keys)

    def rows(self, header: list[str], cells: list[str]) -> list[dict[str, Any]]:
        """The runs of one row, those left out that have no figure of their own."""
        out = []
        for run in self.runs:
            fields = _row(list(run.fields), header, cells)
            if fields is not None:
                fields["keys"] = keys_of(header, cells, self.keys)
            if run.at < 0:
                return [fields] if fields is not None else []
            if fields is None or run.at >= len(cells) or value_of(cells[run.at]) is None:
                continue
            load = load_of(fields)
            fields["keys"] += row_keys(fields.get("label"))
            fields["label"] = f"{load}: {run.title}" if load else run.title
            if run.plain is None:
                fields["undecided"] = True
            else:
                fields["is_baseline"] = run.plain
            out.append(fields)
        return out


def _labelled(names: list[str | None], label: int | None) -> list[str | None]:
    """The fields with the runs' names in that column and no other."""
    if label is None or (names[label] is None and label == 0):
        return names
    return ["label" if at == label else None if n == "label" else n for at, n in enumerate(names)]


_MOST_FIGURES = 40  # a run has no more figures; a longer table has its runs in rows


_NO_NAME = regex(
    r"(?i)(?:values?|results?|figures?|numbers?|数?值|结果)?"
)  # of a column of figures


def _turned(lines: list[str], titled: list[bool], split: Split) -> list[_Table]:
    """Tables that have a row for each figure and a column for each run."""
    out: list[_Table] = []
    at = 0
    while at < len(lines):
        header = split(lines[at]) if any(titled[at + 1 : at + 10]) else None
        if not header or not 2 < len(header) + 1 <= 12 or any(map(value_of, header)):
            at += 1
            continue
        block = list(islice(_block(lines, at + 1, split, len(header)), _MOST_FIGURES + 1))
        few = 0 < len(block) <= _MOST_FIGURES
        titles = ["", *(cells[0] for _, cells in block)]
        names = _columns(titles) if few else None
        if names is None:
            at += 1
            continue
        table = _Table(heading_above(lines, at))
        columns = [[header[k], *(row[k] for _, row in block)] for k in range(1, len(header))]
        keys = key_columns(titles, names, columns, 0)
        for name, *cells in columns:
            fields = _row(names, titles, ["" if _NO_NAME.fullmatch(name) else name, *cells])
            if fields is not None:
                fields["keys"] = keys_of(titles, [name, *cells], keys)
                table.rows.append(fields)
                table.spans.append((block[0][0] + 1, block[-1][0] + 1))
        out += [table] if table.rows else []
        at = block[-1][0] + 1
    return out


def _block(lines: list[str], at: int, split: Split, width: int) -> Iterator[tuple[int, list[str]]]:
    """(index, cells) of the rows below a header, up to the first of another width."""
    for index in range(at, len(lines)):
        cells = split(lines[index])
        if cells is not None and is_rule(cells):
            continue
        if cells is None or len(cells) != width:
            return
        yield index, cells


def _columns(header: list[str]) -> list[str | None] | None:
    """The field of each column, None when this is no header of benchmark figures."""
    if any(value_of(cell) is not None for cell in header):
        return None
    names = best_titles(header, fields_of(header))
    if "output_tok_s" not in names:
        # A table with one speed only means what the server gives out, whatever it is called.
        names = ["output_tok_s" if name == "total_tok_s" else name for name in names]
    figures = {"output_tok_s", "accept_len", "step_ms", "request_s", "accept_rate", "mean_tpot_ms"}
    return names if figures.intersection(n for n in names if n) and len(header) > 1 else None


def _row(names: list[str | None], header: list[str], cells: list[str]) -> dict[str, Any] | None:
    fields: dict[str, Any] = {"extra": {}}
    figures = 0
    for name, title, cell in zip(names, header, cells, strict=False):
        value = value_of(cell)
        if name == "label":
            if cell:
                fields["label"] = cell
        elif name is not None and value is not None:
            percent = name == "accept_rate" and "%" in cell + title
            if name.endswith("_ms"):
                value = milliseconds(value, cell, title)
            fields[name] = typed(name, value / 100 if percent else value)
            figures += 1
        elif name is None and cell:
            fields["extra"][title] = cell if value is None else value
    if not figures:
        return None
    if "label" not in fields and cells and value_of(cells[0]) is None and names[0] is None:
        fields["label"] = cells[0]
    return fields
