"""Writes rules.json, which is read at every start, from rules.toml, which is what people edit.

    python -m specdebug.sglang.rules_json

Reading TOML took a twentieth of the time in which `specdebug check` starts.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

__all__ = ["text"]

HERE = Path(__file__).parent


def text() -> str:
    """What rules.json has to hold: the table, one entry a line."""
    data = tomllib.loads((HERE / "rules.toml").read_text(encoding="utf-8"))
    parts = []
    for key, value in data.items():
        rows = value if isinstance(value, list) else [value]
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(f'"{key}": [\n{lines}\n]' if isinstance(value, list) else f'"{key}": {lines}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    (HERE / "rules.json").write_text(text(), encoding="utf-8")
