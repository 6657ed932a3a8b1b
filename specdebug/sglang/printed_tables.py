"""Figures in the tables that benchmark clients print, a label and a value to each line."""

from __future__ import annotations

import re
from typing import Any

from specdebug.sglang.bench_titles import Found, typed
from specdebug.sglang.headings import heading_above, under_headings
from specdebug.sglang.patterns import regex
from specdebug.sglang.table_cells import value_of

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
_ROW = regex(r"^\s*([A-Za-z][^:|]{0,60}?)\s*(?:\(([^)]*)\))?\s*:\s+(\S.*?)\s*$")
_POSITION = regex(r"^\s*Position (\d{1,4}):\s+([\d.]+)")
_TITLE = regex(r"=+\s*Serving Benchmark Result\s*=+")


def printed_tables(lines: list[str]) -> list[Found]:
    """(first line, last line, fields) of each `Serving Benchmark Result` table; extra keys kept."""
    spans: list[tuple[int, int]] = []
    tables: list[tuple[str | None, list[dict[str, Any]]]] = []
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
        spans.append((start + 1, min(at + 1, len(lines))))
        tables.append((heading_above(lines, start), [fields]))
    under_headings(tables)
    return [(*span, rows[0]) for span, (_, rows) in zip(spans, tables, strict=True)]


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
