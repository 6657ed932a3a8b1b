"""Figures in printed benchmark tables and tables with a header; knows words, not JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from specdebug.sglang.patterns import regex

# Label of a printed row (lower case, without unit) -> field of BenchRun.
PRINTED: dict[str, str] = {
    "output token throughput": "output_tok_s",
    "total token throughput": "total_tok_s",
    "total throughput": "total_tok_s",
    "request throughput": "request_s",
    "accept length": "accept_len",
    "acceptance length": "accept_len",
    "acceptance rate": "accept_rate",
    "concurrency": "concurrency",
    "max request concurrency": "max_concurrency",
    "maximum request concurrency": "max_concurrency",
    "successful requests": "completed",
    "benchmark duration": "duration_s",
    "total input tokens": "input_tokens",
    "total generated tokens": "output_tokens",
    "mean ttft": "mean_ttft_ms",
    "mean tpot": "mean_tpot_ms",
    "mean itl": "mean_itl_ms",
    "mean e2e latency": "mean_e2e_ms",
    "mean e2el": "mean_e2e_ms",
}
WHOLE = frozenset(
    [
        "max_concurrency",
        "completed",
        "input_tokens",
        "output_tokens",
        "batch_size",
        "num_steps",
        "topk",
        "requested_draft_tokens",
    ]
)
_ROW = regex(r"^\s*([A-Za-z][^:|]{0,60}?)\s*(?:\(([^)]*)\))?\s*:\s+(\S.*?)\s*$")
_POSITION = regex(r"^\s*Position (\d{1,4}):\s+([\d.]+)")
_TITLE = regex(r"=+\s*Serving Benchmark Result\s*=+")
_NUMBER = regex(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?")
_THOUSANDS = regex(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL_COMMA = regex(r"[-+]?\d+,\d+|[-+]?\d{1,3}(?:\.\d{3})+,\d+")
_BASELINE = regex(
    r"(?i)\b(?:no|without|w/o|non)[ -]?(?:spec\w*|eagle\d?|draft\w*)\b|\bbaseline\b|\bvanilla\b"
    r"|\b(?:spec|eagle|draft|mtp)[\w-]*\s*[:=]?\s*(?:off|disabled)\b|\bplain\b|\bautoregressive\b|\bR0\b"
)

# A title without a field is of no figure used here, though a later pattern would take it.
_HEADERS: tuple[tuple[str, str | None], ...] = (
    ("(?:input|prefill|prompt).*(?:tok|throughput)", None),
    ("(?:total|overall).*(?:tok\\w*\\s*/|throughput)", "total_tok_s"),
    ("draft tokens (?:used|effective|in force)|effective draft", "draft_tokens"),
    ("draft[ _]?tokens?|num[ _]draft|window", "requested_draft_tokens"),
    ("accept\\w*[ _]*len\\w*|acc[ _]?len\\w*|^al$|mean acceptance|tau", "accept_len"),
    ("accept\\w*[ _]*rate|acc[ _]?rate", "accept_rate"),
    ("num[ _]?steps?|^steps?$|spec\\w* steps?", "num_steps"),
    ("step[ _]?(?:time|ms)|ms/step", "step_ms"),
    ("top[ _-]?k", "topk"),
    ("ttft", "mean_ttft_ms"),
    ("tpot", "mean_tpot_ms"),
    ("concurren|parallel", "max_concurrency"),
    ("batch|^bs$", "batch_size"),
    ("req\\w*/s|rps|qps", "request_s"),
    (
        "tok\\w*\\s*/\\s*s|tok\\w*[ _]per[ _]s|tok\\w*_s(?:ec)?$|throughput|^tps$|speed",
        "output_tok_s",
    ),
    ("^run$|name|label|config\\w*|setting|variant|case|mode|method|^$", "label"),
)


# One of these stands in every title of a figure; a line without one is no header, whatever
# separates its cells, and thousands of progress bars are such lines.
_IN_TITLES = (
    "tpot",
    "tok",
    "throughput",
    "tps",
    "speed",
    "acc",
    "tau",
    " al",
    "step",
    "req",
    "rps",
    "qps",
)


_BETWEEN_CELLS = str.maketrans(dict.fromkeys('|,*`"\t', " "))


def _may_be_header(lines: list[str]) -> bool:
    low = " ".join(["", *lines]).lower().translate(_BETWEEN_CELLS)
    return any(word in low for word in _IN_TITLES)


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


def is_baseline(label: str) -> bool:
    """Whether a label names a run without speculation."""
    return _BASELINE.search(label) is not None


def typed(field: str, value: float) -> Any:
    """The value as the field's type."""
    return int(value) if field in WHOLE and value == int(value) else value


