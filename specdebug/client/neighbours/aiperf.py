"""AIPerf's summary of one profile (profile_export_aiperf.json): a measured pass of one run. The
file itself is attached; its records of single requests are not read.

Written as {metric: {"unit": ..., "avg": ...}}, as of AIPerf 0.1 to 0.10.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specdebug.client.neighbours import ForeignRun, Found

LARGEST = 256 << 20
# Seconds a unit, where it is one of time.
_SECONDS = {"sec": 1.0, "s": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
# Where AIPerf keeps what was asked for -> the name here.
_ASKED = {
    ("loadgen", "concurrency"): "concurrency",
    ("loadgen", "request_rate"): "request_rate",
    ("loadgen", "request_count"): "num_prompts",
    ("endpoint", "model_names"): "model",
}
_LATENCIES = {
    "time_to_first_token": "mean_ttft_ms",
    "inter_token_latency": "mean_itl_ms",
    "request_latency": "mean_e2e_ms",
}


def read(path: Path) -> Found:
    """Its one run. Raises ValueError where it is no such summary or was cancelled."""
    raw, data = whole_json(path)
    speed = _average(data, "output_token_throughput")
    if speed is None or speed <= 0:
        raise ValueError(f"{path} is no summary of AIPerf: it has no output_token_throughput.avg")
    if data.get("was_cancelled") is True:
        raise ValueError(f"{path} is of a profile that was cancelled; its averages are of a part")
    asked = data.get("input_config")
    params: dict[str, Any] = {"benchmark": "aiperf"}
    for (group, key), name in _ASKED.items():
        part = asked.get(group) if isinstance(asked, Mapping) else None
        value = part.get(key) if isinstance(part, Mapping) else None
        if value not in (None, []):
            params[name] = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(version := data.get("aiperf_version"), str):
        params["aiperf_version"] = version
    moments = {
        ours: 1000 * value
        for name, ours in _LATENCIES.items()
        if (value := _seconds(data, name)) is not None
    }
    pass_ = {
        "tok_s": speed,
        "seconds": _seconds(data, "benchmark_duration"),
        "requests": _count(data, "request_count"),
        "tokens": _count(data, "total_output_tokens"),
    }
    return Found(
        (
            ForeignRun(
                key=f"aiperf:{hashlib.sha256(raw).hexdigest()[:16]}",
                title=f"AIPerf, {path.parent.name or path.name}",
                params=params,
                points=lambda: iter([(0, 0.0, moments)] if moments else []),
                repeats=({k: v for k, v in pass_.items() if v},),
                files=(path,),
            ),
        )
    )


def whole_json(path: Path) -> tuple[bytes, dict[str, Any]]:
    """A file's bytes and the object that they are; raises ValueError."""
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path} is larger than {LARGEST >> 20} MiB")
    raw = path.read_bytes()
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path} holds a {type(data).__name__}, not an object")
    return raw, data


def figure(value: Any) -> float | None:
    """A finite number; None for all else."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good else None


def _average(data: Mapping[str, Any], name: str) -> float | None:
    row = data.get(name)
    return figure(row.get("avg")) if isinstance(row, Mapping) else None


def _count(data: Mapping[str, Any], name: str) -> int | None:
    value = _average(data, name)
    return None if value is None else round(value)


def _seconds(data: Mapping[str, Any], name: str) -> float | None:
    value, row = _average(data, name), data.get(name)
    unit = row.get("unit") if isinstance(row, Mapping) else None
    factor = _SECONDS.get(str(unit).lower())
    return None if value is None or factor is None else value * factor
