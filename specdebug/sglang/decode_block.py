"""Many decode lines at once with array arithmetic; line by line where a layout is unusual.

Lines of one server differ in their digits only. The first line of a layout is read by the slow
parser and becomes a plan: which run of digits is which column. Every further line with the same
text between its digits (gap lengths and a checksum tell) is then read without looking at it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
import numpy.typing as npt

from specdebug.sglang.decode_line import DecodeLine
from specdebug.sglang.decode_table import COLUMNS, Aggregate, Column, Rows
from specdebug.sglang.eights import Eights, Floats, Ints, as_array
from specdebug.sglang.log_line import ANSI, DECODE, KEYS, decode_fields, stamp_before
from specdebug.sglang.log_scan import Unread, by_rank, read_one
from specdebug.sglang.patterns import regex

_RUN = regex(rb"\d+")
_WIDEST = 15  # digits in one run that float64 holds exactly
_POWERS = 10.0 ** np.arange(_WIDEST + 1)
_MAX_PLANS = 64
_MAX_LINE = 8_000
_MAX_EXTRAS = 1_000
_PAD = b"\0" * 16  # so that eight bytes may begin at the last byte of a block


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the columns of one layout are, counted in runs of digits."""

    runs: int
    gaps: Ints
    checksum: int
    columns: dict[Column, tuple[int, int | None]]
    graph: float
    time: tuple[int, ...]
    rank: tuple[tuple[str, int], ...]
    has_extra: bool


@dataclass(slots=True)
class _Batch:
    """Lines of one rank; arrays are parallel."""

    lines: Ints
    times: Floats
    columns: dict[Column, Floats]

    @classmethod
    def of(cls, rows: Rows) -> _Batch:
        """What was read one by one."""
        columns = {column: np.frombuffer(values) for column, values in rows.columns.items()}
        return cls(np.frombuffer(rows.lines, np.int64), np.frombuffer(rows.times), columns)

    def rows(self) -> Rows:
        """The batch as a table takes it."""
        return Rows(
            as_array("q", self.lines),
            as_array("d", self.times),
            {column: as_array("d", values) for column, values in self.columns.items()},
            {
                column: _aggregate(real)
                for column, values in self.columns.items()
                if len(real := values[~np.isnan(values)])
            },
        )


def _aggregate(real: Floats) -> Aggregate:
    with np.errstate(over="ignore"):  # a damaged line prints any number
        total, squares = float(real.sum()), float(np.square(real).sum())
    return Aggregate(len(real), total, squares, float(real.min()), float(real.max()))


@dataclass(frozen=True, slots=True)
class _Grid:
    """The lines with one number of digit runs: where the runs begin, their widths, and the lengths
    of the gaps around them; a row for each run, a column for each line, for lines are many."""

    rows: Ints
    begin: Ints
    width: Ints
    gaps: Ints
    readable: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        rows: Ints,
        first: Ints,
        starts: Ints,
        ends: Ints,
        run_from: Ints,
        run_to: Ints,
        runs: int,
    ) -> _Grid:
        """Lay out the runs of `rows`, whose first runs are `first`, in a grid of `runs` rows."""
        if len(rows) * runs == len(run_from):
            begin = np.ascontiguousarray(run_from.reshape(-1, runs).T)
            end = np.ascontiguousarray(run_to.reshape(-1, runs).T)
        else:
            index = np.arange(runs)[:, None] + first
            begin, end = run_from[index], run_to[index]
        gaps = np.empty((runs + 1, len(rows)), np.int64)
        gaps[1:-1] = begin[1:] - end[:-1]
        gaps[0] = begin[0] - starts
        gaps[-1] = ends - end[-1]
        width = end - begin
        return cls(rows, begin, width, gaps, width.max(axis=0) <= _WIDEST)


