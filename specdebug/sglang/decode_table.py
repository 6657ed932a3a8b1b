"""Decode lines of one rank in columns: a bounded sample of rows, exact aggregates over all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import numpy.typing as npt

from specdebug.sglang.decode_line import DecodeLine

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
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
class Aggregate:
    """Exact figures of one column over every line, kept or not; `n` counts lines that carry it."""

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
    float64 arrays of `columns` are parallel; NaN means the line does not carry the value, `graph`
    is 1 or 0. When a log has more lines than are kept, every `stride`-th line of this rank is in
    the arrays; `count` and `aggregates` are over all of them. `extras` maps a line to its other
    keys, for the first thousand lines that have some.
    """

    rank: str
    count: int
    stride: int
    lines: Ints
    times: Floats
    columns: Mapping[Column, Floats]
    aggregates: Mapping[Column, Aggregate]
    extras: Mapping[int, Mapping[str, str]]

    def __len__(self) -> int:
        """How many lines are kept."""
        return len(self.lines)

    def __getitem__(self, column: Column) -> Floats:
        return self.columns[column]

    def __iter__(self) -> Iterator[DecodeLine]:
        for at in range(len(self.lines)):
            yield self.row(at)

    def row(self, at: int) -> DecodeLine:
        """The kept line number `at` as an object."""

        def real(column: Column) -> float | None:
            value = float(self.columns[column][at])
            return None if value != value else value

        def whole(column: Column) -> int | None:
            value = real(column)
            return None if value is None else int(value)

        line = int(self.lines[at])
        stamp, graph = float(self.times[at]), real("graph")
        return DecodeLine(
            line=line,
            time=None
            if stamp != stamp
            else datetime.fromtimestamp(stamp, UTC).replace(tzinfo=None),
            rank=self.rank,
            running=whole("running"),
            queue=whole("queue"),
            tokens=whole("tokens"),
            token_usage=real("token_usage"),
            accept_len=real("accept_len"),
            accept_rate=real("accept_rate"),
            graph=None if graph is None else bool(graph),
            throughput=real("throughput"),
            extra=self.extras.get(line, {}),
        )


@dataclass(slots=True)
class Rows:
    """A batch of lines of one rank on its way into a table; arrays are parallel."""

    lines: Ints
    times: Floats
    columns: dict[Column, Floats]


class TableBuilder:
    """Collects rows of one rank; `halve` drops every second kept row, aggregates stay exact."""

    def __init__(self, rank: str) -> None:
        self.rank = rank
        self.count = 0
        self.stride = 1
        self.kept = 0
        self.extras: dict[int, Mapping[str, str]] = {}
        self._parts: list[Rows] = []
        self._sums = {column: [0.0, 0.0, 0.0, np.inf, -np.inf] for column in COLUMNS}

    def add(self, rows: Rows) -> None:
        """Take a batch in file order."""
        size = len(rows.lines)
        for column in COLUMNS:
            values = rows.columns[column]
            real = values[~np.isnan(values)]
            if len(real):
                sums = self._sums[column]
                sums[0] += len(real)
                sums[1] += float(real.sum())
                sums[2] += float(np.square(real).sum())
                sums[3] = min(sums[3], float(real.min()))
                sums[4] = max(sums[4], float(real.max()))
        pick = slice(-self.count % self.stride, None, self.stride)
        self.count += size
        kept = Rows(
            rows.lines[pick].copy(),
            rows.times[pick].copy(),
            {column: rows.columns[column][pick].copy() for column in COLUMNS},
        )
        if len(kept.lines):
            self._parts.append(kept)
            self.kept += len(kept.lines)
        if len(self._parts) > 256:
            self._parts = [self._joined()]

    def halve(self) -> None:
        """Keep every second kept row."""
        whole = self._joined()
        self._parts = [
            Rows(
                whole.lines[::2].copy(),
                whole.times[::2].copy(),
                {column: values[::2].copy() for column, values in whole.columns.items()},
            )
        ]
        self.stride *= 2
        self.kept = len(self._parts[0].lines)

    def _joined(self) -> Rows:
        if not self._parts:
            return Rows(
                np.empty(0, np.int64),
                np.empty(0),
                {column: np.empty(0) for column in COLUMNS},
            )
        return Rows(
            np.concatenate([part.lines for part in self._parts]),
            np.concatenate([part.times for part in self._parts]),
            {
                column: np.concatenate([part.columns[column] for part in self._parts])
                for column in COLUMNS
            },
        )

    def table(self) -> DecodeTable:
        """What has been collected, as an immutable table."""
        whole = self._joined()
        self._parts = [whole]
        return DecodeTable(
            rank=self.rank,
            count=self.count,
            stride=self.stride,
            lines=whole.lines,
            times=whole.times,
            columns=whole.columns,
            aggregates={
                column: Aggregate(int(sums[0]), sums[1], sums[2], sums[3], sums[4])
                for column, sums in self._sums.items()
                if sums[0]
            },
            extras=dict(self.extras),
        )
