"""Benchmark output in its many shapes, as rows with units; speaks of one client run, draws no
conclusion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from specdebug.sglang.server_info import ServerInfo

BenchKind = Literal[
    "bench-serving-jsonl",
    "bench-serving-table",
    "bench-serving-command",
    "bench-one-batch",
    "bench-speculative",
    "vllm-bench",
    "table",
    "client-report",
]


@dataclass(frozen=True)
class BenchRun:
    """One benchmark run or one row of a table.

    Throughputs are tokens per second, latencies milliseconds, `duration_s` seconds. `accept_len`
    includes the bonus token. `requested_draft_tokens` is what the row says; `draft_tokens` what is
    really in force when a known rule corrects it (bench_speculative records the request). `line` is
    1-based; `extra` keeps the rest.
    """

    kind: BenchKind
    line: int
    label: str | None = None
    output_tok_s: float | None = None
    total_tok_s: float | None = None
    request_s: float | None = None
    accept_len: float | None = None
    accept_rate: float | None = None
    step_ms: float | None = None
    concurrency: float | None = None
    max_concurrency: int | None = None
    batch_size: int | None = None
    duration_s: float | None = None
    completed: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    mean_ttft_ms: float | None = None
    mean_tpot_ms: float | None = None
    mean_itl_ms: float | None = None
    mean_e2e_ms: float | None = None
    dataset: str | None = None
    ignore_eos: bool | None = None
    num_steps: int | None = None
    topk: int | None = None
    requested_draft_tokens: int | None = None
    draft_tokens: int | None = None
    events_per_request: float | None = None
    is_baseline: bool | None = None
    server_info: ServerInfo | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BenchReport:
    """What one file or paste holds; `problems` are (line, message) of parts that could not be read."""

    runs: tuple[BenchRun, ...]
    problems: tuple[tuple[int, str], ...] = ()


def read_benches(text: str | bytes) -> BenchReport:
    """Read every run found in `text`; an empty `runs` means none was recognised. Never raises on
    content."""
    raise NotImplementedError