class BlockParser:
    """Reads blocks of decode lines; remembers the layouts it has met."""

    def __init__(self) -> None:
        self._plans: list[Plan] = []
        self._days: dict[int, float] = {}

    def parse(
        self, block: bytes, numbers: array[int], full: Collection[str] = ()
    ) -> tuple[list[tuple[str, Rows]], list[DecodeLine], list[Unread]]:
        """See `log_scan.DecodeParser`; of each rank at most a thousand lines are returned for
        their other keys, none of the ranks in `full`."""
        arr = np.frombuffer(block, np.uint8)
        eights = Eights(block + _PAD)
        ends = np.flatnonzero(arr == 10)
        starts = np.concatenate([[0], ends[:-1] + 1])
        digit = (arr - 48) < 10
        edges = np.flatnonzero(digit[1:] != digit[:-1]) + 1
        if digit[0]:
            edges = np.concatenate([[0], edges])
        run_from, run_to = edges[0::2], edges[1::2]
        first = np.searchsorted(run_from, starts)
        count = np.diff(first, append=len(run_from))
        ink = np.add.reduceat(arr * ~digit, starts, dtype=np.int32)
        grids: dict[int, _Grid] = {}
        left = np.ones(len(starts), bool)
        number_of = np.frombuffer(numbers, np.int64)
        batches: list[tuple[str, _Batch]] = []
        slow: list[DecodeLine] = []
        odd: list[DecodeLine] = []
        unread: list[Unread] = []
        tried = 0
        while left.any():
            at = int(np.argmax(left))
            if tried == len(self._plans):
                plan = self._learn(block[starts[at] : ends[at]])
                if plan is None:
                    left[at] = False
                    read_one(block[starts[at] : ends[at]], numbers[at], slow, unread)
                    continue
                if len(self._plans) >= _MAX_PLANS:
                    self._plans.pop(0)
                    tried -= 1
                self._plans.append(plan)
            plan = self._plans[tried]
            tried += 1
            if plan.runs not in grids:
                rows = np.flatnonzero(count == plan.runs)
                grids[plan.runs] = _Grid.of(
                    rows, first[rows], starts[rows], ends[rows], run_from, run_to, plan.runs
                )
            grid = grids[plan.runs]
            fits = left[grid.rows] & (ink[grid.rows] == plan.checksum)
            if fits.any():
                fits &= grid.readable & (grid.gaps == plan.gaps[:, None]).all(axis=0)
            if fits.any():
                rows = grid.rows[fits]
                left[rows] = False
                for rank, picked, batch in self._read(plan, eights, grid, fits, number_of[rows]):
                    batches.append((rank, batch))
                    if plan.has_extra and rank not in full:
                        for row in rows[picked][:_MAX_EXTRAS].tolist():
                            text_of = block[starts[row] : ends[row]]
                            read_one(text_of, numbers[row], odd, unread)
            elif tried == len(self._plans):
                # Numbers too long for the plan just made from this line.
                left[at] = False
                read_one(block[starts[at] : ends[at]], numbers[at], slow, unread)
        batches += [(rank, _Batch.of(Rows.of(lines))) for rank, lines in by_rank(slow).items()]
        return _merged(batches), odd + [line for line in slow if line.extra], unread

    def _learn(self, line: bytes) -> Plan | None:
        """The layout of `line`, None when only the slow parser can read it."""
        if len(line) > _MAX_LINE or line.count(DECODE.encode()) != 1:
            return None
        text = line.decode("latin-1")
        if ANSI.search(text):
            return None
        spans = [(match.start(), match.end()) for match in _RUN.finditer(line)]
        starts = {start: at for at, (start, _) in enumerate(spans)}
        at = text.find(DECODE)
        columns: dict[Column, tuple[int, int | None]] = {}
        graph = float("nan")
        has_extra = False
        for found in decode_fields(text, at):
            name = KEYS.get(found.key)
            if name is not None:
                if name in columns:
                    return None
                runs = _runs(found.value, found.start, starts)
                if runs is None:
                    return None
                columns[_column(name)] = runs
            elif found.key.endswith(" graph"):
                if found.value not in ("True", "False"):
                    return None
                graph = float(found.value == "True")
                has_extra |= found.key != "cuda graph"
            else:
                has_extra = True
        if "throughput" not in columns or "running" not in columns:
            return None
        time: tuple[int, ...] = ()
        rank: list[tuple[str, int]] = []
        if stamp := stamp_before(text, at):
            groups = [n for n in range(1, 8) if stamp[n] is not None]
            time = tuple(starts[stamp.start(n)] for n in groups)
            if stamp[8]:
                rank += [
                    (match[1], starts[stamp.start(8) + match.start(2)])
                    for match in re.finditer(r"([A-Za-z_]+)(\d+)", stamp[8])
                ]
        bounds = [0, *(end for _, end in spans)]
        gaps = [
            begin - end
            for begin, end in zip([s for s, _ in spans] + [len(line)], bounds, strict=True)
        ]
        return Plan(
            runs=len(spans),
            gaps=np.array(gaps, np.int64),
            checksum=sum(byte for byte in line if not 48 <= byte <= 57) + ord("\n"),
            columns=columns,
            graph=graph,
            time=time,
            rank=tuple(rank),
            has_extra=has_extra,
        )

    def _read(
        self, plan: Plan, eights: Eights, grid: _Grid, fits: npt.NDArray[np.bool_], numbers: Ints
    ) -> list[tuple[str, Ints | slice, _Batch]]:
        """Rank, which of the lines it printed, and their values, for lines that fit the plan."""
        size = len(numbers)
        wanted = [run for pair in plan.columns.values() for run in pair if run is not None]
        wanted += [*plan.time, *(run for _, run in plan.rank)]
        begin, width = grid.begin[wanted], grid.width[wanted]
        if size < len(fits):
            picks = np.flatnonzero(fits)
            begin, width = begin.take(picks, axis=1), width.take(picks, axis=1)
        value: dict[int, Ints] = dict(zip(wanted, eights.numbers(begin, width), strict=True))
        widths: dict[int, Ints] = dict(zip(wanted, width, strict=True))

        def real(run: int, fraction: int | None) -> Floats:
            if fraction is None:
                return value[run].astype(np.float64)
            # One division of the whole number, so that 1.60 is the float64 nearest to 1.60.
            scale = _POWERS[widths[fraction]]
            joined: Floats = (value[run] * scale + value[fraction]) / scale
            return joined

        columns: dict[Column, Floats] = {}
        for column in COLUMNS:
            if column == "graph":
                columns[column] = np.full(size, plan.graph)
            elif column in plan.columns:
                columns[column] = real(*plan.columns[column])
            else:
                columns[column] = np.full(size, np.nan)
        times = (
            self._times([value[run] for run in plan.time], widths[plan.time[-1]])
            if plan.time
            else (np.full(size, np.nan))
        )
        if not plan.rank:
            return [("", slice(None), _Batch(numbers, times, columns))]
        code = np.zeros(size, np.int64)
        parts = [value[run] for _, run in plan.rank]
        for part in parts:
            code = code * 4096 + part % 4096
        out: list[tuple[str, Ints | slice, _Batch]] = []
        for each in sorted(set(code.tolist())):
            rows = np.flatnonzero(code == each)
            label = " ".join(
                f"{name}{int(part[rows[0]])}"
                for (name, _), part in zip(plan.rank, parts, strict=True)
            )
            of_rank = {column: values[rows] for column, values in columns.items()}
            out.append((label, rows, _Batch(numbers[rows], times[rows], of_rank)))
        return out

    def _times(self, parts: list[Ints], width: Ints) -> Floats:
        """Seconds since 1970 from year, month, day, hour, minute, second and perhaps a fraction;
        width: digits of the last of them."""
        day = parts[0] * 10_000 + parts[1] * 100 + parts[2]
        base = np.empty(len(day))
        for value in set(day.tolist()):
            if value not in self._days:
                try:
                    at = datetime.combine(
                        date(value // 10_000, value // 100 % 100, value % 100),
                        datetime.min.time(),
                        UTC,
                    )
                    self._days[value] = at.timestamp()
                except ValueError:
                    self._days[value] = float("nan")
            base[day == value] = self._days[value]
        seconds = base + parts[3] * 3600.0 + parts[4] * 60.0 + parts[5]
        if len(parts) > 6:
            seconds = seconds + parts[6] / _POWERS[width]
        stamps: Floats = seconds
        return stamps


def _merged(batches: list[tuple[str, _Batch]]) -> list[tuple[str, Rows]]:
    """One batch per rank, in file order."""
    parts_of: dict[str, list[_Batch]] = {}
    for rank, batch in batches:
        parts_of.setdefault(rank, []).append(batch)
    out = []
    for rank, parts in parts_of.items():
        whole = parts[0]
        if len(parts) > 1:
            lines = np.concatenate([part.lines for part in parts])
            order = np.argsort(lines, kind="stable")
            columns: dict[Column, Floats] = {
                column: np.concatenate([part.columns[column] for part in parts])[order]
                for column in COLUMNS
            }
            times = np.concatenate([part.times for part in parts])[order]
            whole = _Batch(lines[order], times, columns)
        out.append((rank, whole.rows()))
    return out


def _column(name: str) -> Column:
    return next(column for column in COLUMNS if column == name)


def _runs(value: str, start: int, starts: dict[int, int]) -> tuple[int, int | None] | None:
    """The runs of digits that make up a plain number at `start`, None if it is no such."""
    if value.isascii() and value.isdigit():
        return starts[start], None
    whole, dot, fraction = value.partition(".")
    if dot and whole.isdigit() and fraction.isdigit() and value.isascii():
        return starts[start], starts[start + len(whole) + 1]
    return None
