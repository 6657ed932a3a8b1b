"""A W&B run's history as JSON lines, as its API and its exports give it: one object a step."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specdebug.client.neighbours import ForeignRun, Found
from specdebug.client.neighbours.mlflow import _metric


def read(path: Path) -> Found:
    """One run from a history file; a config.yaml or config.json beside it is attached as it is."""
    first = next(_objects(path), None)
    if first is None or not any(_number(v) for v in first.values()):
        raise ValueError(f"{path} is no W&B history: a JSON object with numbers on each line")
    beside = [p for name in ("config.yaml", "config.json") if (p := path.parent / name).is_file()]
    return Found(
        (
            ForeignRun(
                key=f"wandb:{path.parent.name}/{path.name}",
                title=path.parent.name or path.stem,
                points=lambda: _points(path),
                files=tuple(beside),
            ),
        )
    )


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _points(path: Path) -> Iterator[tuple[int, float, dict[str, float]]]:
    for place, row in enumerate(_objects(path)):
        step = row.get("_step", place)
        moment = row.get("_timestamp", 0.0)
        values = {_metric(k): float(v) for k, v in row.items() if k[:1] != "_" and _number(v)}
        if values:
            yield (
                int(step) if _number(step) else place,
                float(moment) if _number(moment) else 0.0,
                values,
            )
