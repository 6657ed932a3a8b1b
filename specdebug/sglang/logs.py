"""Reads an SGLang server log, whole or growing, into boots with arguments, events, decode lines."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO

from specdebug.sglang.decode_line import DecodeLine
from specdebug.sglang.decode_table import Aggregate, Column, DecodeTable
from specdebug.sglang.log_boot import KEPT_TEXT, BootBuilder, argument_stage
from specdebug.sglang.log_events import (
    GATES,
    MODEL_LOAD,
    NEEDLES,
    EventKind,
    Phase,
    event_of,
    phase_of,
)
from specdebug.sglang.log_input import Decoder, pieces
from specdebug.sglang.log_line import DECODE, clean, decode_line, take_apart
from specdebug.sglang.log_scan import DecodeParser, LineParser, LineScanner, Scanner, Taken
from specdebug.sglang.log_types import (
    Boot,
    Event,
    LineClass,
    LineKind,
    ModelLoad,
    ServerLog,
    Warned,
)
from specdebug.sglang.pasted import unescaped
from specdebug.sglang.request_log import RECORD, own, own_text
from specdebug.sglang.rules import Rule
from specdebug.sglang.server_args import read_server_args

__all__ = [
    "Aggregate",
    "Boot",
    "Column",
    "DecodeLine",
    "DecodeTable",
    "Event",
    "EventKind",
    "LineClass",
    "LineKind",
    "LogReader",
    "ModelLoad",
    "Phase",
    "ServerLog",
    "Warned",
    "classify_line",
    "read_log",
]

_FEW = 1 << 17  # bytes read line by line; of more, the rest is read in blocks
_LONGEST = 1 << 20  # bytes of one line; what is longer is read in pieces
_BLOCK = 1 << 18  # bytes of decode lines read at once
_KEPT_ROWS = 400_000  # decode lines kept over all ranks and boots; beyond, tables are thinned
_KEPT_PROBLEMS = 50
_KEPT_EXTRAS = 1_000
_LOOKED_TEXT = 1 << 16
_KEPT_BOOTS = 1_000
_MANY_REPEATS = 500  # in one piece; the next is then taken to be as full of them
# What begins a start, or may: repeats behind it are events of that start.
_NO_REPEATS = (b"erver_args=", b"ServerArgs(", b"Load weight", b"torch distributed", b"peculative")
_STARTS = (b"erver_args=", b"ServerArgs(")  # the dump of arguments that a start prints
# Lines that may be events, each looked at: a real log has some thousands of different ones. After
# so many (fewer than stand in the second column) only lines with one of these signs are looked at.
_WORN: tuple[tuple[int, tuple[bytes, ...], str], ...] = (
    (0, NEEDLES, ""),
    (50_000, (*GATES, *_STARTS), "starts, crashes, memory and watchdog lines"),
    (250_000, _STARTS, "starts"),
)


def classify_line(text: str, line: int = 1) -> LineClass:
    """Read one line by itself, as a live tail needs it; never raises."""
    whole = clean(text)[:_LONGEST]
    text = own_text(whole)
    parts = take_apart(text)
    at = text.find(DECODE)
    if at >= 0 and (found := decode_line(text, at, line)) is not None:
        return LineClass("decode", None, found.rank, found.time, text[at:], found)
    kind: LineKind = "other"
    event = event_of(parts.message)
    if "Prefill batch" in text:
        kind = "prefill"
    elif event is not None:
        kind = event[0]
    elif MODEL_LOAD.search(parts.message[:KEPT_TEXT]):
        kind = "model-load"
    elif "server_args=" in text:
        kind = "server-args"
    elif " HTTP/1." in text:
        kind = "http"
    phase = None if kind in ("prefill", "http") else phase_of(text)
    return LineClass(kind, phase, parts.rank, parts.time, take_apart(whole).message)


class LogReader:
    """Reads a log in pieces as they arrive; `phase` follows the start, `result()` may be asked
    anytime.

    Time is linear in the bytes fed. Decode lines are kept up to a fixed number; beyond, each rank
    keeps every second, fourth... line while its aggregates stay exact.
    """

    def __init__(self, source: str = "server.log") -> None:
        self.source = source
        self._decoder = Decoder()
        self._carry = b""
        self._lines = 0
        self._bytes = 0
        self._known = 0
        self._unread = 0
        self._cut = False
        self._looked = 0
        self._worn = 0
        self._repeating = False
        self._problems: list[tuple[int, str]] = []
        self._scanner: Scanner = LineScanner()
        self._parser: DecodeParser = LineParser()
        self._boots = [BootBuilder(1)]
        self._waiting: list[bytes] = []
        self._waiting_numbers = array("q")
        self._waiting_bytes = 0
        self._pending: list[tuple[Warned, tuple[Rule, ...]]] = []
        self._closed = False

    @property
    def phase(self) -> Phase:
        """The phase of the newest boot."""
        return self._boots[-1].phase

    @property
    def lines(self) -> int:
        """How many whole lines have been read."""
        return self._lines

    def feed(self, data: bytes | str) -> None:
        """Take the next piece, split anywhere; an unfinished last line waits for the rest."""
        if self._closed:
            raise ValueError("this reader is closed; make a new one for another log")
        raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
        self._bytes += len(raw)
        if isinstance(data, bytes):
            raw = self._decoder.decode(raw)
        # Pieces of bounded size keep the arrays behind them small.
        if len(raw) <= 2 * _LONGEST:
            self._feed(raw)
            return
        for at in range(0, len(raw), _LONGEST):
            self._feed(raw[at : at + _LONGEST])

    def _feed(self, raw: bytes) -> None:
        end = raw.rfind(b"\n") + 1
        if end:
            # A view spares a second copy; a piece that ends with its line is not copied at all.
            view = memoryview(raw)[:end]
            whole = b"".join((self._carry, view)) if self._carry else raw[:end]
            self._carry = raw[end:]
            self._take(whole)
        else:
            self._carry += raw
            if len(self._carry) > _LONGEST:
                self._take_part()
        if self._carry and self._boots[-1].phase.name != "ready":
            # A progress bar draws over its own line and ends it only when it is done.
            phase = phase_of(own(self._carry[-4_000:])[-400:].decode("utf-8", "replace"))
            self._boots[-1].phase = phase or self._boots[-1].phase

    def _take_part(self) -> None:
        """Read a part of a line that does not end; carriage returns count as ends."""
        if not self._cut:
            self._problem(self._lines + 1, "a line of more than 1 MiB was read in pieces")
            self._cut = True
        cut = self._carry.rfind(b"\r") + 1 or len(self._carry)
        part, self._carry = self._carry[:cut], self._carry[cut:]
        if len(own(part)) < len(part):
            self._carry = RECORD + self._carry  # what goes on is still quoted
        before = self._lines
        self._take(part.replace(b"\r", b"\n") + b"\n", same_line=True)
        self._lines = before

    def _take(self, data: bytes, same_line: bool = False) -> None:
        if len(self._boots) > _KEPT_BOOTS:
            self._lines += data.count(b"\n")
            return
        if self._bytes > _FEW and isinstance(self._scanner, LineScanner):
            # numpy takes longer to import than a small log to read.
            from specdebug.sglang.block_scan import BlockScanner
            from specdebug.sglang.decode_block import BlockParser

            self._scanner, self._parser = BlockScanner(), BlockParser()
        boot = self._boots[-1]
        kept, repeats = None, 0
        if self._repeating and not self._pending and not any(sign in data for sign in _NO_REPEATS):
            data, kept, total = boot.without_repeats(data)
            repeats = total - len(kept)
            self._known += repeats
        signs = _WORN[self._worn][1]
        scan = self._scanner.scan(data, starting=not boot.served, signs=signs)
        size = scan.lines + repeats
        first = self._lines + 1
        offsets = [0] * scan.lines if same_line else kept
        self._known += scan.decodes + scan.prefills + scan.access
        done = prefilled = 0
        for at, start, end, decodes, prefills in scan.marked():
            if decodes > done:
                self._put_aside(scan.take(done, decodes, first, offsets))
                done = decodes
            line = own(data[start:end])
            if not self._pending and self._boots[-1].said_before(line):
                self._known += 1
                repeats += 1
                continue
            if self._worn and not any(sign in line for sign in _WORN[self._worn][1]):
                continue
            self._look(line, first + (offsets[at] if offsets else at))
            if self._boots[-1] is not boot:
                boot.prefill += prefills - prefilled
                boot, prefilled = self._boots[-1], prefills
            if len(self._boots) > _KEPT_BOOTS:
                self._lines += size
                return
        if done < scan.decodes:
            self._put_aside(scan.take(done, scan.decodes, first, offsets))
        boot.prefill += scan.prefills - prefilled
        self._repeating = repeats > _MANY_REPEATS
        self._lines += size
        boot.end_line = max(self._lines, 1)

    def _put_aside(self, lines: Taken) -> None:
        """Keep decode lines waiting; they are read some thousands at a time."""
        self._boots[-1].served = True
        self._waiting += lines.texts
        self._waiting_numbers += lines.numbers
        self._waiting_bytes += lines.size
        if self._waiting_bytes > _BLOCK:
            self._flush()

    def _flush(self) -> None:
        """Read the decode lines put aside; all of them belong to the newest boot."""
        if not self._waiting:
            return
        boot = self._boots[-1]
        block, numbers = b"".join(self._waiting), self._waiting_numbers
        self._waiting, self._waiting_numbers, self._waiting_bytes = [], array("q"), 0
        boot.decode_form(block[: block.index(b"\n")].decode("utf-8", "replace").rstrip("\r"))
        full = {rank for rank, kept in boot.tables.items() if len(kept.extras) >= _KEPT_EXTRAS}
        batches, odd, unread = self._parser.parse(block, numbers, full)
        for rank, batch in batches:
            boot.table(rank).add(batch)
        for line in odd:
            extras = boot.table(line.rank).extras
            if len(extras) < _KEPT_EXTRAS:
                extras[line.line] = line.extra
        self._unread += len(unread)
        for failure in unread:
            self._problem(
                failure.line, f"looks like a decode line and cannot be read: {failure.text[:160]!r}"
            )
        tables = [table for b in self._boots for table in b.tables.values()]
        while sum(table.kept for table in tables) > _KEPT_ROWS:
            max(tables, key=lambda table: table.kept).halve()

    def _look(self, raw: bytes, line: int) -> None:
        """Read a line that may matter: arguments, a warning of the argument stage, an event."""
        text = unescaped(clean(raw.decode("utf-8", "replace")))
        is_dump = "erver_args=" in text or "ServerArgs(" in text
        self._looked += 1
        following = _WORN[self._worn + 1 :]
        if following and self._looked > following[0][0]:
            self._worn += 1
            many, _, still = following[0]
            said = f"after {many:,} lines that may matter only {still} are read"
            self._problem(line, said, last=True)
        parts = take_apart(text[:_LOOKED_TEXT])
        boot = self._boots[-1]
        if is_dump:
            args = read_server_args(text)
            if args is not None:
                self._boot(line, args).arguments(args, line, text)
                self._known += 1
                return
        stage, rules = argument_stage(parts, boot.server_args is not None, boot.served)
        if stage:
            warned = Warned(line, text[:KEPT_TEXT], rules[0].id if rules else None)
            if boot.served or boot.failed:
                self._pending.append((warned, rules))
            else:
                boot.warn(warned, rules)
            if event_of(parts.message) is not None:
                boot.announce(parts, text, line)
            self._known += 1
            return
        message = parts.message
        restarted = (
            boot.served
            and boot.started
            and ("Init torch distributed begin" in message or "Load weight begin" in message)
        )
        if restarted or (self._pending and "Traceback (most recent call last)" in message):
            boot = self._boot(line, None)
        phase = phase_of(message)
        if phase is not None and (boot.phase.name != "ready" or phase.name == "failed"):
            boot.phase = phase
        known = boot.announce(parts, text, line)
        self._known += known
        if known and phase is None:
            boot.remember(raw, message)

    def _boot(self, line: int, args: dict[str, object] | None) -> BootBuilder:
        """The boot that a dump or restart on `line` belongs to; a new one if this one has begun."""
        boot = self._boots[-1]
        begun = boot.server_args is not None or boot.served or boot.started or boot.failed
        if args is not None and boot.server_args is not None and not boot.served:
            # Several nodes of one server write into one file: only their rank differs.
            differing = {k for k in args if args[k] != boot.server_args.get(k)}
            if differing and differing <= {"node_rank", "random_seed", "port", "nccl_port"}:
                return boot
        if not begun:
            boot.phase = Phase("starting")
            return boot
        self._flush()
        start = min([line, *(warned.line for warned, _ in self._pending)])
        boot.end_line = start - 1
        new = BootBuilder(start)
        if len(self._boots) == _KEPT_BOOTS:
            said = (
                f"after {_KEPT_BOOTS:,} starts nothing more is read; attach the newest part alone"
            )
            self._problem(line, said, last=True)
        for warned, rules in self._pending:
            new.warn(warned, rules)
        self._pending = []
        self._boots.append(new)
        return new

    def _problem(self, line: int, message: str, last: bool = False) -> None:
        """Keep what could not be read; `last` is kept however many there are."""
        if last or len(self._problems) < _KEPT_PROBLEMS:
            self._problems.append((line, message))

    def close(self) -> ServerLog:
        """Take the unfinished last line too and return the whole; the reader takes no more then."""
        if not self._closed:
            rest = self._carry + self._decoder.close()
            self._carry = b""
            if rest:
                self._take(rest + b"\n")
        self._closed = True
        return self.result()

    def result(self) -> ServerLog:
        """What has been read so far, the unfinished last line left out."""
        self._flush()
        boots = [boot.build() for boot in self._boots if not boot.empty]
        if self._pending and boots:
            # Warnings with no start behind them (yet) are shown with what was already there.
            late = tuple(warned for warned, _ in self._pending)
            boots[-1] = replace(boots[-1], argument_warnings=boots[-1].argument_warnings + late)
        return ServerLog(
            source=self.source,
            boots=tuple(boots),
            is_excerpt=not any(
                boot.started and (boot.server_args or boot.loads) for boot in self._boots
            ),
            total_lines=self._lines,
            unknown_lines=max(0, self._lines - self._known),
            unread_decode_lines=self._unread,
            total_bytes=self._bytes,
            problems=tuple(self._problems),
        )


def read_log(
    log: str | os.PathLike[str] | IO[bytes] | IO[str] | Iterable[str | bytes],
    source: str | None = None,
) -> ServerLog:
    """Read a log from a path (plain, gzip, xz, bzip2, zstd where available), a file, or lines.

    A `str` is a path; wrap text in `io.StringIO`. UTF-8 and UTF-16 are told apart; time is linear
    in size and memory bounded. Raises OSError when the file cannot be opened and ValueError when
    compressed data is broken before anything could be read.
    """
    if source is None:
        source = Path(log).name if isinstance(log, str | os.PathLike) else "server.log"
    reader = LogReader(source)
    for piece, problem in pieces(log):
        if problem:
            reader._problem(reader.lines + 1, problem)
        reader.feed(piece)
    return reader.close()
