"""Decode lines of one rank in columns: a bounded sample to plot and test, exact aggregates over all
of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import numpy as np
import numpy.typing as npt

Column = Literal[
    "running", "queue", "tokens", "token_usage", "accept_len", "accept_rate", "throughput", "graph"
]
COLUMNS: tuple[Column, ...] = (
    "running",
    "queue",
    "tokens",
    "token_usage",
    "accept_len",
    "accept_rate",
    "throughput",
    "graph",
)


@dataclass(frozen=True, slots=True)
class DecodeLine:
    """One decode line. `line` is 1-based; `time` is as printed (no zone); `throughput` is tokens
    per second over all running requests; `accept_len` includes the bonus token; `graph` is None
    where the line does not say."""

    line: int
    time: datetime | None
    rank: str
    running: int | None
    queue: int | None
    tokens: int | None
    token_usage: float | None
    accept_len: float | None
    accept_rate: float | None
    graph: bool | None
    throughput: float | None
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Exact figures of one column over every line, kept or not; `n` counts lines that carry the
    column."""

    n: int
    total: float
    total_squares: float
    low: float
    high: float

    @property
    def mean(self) -> float | None:
        """Arithmetic mean, None without values."""
        return self.total / self.n if self.n else None


@dataclass(frozen=True)
class DecodeTable:
    """Decode lines of one rank ("" when the log names none).

    `lines` (int64, 1-based), `times` (float64, seconds since 1970 as printed, NaN without) and the
    float64 columns of `columns` are parallel; NaN means the line does not carry the value. When a
    log has more lines than are kept, every `stride`-th line of this rank is in the columns; `count`
    and `aggregates` are over all of them.
    """

    rank: str
    count: int
    stride: int
    lines: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    columns: Mapping[Column, npt.NDArray[np.float64]]
    aggregates: Mapping[Column, Aggregate]
    extras: Mapping[int, Mapping[str, str]]

    def __len__(self) -> int:
        """How many lines are kept."""
        return len(self.lines)

    def __getitem__(self, column: Column) -> npt.NDArray[np.float64]:
        return self.columns[column]

    def __iter__(self) -> Iterator[DecodeLine]:
        raise NotImplementedError
