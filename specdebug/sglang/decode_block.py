"""Many decode lines at once with array arithmetic; line by line where a layout is unusual.

Lines of one server differ in their digits only. The first line of a layout is read by the slow
parser and becomes a plan: which run of digits is which column. Every further line with the same
text between its digits (gap lengths and a checksum tell) is then read without looking at it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
import numpy.typing as npt

from specdebug.sglang.decode_line import DecodeLine
from specdebug.sglang.decode_table import COLUMNS, Column, Floats, Ints, Rows
from specdebug.sglang.eights import Eights
from specdebug.sglang.log_line import (
    ANSI,
    DECODE,
    KEYS,
    clean,
    decode_fields,
    decode_lines,
    stamp_before,
)
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
class Unread:
    """A line that says it is a decode line and could not be read."""

    line: int
    text: str


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
        self, block: bytes, numbers: Ints, full: Collection[str] = ()
    ) -> tuple[list[tuple[str, Rows]], list[DecodeLine], list[Unread]]:
        """Read every line of `block`, each ended by a newline; `numbers` (ascending) are theirs.

        Returns one batch per rank, the lines that carry keys without a column (they are in a batch
        too; at most a thousand of each rank, none of the ranks in `full`), and the lines that could
        not be read.
        """
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
        batches: list[tuple[str, Rows]] = []
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
                    _one_by_one(block[starts[at] : ends[at]], int(numbers[at]), slow, unread)
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
                for rank, picked, batch in self._read(plan, eights, grid, fits, numbers[rows]):
                    batches.append((rank, batch))
                    if plan.has_extra and rank not in full:
                        for row in rows[picked][:_MAX_EXTRAS].tolist():
                            text_of = block[starts[row] : ends[row]]
                            _one_by_one(text_of, int(numbers[row]), odd, unread)
            elif tried == len(self._plans):
                # Numbers too long for the plan just made from this line.
                left[at] = False
                _one_by_one(block[starts[at] : ends[at]], int(numbers[at]), slow, unread)
        batches += _as_batches(slow)
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
    ) -> list[tuple[str, Ints | slice, Rows]]:
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
            return [("", slice(None), Rows(numbers, times, columns))]
        code = np.zeros(size, np.int64)
        parts = [value[run] for _, run in plan.rank]
        for part in parts:
            code = code * 4096 + part % 4096
        out: list[tuple[str, Ints | slice, Rows]] = []
        for each in sorted(set(code.tolist())):
            rows = np.flatnonzero(code == each)
            label = " ".join(
                f"{name}{int(part[rows[0]])}"
                for (name, _), part in zip(plan.rank, parts, strict=True)
            )
            of_rank = {column: values[rows] for column, values in columns.items()}
            out.append((label, rows, Rows(numbers[rows], times[rows], of_rank)))
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


def _one_by_one(text: bytes, number: int, lines: list[DecodeLine], unread: list[Unread]) -> None:
    for found in decode_lines(clean(text.decode("utf-8", "replace")), number):
        if found is None:
            unread.append(Unread(number, text[:300].decode("utf-8", "replace")))
        else:
            lines.append(found)


def _merged(batches: list[tuple[str, Rows]]) -> list[tuple[str, Rows]]:
    """One batch per rank, in file order."""
    by_rank: dict[str, list[Rows]] = {}
    for rank, rows in batches:
        by_rank.setdefault(rank, []).append(rows)
    out = []
    for rank, parts in by_rank.items():
        if len(parts) == 1:
            out.append((rank, parts[0]))
            continue
        lines = np.concatenate([part.lines for part in parts])
        order = np.argsort(lines, kind="stable")
        columns: dict[Column, Floats] = {
            column: np.concatenate([part.columns[column] for part in parts])[order]
            for column in COLUMNS
        }
        times = np.concatenate([part.times for part in parts])[order]
        out.append((rank, Rows(lines[order], times, columns)))
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


def _as_batches(lines: list[DecodeLine]) -> list[tuple[str, Rows]]:
    by_rank: dict[str, list[DecodeLine]] = {}
    for line in lines:
        by_rank.setdefault(line.rank, []).append(line)
    nan = float("nan")
    out = []
    for rank, rows in by_rank.items():
        columns: dict[Column, Floats] = {
            column: np.array(
                [
                    nan if getattr(row, column) is None else float(getattr(row, column))
                    for row in rows
                ]
            )
            for column in COLUMNS
        }
        times = [row.time.replace(tzinfo=UTC).timestamp() if row.time else nan for row in rows]
        numbers = np.array([row.line for row in rows], np.int64)
        out.append((rank, Rows(numbers, np.array(times), columns)))
    return out
