"""Figures in printed benchmark tables, pipe tables and client reports; knows words, not JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

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
_ROW = re.compile(r"^\s*([A-Za-z][^:|]{0,60}?)\s*(?:\(([^)]*)\))?\s*:\s+(\S.*?)\s*$")
_POSITION = re.compile(r"^\s*Position (\d{1,4}):\s+([\d.]+)")
_TITLE = re.compile(r"=+\s*Serving Benchmark Result\s*=+")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_BASELINE = re.compile(
    r"(?i)\b(?:no|without|w/o|non)[ -]?(?:spec\w*|eagle\d?|draft\w*)\b|\bbaseline\b|\bvanilla\b"
    r"|\bspec\w* (?:off|disabled)\b|\bplain\b|\bautoregressive\b|\bR0\b"
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


def value_of(text: str) -> float | None:
    """The number in a cell ("~1.6", "1,234.5", "56.8 tok/s"), None for "-" and words."""
    match = _NUMBER.search(text.replace("\u2212", "-"))
    if match is None or not re.fullmatch(
        r"[~\u2248<>= ]*[-+]?[\d.,eE+-]+ *[A-Za-z%/]*", text.strip()
    ):
        return None
    return float(match[0].replace(",", ""))


def is_baseline(label: str) -> bool:
    """Whether a label names a run without speculation."""
    return _BASELINE.search(label) is not None


def typed(field: str, value: float) -> Any:
    """The value as the field's type."""
    return int(value) if field in WHOLE and value == int(value) else value


Found = tuple[int, int, dict[str, Any]]


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
    for split in (_by_pipe, _by_tab, _by_comma, _by_space):
        at = 0
        while at < len(lines):
            header = split(lines[at])
            names = _columns(header) if header else None
            if names is None or header is None:
                at += 1
                continue
            at += 1
            while at < len(lines):
                cells = split(lines[at])
                if cells is None or len(cells) > len(header) + 1:
                    break
                if all(re.fullmatch(r":?-{2,}:?", cell) for cell in cells if cell):
                    at += 1
                    continue
                fields = _row(names, header, cells)
                if fields is None:
                    break
                out.append((at + 1, at + 1, fields))
                at += 1
        if out:
            break
    return out


def _columns(header: list[str]) -> list[str | None] | None:
    """The field of each column, None when this is no header of benchmark figures."""
    if any(value_of(cell) is not None for cell in header):
        return None
    names: list[str | None] = []
    for cell in header:
        field = next((f for pattern, f in _HEADERS if re.search(pattern, cell.lower())), None)
        names.append(field if field not in names else None)
    if "output_tok_s" not in names:
        # A table with one speed only means what the server gives out, whatever it is called.
        names = ["output_tok_s" if name == "total_tok_s" else name for name in names]
    figures = {"output_tok_s", "accept_len", "step_ms", "request_s", "accept_rate"}
    return names if figures.intersection(n for n in names if n) and len(header) > 1 else None


def _row(names: list[str | None], header: list[str], cells: list[str]) -> dict[str, Any] | None:
    fields: dict[str, Any] = {"extra": {}}
    figures = 0
    for name, title, cell in zip(names, header, cells, strict=False):
        value = value_of(cell)
        if name == "label":
            fields["label"] = cell
        elif name is not None and value is not None:
            percent = name == "accept_rate" and "%" in cell + title
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
    cells = re.split(r"\s{2,}", line.strip()) if len(line) < 4_000 else []
    return cells if len(cells) > 1 else None


