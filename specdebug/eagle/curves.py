"""Reference curves: accept length by number of draft tokens as others measured it; never a bound.

The shipped ones are public figures with their source (golden_accept_length.json beside this file);
people add their own in the same form.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["Curve", "curve_from", "curves_for", "parse_points", "shipped_curves"]

MOST_DEPTHS = 64
_POINT = re.compile(r"^\s*(\d{1,3})\s*[:=]\s*([0-9]*[.,]?[0-9]+)\s*$")


@dataclass(frozen=True, slots=True)
class Curve:
    """Accept length (bonus included) by num_steps for one target and one way of drafting.

    names: parts of a model's path or served name, in lower case, that mean this target. method:
    "eagle3", "mtp", "dspark" or "". about: what was measured where, for a reader. ours: added by a
    person of this installation.
    """

    target: str
    names: tuple[str, ...]
    method: str
    accept_len: Mapping[int, float]
    about: str
    source: str
    ours: bool = False

    @property
    def deepest(self) -> int:
        return max(self.accept_len)

    def at(self, num_steps: int) -> float | None:
        """The figure at num_steps; beyond the end of the curve its last one, which is too low."""
        if num_steps in self.accept_len:
            return self.accept_len[num_steps]
        return self.accept_len[self.deepest] if num_steps > self.deepest else None


def _checked(points: Mapping[int, float], what: str) -> dict[int, float]:
    if not points:
        raise ValueError(f"{what}: a curve needs at least one point, such as 1: 1.83")
    for steps, length in points.items():
        if not 1 <= steps <= MOST_DEPTHS:
            raise ValueError(f"{what}: {steps} draft tokens; 1 to {MOST_DEPTHS} are taken")
        if not (math.isfinite(length) and 1 <= length <= steps + 1):
            raise ValueError(
                f"{what}: an accept length of {length:g} at {steps} draft tokens; it lies between "
                f"1 and {steps + 1}, bonus token included"
            )
    return dict(sorted(points.items()))


def parse_points(text: str) -> dict[int, float]:
    """Points as people write them: "1: 1.83, 2: 2.43", one a line or separated by commas.

    Raises ValueError that names the part that is no point, or a figure no chain can have.
    """
    points: dict[int, float] = {}
    for number, line in enumerate(re.split(r"[;\n]|,(?=\s*\d+\s*[:=])", text), start=1):
        if not line.strip():
            continue
        match = _POINT.match(line)
        if match is None:
            raise ValueError(f"point {number}: {line.strip()[:40]!r} is not like 1: 1.83")
        steps = int(match[1])
        if steps in points:
            raise ValueError(f"point {number}: {steps} draft tokens stand there twice")
        points[steps] = float(match[2].replace(",", "."))
    return _checked(points, "the curve")


def curve_from(raw: Mapping[str, Any]) -> Curve:
    """A curve from its stored form; raises ValueError that says what is wrong."""
    target = str(raw.get("target", "")).strip()
    if not target:
        raise ValueError("a curve needs the name of its target")
    try:
        points = {int(k): float(v) for k, v in dict(raw["accept_len"]).items()}
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{target}: accept_len is not a mapping of draft tokens to lengths") from (
            None
        )
    return Curve(
        target=target,
        names=tuple(str(n).lower() for n in raw.get("names") or (target,)),
        method=str(raw.get("method", "")),
        accept_len=_checked(points, target),
        about=str(raw.get("about", "")),
        source=str(raw.get("source", "")),
        ours=bool(raw.get("ours", False)),
    )


@lru_cache(maxsize=1)
def shipped_curves() -> tuple[Curve, ...]:
    """The public curves that come with the program, each with and without thinking where known."""
    text = Path(__file__).with_name("golden_accept_length.json").read_text("utf-8")
    held: dict[str, Any] = json.loads(text)
    found = []
    for row in held["curves"]:
        for part in row["curves"]:
            mode = "thinking on" if part["thinking"] else "thinking off"
            said = [row["checkpoint"], row["variant"], row["measured_on"], mode]
            if part["temperature"] is not None:
                said.append(f"temperature {part['temperature']:g}")
            said.append(held["dataset"])
            found.append(
                curve_from(
                    {**row, **part, "about": ", ".join(s for s in said if s)}
                    | {"source": held["source"]}
                )
            )
    return tuple(found)


def curves_for(names: Iterable[str], curves: Iterable[Curve], method: str = "") -> list[Curve]:
    """The curves whose target one of `names` means; the longest match wins over a shorter one.

    method: keep those of this method, and those that name none.
    """
    wanted = [name.lower() for name in names]
    ranked = []
    for curve in curves:
        reach = max((len(n) for n in curve.names if any(n in w for w in wanted)), default=0)
        if reach and (not method or curve.method in ("", method)):
            ranked.append((reach, curve))
    best = max((reach for reach, _ in ranked), default=0)
    return [curve for reach, curve in ranked if reach == best]
