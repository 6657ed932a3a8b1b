"""Decode lines of one rank in columns: a bounded sample of rows, exact aggregates over all.

Columns are arrays of the standard library: a small log is read without numpy, which takes longer to
import than such a log to read, and `numpy.asarray` of a column shares its memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from specdebug.sglang.decode_line import DecodeLine

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
_NAN = float("nan")


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

    def joined(self, other: Aggregate) -> Aggregate:
        """The figures over the lines of both."""
        return Aggregate(
            self.n + other.n,
            self.total + other.total,
            self.total_squares + other.total_squares,
            min(self.low, other.low),
            max(self.high, other.high),
        )


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
    lines: array[int]
    times: array[float]
    columns: Mapping[Column, array[float]]
    aggregates: Mapping[Column, Aggregate]
    extras: Mapping[int, Mapping[str, str]]

    def __len__(self) -> int:
        """How many lines are kept."""
        return len(self.lines)

    def __getitem__(self, column: Column) -> array[float]:
        return self.columns[column]

    def __iter__(self) -> Iterator[DecodeLine]:
        for at in range(len(self.lines)):
            yield self.row(at)

    def row(self, at: int) -> DecodeLine:
        """The kept line number `at` as an object."""

        def real(column: Column) -> float | None:
            value = self.columns[column][at]
            return None if value != value else value

        def whole(column: Column) -> int | None:
            value = real(column)
            return None if value is None else int(value)

        line = self.lines[at]
        stamp, graph = self.times[at], real("graph")
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


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch of lines of one rank on its way into a table: parallel arrays, and the figures of
    each column that has values."""

    lines: array[int]
    times: array[float]
    columns: Mapping[Column, array[float]]
    aggregates: Mapping[Column, Aggregate]

    @classmethod
    def of(cls, lines: Sequence[DecodeLine]) -> Rows:
        """The rows of lines that were read one by one."""
        columns = {name: array("d", [_real(line, name) for line in lines]) for name in COLUMNS}
        aggregates = {
            name: Aggregate(len(real), sum(real), sum(v * v for v in real), min(real), max(real))
            for name, values in columns.items()
            if (real := [value for value in values if value == value])
        }
        times = [line.time.replace(tzinfo=UTC).timestamp() if line.time else _NAN for line in lines]
        numbers = array("q", [line.line for line in lines])
        return cls(numbers, array("d", times), columns, aggregates)


def _real(line: DecodeLine, column: Column) -> float:
    value: float | None = getattr(line, column)
    return _NAN if value is None else float(value)


class TableBuilder:
    """Collects rows of one rank; `halve` drops every second kept row, aggregates stay exact."""

    def __init__(self, rank: str) -> None:
        self.rank = rank
        self.count = 0
        self.stride = 1
        self.extras: dict[int, Mapping[str, str]] = {}
        self._lines = array("q")
        self._times = array("d")
        self._columns = {column: array("d") for column in COLUMNS}
        self._aggregates: dict[Column, Aggregate] = {}

    @property
    def kept(self) -> int:
        """How many rows are kept."""
        return len(self._lines)

    def add(self, rows: Rows) -> None:
        """Take a batch in file order."""
        for column, more in rows.aggregates.items():
            before = self._aggregates.get(column)
            self._aggregates[column] = before.joined(more) if before else more
        pick = slice(-self.count % self.stride, None, self.stride)
        self.count += len(rows.lines)
        self._lines += rows.lines[pick]
        self._times += rows.times[pick]
        for column, values in self._columns.items():
            values += rows.columns[column][pick]

    def halve(self) -> None:
        """Keep every second kept row."""
        self._lines = self._lines[::2]
        self._times = self._times[::2]
        self._columns = {column: values[::2] for column, values in self._columns.items()}
        self.stride *= 2

    def table(self) -> DecodeTable:
        """What has been collected, as an immutable table."""
        return DecodeTable(
            rank=self.rank,
            count=self.count,
            stride=self.stride,
            lines=self._lines[:],
            times=self._times[:],
            columns={column: values[:] for column, values in self._columns.items()},
            aggregates={
                column: self._aggregates[column] for column in COLUMNS if column in self._aggregates
            },
            extras=dict(self.extras),
        )