Found = tuple[int, int, dict[str, Any]]

_RULE = regex(r":?-+:?")
_GAP = regex(r"\s{2,}")
_CELL = regex(r"\S+(?: \S+)*")


def printed_tables(lines: list[str]) -> list[Found]:
    """(first line, last line, fields) of each `Serving Benchmark Result` table; extra keys kept."""
    out: list[Found] = []
    at = 0
    while at < len(lines):
        if not _TITLE.search(lines[at]):
            at += 1
            continue
        start = at
        fields: dict[str, Any] = {"extra": {}}
        positions: list[float] = []
        at += 1
        while at < len(lines) and not re.match(r"^\s*=+\s*$", lines[at]):
            if _TITLE.search(lines[at]):
                break
            if match := _POSITION.match(lines[at]):
                positions.append(float(match[2].rstrip(".") or 0))
            elif row := _ROW.match(lines[at]):
                _take(fields, row[1].strip().lower(), row[2] or "", row[3])
            at += 1
        if positions:
            fields["extra"]["per_position"] = positions
        out.append((start + 1, min(at + 1, len(lines)), fields))
    return out


def _take(fields: dict[str, Any], label: str, unit: str, text: str) -> None:
    if unit == "retokenized":
        # The same tokens counted by another tokenizer.
        label += " retokenized"
    field = PRINTED.get(label)
    value = value_of(text)
    if field is not None and value is not None:
        fields[field] = typed(field, value / 100 if unit == "%" else value)
    else:
        key = re.sub(r"\W+", "_", label).strip("_")
        fields["extra"][key] = text if value is None else value


def pipe_tables(lines: list[str]) -> list[Found]:
    """Rows of tables with a header: Markdown, tab-separated, comma-separated, or wide spaces."""
    out: list[Found] = []
    titled = [_may_be_header([line]) for line in lines]
    for split in (_by_pipe, _by_tab, _by_comma, _by_space):
        at = 0
        while at < len(lines):
            header = split(lines[at]) if titled[at] else None
            names = _columns(header) if header else None
            if names is None or header is None:
                at += 1
                continue
            speeds = _speeds(header)
            titles = lines[at]
            at += 1
            while at < len(lines):
                cells = split(lines[at])
                if cells is None or len(cells) > len(header) + 1:
                    break
                if all(_RULE.fullmatch(cell) for cell in cells if cell):
                    at += 1
                    continue
                if split is _by_space and len(cells) < len(header):
                    cells = _below(titles, lines[at])
                fields = _row(names, header, cells)
                if fields is None:
                    break
                runs = _side_by_side(fields, header, cells, speeds) if speeds else [fields]
                out += [(at + 1, at + 1, run) for run in runs]
                at += 1
        out = out or _turned(lines, split)
        if out:
            break
    return out


def _speeds(header: list[str]) -> list[int]:
    """The columns of output speed where there are several and some are a baseline's."""
    found = [at for at, title in enumerate(header) if _field(title) == "output_tok_s"]
    plain = [at for at in found if is_baseline(header[at])]
    return found if plain and len(plain) < len(found) else []


def _side_by_side(
    fields: dict[str, Any], header: list[str], cells: list[str], speeds: list[int]
) -> list[dict[str, Any]]:
    """One run for each column of speed; acceptance belongs to those that are no baseline's."""
    drafting = ("accept_len", "accept_rate", "num_steps", "topk", "requested_draft_tokens")
    shared = {k: v for k, v in fields.items() if k not in ("output_tok_s", "label", "extra")}
    load = f"{fields['label']}: " if fields.get("label") else ""
    if not load and "batch_size" in fields:
        load = f"batch {fields['batch_size']}: "
    out: list[dict[str, Any]] = []
    for at in speeds:
        value = value_of(cells[at]) if at < len(cells) else None
        if value is not None:
            plain = is_baseline(header[at])
            own = {k: v for k, v in shared.items() if not (plain and k in drafting)}
            label = load + header[at]
            out.append({**own, "output_tok_s": value, "label": label, "extra": fields["extra"]})
    return out


_MOST_FIGURES = 40  # a run has no more figures; a longer table has its runs in rows


