"""The Prometheus text of /metrics, for both engines; reads what speculation needs and keeps the
rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
        """The value of the first sample called `name` (without engine prefix or `_total`) with
        these labels."""
        raise NotImplementedError

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Values of `name` keyed by one label (per rank, per position); duplicates are summed."""
        raise NotImplementedError


def read_metrics(text: str | bytes) -> Metrics:
    """Read exposition text; lines that are none are counted, never fatal."""
    raise NotImplementedError
