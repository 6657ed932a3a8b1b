"""Benchmark output of SGLang's and vLLM's clients, as the library's reader takes it apart: rows
under one setting are repeats of one run. The file itself is attached."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from specdebug.client.neighbours import ForeignRun, Found
from specdebug.sglang.benches import BenchRun, read_benches

LARGEST = 256 << 20
# What tells one setting from another; the rest is what was measured.
SETTINGS = (
    "label",
    "concurrency",
    "max_concurrency",
    "batch_size",
    "num_steps",
    "topk",
    "requested_draft_tokens",
    "dataset",
)
_NAMES = {
    "num_steps": "speculative_num_steps",
    "topk": "speculative_eagle_topk",
    "requested_draft_tokens": "speculative_num_draft_tokens",
}


def read(path: Path) -> Found:
    """Its runs with an output throughput. Raises ValueError where there is none."""
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path} is larger than {LARGEST >> 20} MiB")
    data = path.read_bytes()
    report = read_benches(data)
    problems = [f"{path}, line {line}: {text}" for line, text in report.problems]
    groups: dict[tuple[Any, ...], list[BenchRun]] = {}
    for row in report.runs:
        if row.output_tok_s is None or row.output_tok_s <= 0:
            continue
        groups.setdefault(tuple(getattr(row, name) for name in SETTINGS), []).append(row)
    if not groups:
        raise ValueError(f"{path} holds no benchmark result with an output throughput")
    digest = hashlib.sha256(data).hexdigest()[:16]
    runs = tuple(
        _run(path, f"bench:{digest}:{place}", rows) for place, rows in enumerate(groups.values())
    )
    return Found(runs, tuple(problems))


def _run(path: Path, key: str, rows: list[BenchRun]) -> ForeignRun:
    first = rows[0]
    params = {
        _NAMES.get(name, name): value
        for name in SETTINGS
        if (value := getattr(first, name)) is not None
    }
    return ForeignRun(
        key=key,
        title=first.label or f"{path.name}, line {first.line}",
        params=params | {"benchmark": first.kind},
        repeats=tuple(_repeat(row) for row in rows),
        files=(path,),
    )


def _repeat(row: BenchRun) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "tok_s": row.output_tok_s,
        "accept_len": row.accept_len if (row.accept_len or 0) >= 1 else None,
        "step_ms": row.step_ms or None,
        "seconds": row.duration_s or None,
        "requests": row.completed or None,
        "tokens": row.output_tokens or None,
    }
    return {name: value for name, value in figures.items() if value is not None}