def _turned(lines: list[str], split: Callable[[str], list[str] | None]) -> list[Found]:
    """Runs of a table that has a row for each figure and a column for each run."""
    out: list[Found] = []
    at = 0
    while at < len(lines):
        header = split(lines[at]) if _may_be_header(lines[at + 1 : at + 4]) else None
        if not header or not 2 < len(header) + 1 <= 12 or any(map(value_of, header)):
            at += 1
            continue
        block = list(islice(_block(lines, at + 1, split, len(header)), _MOST_FIGURES + 1))
        few = 0 < len(block) <= _MOST_FIGURES
        titles = _columns(["", *(cells[0] for _, cells in block)]) if few else None
        if titles is None:
            at += 1
            continue
        for column in range(1, len(header)):
            cells = [header[column], *(row[column] for _, row in block)]
            fields = _row(titles, ["", *(row[0] for _, row in block)], cells)
            if fields is not None:
                out.append((block[0][0] + 1, block[-1][0] + 1, fields))
        at = block[-1][0] + 1
    return out


def _block(
    lines: list[str], at: int, split: Callable[[str], list[str] | None], width: int
) -> Iterator[tuple[int, list[str]]]:
    """(index, cells) of the rows below a header, up to the first of another width."""
    for index in range(at, len(lines)):
        cells = split(lines[index])
        if cells is None or len(cells) != width:
            return
        if not all(_RULE.fullmatch(cell) for cell in cells if cell):
            yield index, cells


def _columns(header: list[str]) -> list[str | None] | None:
    """The field of each column, None when this is no header of benchmark figures."""
    if any(value_of(cell) is not None for cell in header):
        return None
    names: list[str | None] = []
    for cell in header:
        field = _field(cell)
        names.append(field if field not in names else None)
    if "output_tok_s" not in names:
        # A table with one speed only means what the server gives out, whatever it is called.
        names = ["output_tok_s" if name == "total_tok_s" else name for name in names]
    figures = {"output_tok_s", "accept_len", "step_ms", "request_s", "accept_rate", "mean_tpot_ms"}
    return names if figures.intersection(n for n in names if n) and len(header) > 1 else None


def _field(title: str) -> str | None:
    return next((f for pattern, f in _HEADERS if re.search(pattern, title.lower())), None)


_SECONDS = regex(r"(?i)(?:\(|\[|\bin |\d ?)(?:s|sec|seconds)(?:\)|\]|\b)")
_MILLISECONDS = regex(r"(?i)\bms\b|millisec|_ms\b|\d ?ms\b")


def _milliseconds(value: float, cell: str, title: str) -> float:
    """A time in ms; one without a unit is in seconds where no step is that short."""
    for told in (cell, title):
        if _MILLISECONDS.search(told):
            return value
        if _SECONDS.search(told):
            return 1000 * value
    return 1000 * value if value < 0.5 else value


def _row(names: list[str | None], header: list[str], cells: list[str]) -> dict[str, Any] | None:
    fields: dict[str, Any] = {"extra": {}}
    figures = 0
    for name, title, cell in zip(names, header, cells, strict=False):
        value = value_of(cell)
        if name == "label":
            fields["label"] = cell
        elif name is not None and value is not None:
            percent = name == "accept_rate" and "%" in cell + title
            if name.endswith("_ms"):
                value = _milliseconds(value, cell, title)
            fields[name] = typed(name, value / 100 if percent else value)
            figures += 1
        elif name is None and cell:
            fields["extra"][title] = cell if value is None else value
    if not figures:
        return None
    if "label" not in fields and cells and value_of(cells[0]) is None and names[0] is None:
        fields["label"] = cells[0]
    return fields


def _by_pipe(line: str) -> list[str] | None:
    if line.count("|") < 1 or len(line) > 4_000:
        return None
    return [cell.strip(" *`") for cell in line.strip().strip("|").split("|")]


def _by_tab(line: str) -> list[str] | None:
    return [cell.strip() for cell in line.split("\t")] if "\t" in line else None


def _by_comma(line: str) -> list[str] | None:
    return [cell.strip(' "') for cell in line.split(",")] if line.count(",") > 1 else None


def _by_space(line: str) -> list[str] | None:
    if "  " not in line and "\t" not in line:
        return None
    cells = _GAP.split(line.strip()) if len(line) < 4_000 else []
    return cells if len(cells) > 1 else None


def _below(titles: str, line: str) -> list[str]:
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