_REPORT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), field)
    for pattern, field in (
        (r"(?:events|chunks) per request\s*[:=]?\s+([\d.,]+)", "events_per_request"),
        (
            r"(?:output|generated|decode|generation)?\s*(?:tokens?|tok)\s*/\s*s(?:ec)?\s*[:=]?\s+([\d.,]+)",
            "output_tok_s",
        ),
        (r"(?:output|decode|generation)?\s*throughput[^\d\n]{0,20}\s([\d.,]+)", "output_tok_s"),
        (r"([\d.,]+)\s*(?:output )?(?:tokens?|tok)\s*/\s*s", "output_tok_s"),
        (r"accept\w*[ _]*len\w*[^\d\n]{0,12}([\d.]+)", "accept_len"),
        (r"accept\w*[ _]*rate[^\d\n]{0,12}([\d.]+)(?!\s*%)", "accept_rate"),
        (r"^\s*requests\s*[:=]?\s+([\d,]+)", "completed"),
        (r"concurrency\s*[:=]?\s+(\d+)", "max_concurrency"),
    )
)


_SPEED = re.compile(r"(?i)([\d.,]*\d)\s*(?:output )?(?:tokens?|tok)\s*(?:/\s*s|per sec)")
_CLAUSE = re.compile(
    r"(?i)[.;](?=\s)|,\s|\b(?:while|whereas|versus|vs\.?|against|compared (?:to|with)|but|than|and"
    r"|instead of|from|to)\b|->|\u2192"
)


def _sentence(plain: str) -> list[dict[str, Any]] | None:
    """A line of prose that sets one speed against the baseline's: a row for each, or None.

    An accept length or rate in it belongs to the run that is not the baseline.
    """
    if len(_SPEED.findall(plain)) != 2:
        return None
    rows: list[dict[str, Any]] = []
    rest: dict[str, Any] = {"extra": {}}
    for clause in _CLAUSE.split(plain):
        speed = _SPEED.search(clause)
        value = value_of(speed[1]) if speed else None
        if value is not None:
            plain_run = is_baseline(clause)
            rows.append({"output_tok_s": value, "label": "baseline" if plain_run else None})
        for pattern, field in _REPORT:
            if field in ("accept_len", "accept_rate") and (match := pattern.search(clause)):
                figure = value_of(match[1].rstrip(".,"))
                if figure is not None:
                    rest[field] = figure
    if len(rows) != 2 or sum(row["label"] is not None for row in rows) != 1:
        return None
    return [{"extra": {}, **row} if row["label"] else {**row, **rest} for row in rows]


_INPUT = re.compile(r"(?i)\b(?:input|prefill|prompt)\b[^\d\n]{0,30}(?:throughput|tok)")
_OUTPUT = re.compile(r"(?i)\b(?:output|decode|generat\w+)\b")


def client_report(lines: list[str], skip: Callable[[int], bool]) -> list[Found]:
    """Figures a client printed in words, blank lines between runs; engine lines are left out."""
    out: list[Found] = []
    current: dict[str, Any] = {}
    first = 0
    for number, line in enumerate([*lines, ""], 1):
        plain = line.strip()
        if not plain or skip(number):
            if "output_tok_s" in current:
                out.append((first, number - 1, {"extra": {}, **current}))
            current = {}
            continue
        if len(plain) > 400:
            continue
        if not current and (told := _sentence(plain)):
            out += [(number, number, fields) for fields in told]
            continue
        found = {}
        for pattern, field in _REPORT:
            if field not in found and (match := pattern.search(plain)):
                value = value_of(match[1].rstrip(".,"))
                if value is not None:
                    found[field] = typed(field, value)
        if _INPUT.search(plain) and not _OUTPUT.search(plain):
            found.pop("output_tok_s", None)
        if "output_tok_s" in found and "output_tok_s" in current:
            out.append((first, number - 1, {"extra": {}, **current}))
            current = {}
        if found and not current:
            first = number
        if "output_tok_s" in found:
            label = re.split(r"[:=]|\d", plain, maxsplit=1)[0].strip(" -*|")
            generic = re.search(r"(?i)tok|throughput", label)
            current.setdefault("label", label if label and not generic else None)
        current |= found
        if re.search(r"(?i)one request at a time|concurrency of 1\b|single request", plain):
            current.setdefault("max_concurrency", 1)
            first = first or number
    return out
