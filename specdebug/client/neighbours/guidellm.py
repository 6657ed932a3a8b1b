"""GuideLLM's report (benchmarks.json): each benchmark in it, which is one rate or concurrency, is a
run with one measured pass. The file itself is attached; single requests are not read.

Written as benchmarks[].metrics.NAME.successful.mean, as of GuideLLM 0.2 to 0.8.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specdebug.client.neighbours import ForeignRun, Found
from specdebug.client.neighbours.aiperf import figure, whole_json

_LATENCIES = {
    "time_to_first_token_ms": "mean_ttft_ms",
    "inter_token_latency_ms": "mean_itl_ms",
    "time_per_output_token_ms": "mean_tpot_ms",
}


def read(path: Path) -> Found:
    """Its runs with an output throughput. Raises ValueError where there is none."""
    raw, data = whole_json(path)
    rows = data.get("benchmarks")
    if not isinstance(rows, list):
        raise ValueError(f"{path} is no report of GuideLLM: it has no list `benchmarks`")
    digest = hashlib.sha256(raw).hexdigest()[:16]
    runs: list[ForeignRun] = []
    problems: list[str] = []
    for place, row in enumerate(rows):
        run = _run(path, f"guidellm:{digest}:{place}", row) if isinstance(row, Mapping) else None
        if run is None:
            problems.append(
                f"{path}, benchmark {place}: no output throughput of completed requests"
            )
        else:
            runs.append(run)
    if not runs:
        raise ValueError(f"{path} holds no benchmark with an output throughput")
    return Found(tuple(runs), tuple(problems))


def _run(path: Path, key: str, row: Mapping[str, Any]) -> ForeignRun | None:
    metrics = _part(row, "metrics")
    speed = _mean(metrics, "output_tokens_per_second")
    if speed is None or speed <= 0:
        return None
    strategy = _strategy(row)
    kind = str(strategy.get("type_") or "benchmark")
    level = next((figure(strategy[k]) for k in ("streams", "rate") if k in strategy), None)
    latencies = {
        ours: value
        for name, ours in _LATENCIES.items()
        if (value := _mean(metrics, name)) is not None
    }
    done = figure(_part(metrics, "request_totals").get("successful"))
    per_request = _mean(metrics, "output_token_count")
    pass_ = {
        "tok_s": speed,
        "seconds": figure(row.get("duration")),
        "requests": None if done is None else round(done),
        "tokens": None if done is None or per_request is None else round(done * per_request),
    }
    params: dict[str, Any] = {"benchmark": "guidellm", "strategy": kind}
    if level is not None:
        params["streams" if "streams" in strategy else "request_rate"] = level
    concurrency = _mean(metrics, "request_concurrency")
    if concurrency is not None:
        params["concurrency"] = round(concurrency, 3)
    return ForeignRun(
        key=key,
        title=f"GuideLLM, {kind}" + (f" {level:g}" if level is not None else ""),
        params=params,
        points=lambda: iter([(0, 0.0, latencies)] if latencies else []),
        repeats=({k: v for k, v in pass_.items() if v},),
        files=(path,),
    )


def _strategy(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """`config.strategy` now, `args.strategy` before 0.4."""
    return _part(_part(row, "config"), "strategy") or _part(_part(row, "args"), "strategy")


def _part(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = row.get(name)
    return value if isinstance(value, Mapping) else {}


def _mean(metrics: Mapping[str, Any], name: str) -> float | None:
    """Over completed requests; a request that was cut has no latency of its own."""
    return figure(_part(_part(metrics, name), "successful").get("mean"))
