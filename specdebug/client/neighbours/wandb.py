"""A W&B run's history as JSON lines, as its API and its exports give it: one object a step."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specdebug.client.neighbours import ForeignRun, Found
from specdebug.client.neighbours.mlflow import metric_name


def read(path: Path) -> Found:
    """One run from a history file; a config.yaml or config.json beside it is attached as it is."""
    problems: list[str] = []
    rows = _objects(path, problems)
    first = next(rows, None)
    for _ in rows:
        pass
    if first is None or not any(_number(v) for v in first.values()):
        raise ValueError(f"{path} is no W&B history: a JSON object with numbers on each line")
    beside = [p for name in ("config.yaml", "config.json") if (p := path.parent / name).is_file()]
    return Found(
        (
            ForeignRun(
                key=f"wandb:{path.parent.name}/{path.name}",
                title=path.parent.name or path.stem,
                params=_config(path.parent / "config.json"),
                points=lambda: _points(path),
                files=tuple(beside),
            ),
        ),
        tuple(problems),
    )


def _config(path: Path) -> dict[str, Any]:
    """The run's own settings, written plain or as {"value": ...}; empty where there are none."""
    try:
        found = json.loads(path.read_text("utf-8", "replace")) if path.is_file() else {}
    except (OSError, ValueError):
        return {}  # it is attached as it is
    rows = found.items() if isinstance(found, dict) else ()
    plain = {k: v["value"] if isinstance(v, dict) and "value" in v else v for k, v in rows}
    return {
        k[:80]: v
        for k, v in plain.items()
        if k[:1] != "_" and isinstance(v, str | int | float | bool)
    }


def _objects(path: Path, problems: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The object of each line; lines that are none go into `problems`."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict):
                yield found
            elif problems is not None and line.strip():
                problems.append(f"{path}, line {number}: no JSON object")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _points(path: Path) -> Iterator[tuple[int, float, dict[str, float]]]:
    for place, row in enumerate(_objects(path)):
        step = row.get("_step", place)
        moment = row.get("_timestamp", 0.0)
        values = {metric_name(k): float(v) for k, v in row.items() if k[:1] != "_" and _number(v)}
        if values:
            yield (
                int(step) if _number(step) else place,
                float(moment) if _number(moment) else 0.0,
                values,
            )
