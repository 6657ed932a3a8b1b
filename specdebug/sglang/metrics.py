"""The Prometheus text of /metrics, for both engines; keeps every sample but histogram buckets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from specdebug.sglang.pasted import as_text
from specdebug.sglang.patterns import regex

_SAMPLE = regex(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+([^\s{}]+)(?:\s+-?\d+)?$")
_LABEL = regex(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
_MAX_SAMPLES = 200_000


@dataclass(frozen=True)
class Sample:
    """One exposition line: name as written, labels, value, 1-based line."""

    name: str
    labels: Mapping[str, str]
    value: float
    line: int


@dataclass(frozen=True)
class Metrics:
    """All samples of one scrape; histogram buckets are dropped, their sums and counts kept."""

    samples: tuple[Sample, ...]
    unknown_lines: int

    def get(self, name: str, **labels: str) -> float | None:
        """The first sample called `name` (without engine prefix or `_total`) with these labels."""
        for sample in self.samples:
            if _short(sample.name) == _short(name) and labels.items() <= sample.labels.items():
                return sample.value
        return None

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Values of `name` keyed by one label (per rank, per position); duplicates are summed."""
        out: dict[str, float] = {}
        for sample in self.samples:
            if _short(sample.name) == _short(name) and label in sample.labels:
                key = sample.labels[label]
                out[key] = out.get(key, 0.0) + sample.value
        return out


def read_metrics(text: str | bytes) -> Metrics:
    """Read exposition text; lines that are none are counted, never fatal."""
    samples: list[Sample] = []
    unknown = 0
    for number, line in enumerate(as_text(text).split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _SAMPLE.match(line) if len(line) < 10_000 else None
        value = _value(match[3]) if match else None
        if match is None or value is None or len(samples) >= _MAX_SAMPLES:
            unknown += 1
        elif not match[1].endswith("_bucket"):
            labels = {
                key: re.sub(r"\\(.)", r"\1", text) for key, text in _LABEL.findall(match[2] or "")
            }
            samples.append(Sample(match[1], labels, value, number))
    return Metrics(tuple(samples), unknown)


def _short(name: str) -> str:
    return name.rpartition(":")[2].removesuffix("_total")


def _value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
