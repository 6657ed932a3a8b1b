"""Reads an SGLang server log, whole or growing, into boots with their arguments, events and decode
lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Literal

from specdebug.sglang.decode_table import Aggregate, Column, DecodeLine, DecodeTable
from specdebug.sglang.releases import Release

__all__ = [
    "Aggregate",
    "Boot",
    "Column",
    "DecodeLine",
    "DecodeTable",
    "Event",
    "EventKind",
    "LineClass",
    "LogReader",
    "ModelLoad",
    "Phase",
    "ServerLog",
    "Warned",
    "classify_line",
    "read_log",
]

EventKind = Literal[
    "ready",
    "startup-limits",
    "capture-begin",
    "capture-end",
    "capture-draft-begin",
    "capture-draft-end",
    "capture-failed",
    "graph-disabled",
    "simulated-acceptance",
    "exception",
    "error-message",
    "out-of-memory",
    "child-died",
    "watchdog",
    "retracted",
    "port-in-use",
    "missing-model",
    "health-check-failed",
    "warmup-failed",
    "aux-capture",
]
PhaseName = Literal[
    "starting", "loading weights", "capturing graphs", "warming up", "ready", "failed"
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something the engine said once; `text` is verbatim (at most 2,000 characters), `line`
    1-based.

    `fields` holds what was read out of it (for example max_running_requests, exit_code, captured,
    expected)."""

    kind: EventKind
    line: int
    text: str
    rank: str
    time: datetime | None
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Warned:
    """A line of the argument stage: bare, before logging is set up. `rule` names the rule of
    overrides that prints it, None when no rule is known to."""

    line: int
    text: str
    rule: str | None


@dataclass(frozen=True, slots=True)
class ModelLoad:
    """One `Load weight end`: the class that really loaded (`type=`), on which rank, in how many
    seconds."""

    line: int
    model_type: str
    rank: str
    seconds: float | None
    text: str


@dataclass(frozen=True)
class Boot:
    """One start of the server inside a log.

    `server_args` are effective values (None if the dump is not in the file), printed on
    `server_args_line`. `release` is set when the log names it; `release_between` bounds it by what
    only some releases print (either end None). `decode` has one table per rank that printed decode
    lines. Lines are 1-based over the whole file.
    """

    start_line: int
    end_line: int
    server_args: Mapping[str, Any] | None
    server_args_line: int | None
    argument_warnings: tuple[Warned, ...]
    release: Release | None
    release_between: tuple[Release | None, Release | None]
    model_loads: tuple[ModelLoad, ...]
    events: tuple[Event, ...]
    event_counts: Mapping[EventKind, int]
    decode: Mapping[str, DecodeTable]
    prefill_lines: int

    def first(self, *kinds: EventKind) -> Event | None:
        """The first event of one of these kinds."""
        return next((event for event in self.events if event.kind in kinds), None)

    def decode_lines(self) -> Iterator[DecodeLine]:
        """The kept decode lines of all ranks in file order."""
        raise NotImplementedError

    @property
    def decode_count(self) -> int:
        """How many decode lines this boot printed, kept or not."""
        return sum(table.count for table in self.decode.values())


@dataclass(frozen=True)
class ServerLog:
    """A log read to its end.

    `is_excerpt`: no start-up line is in it, so absence of a warning or of a graph capture proves
    nothing. `unread_decode_lines` look like decode lines and could not be read (their first few
    stand in `problems`); `unknown_lines` carry nothing this reader knows. `problems` are (line,
    message).
    """

    source: str
    boots: tuple[Boot, ...]
    is_excerpt: bool
    total_lines: int
    unknown_lines: int
    unread_decode_lines: int
    total_bytes: int
    problems: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Phase:
    """Where a starting server is; `done`/`total` count weight shards or graph batch sizes while
    they are printed."""

    name: PhaseName
    done: int | None = None
    total: int | None = None

    def __str__(self) -> str:
        return self.name if self.done is None else f"{self.name} {self.done}/{self.total}"


@dataclass(frozen=True, slots=True)
class LineClass:
    """What one line is. `phase` is the phase it announces, None when it announces none."""

    kind: EventKind | Literal["decode", "prefill", "server-args", "model-load", "http", "other"]
    phase: Phase | None
    rank: str
    time: datetime | None
    message: str
    decode: DecodeLine | None = None


def classify_line(text: str, line: int = 1) -> LineClass:
    """Read one line by itself, as a live tail needs it; never raises."""
    raise NotImplementedError


class LogReader:
    """Reads a log in pieces as they arrive; `phase` follows the start and `result()` may be asked
    at any time."""

    def __init__(self, source: str = "server.log") -> None:
        raise NotImplementedError

    @property
    def phase(self) -> Phase:
        """The phase of the newest boot."""
        raise NotImplementedError

    def feed(self, data: bytes | str) -> None:
        """Take the next piece, split anywhere; an unfinished last line waits for the rest."""
        raise NotImplementedError

    def close(self) -> ServerLog:
        """Take the unfinished last line too and return the whole; the reader takes no more
        afterwards."""
        raise NotImplementedError

    def result(self) -> ServerLog:
        """What has been read so far, the unfinished last line left out."""
        raise NotImplementedError


def read_log(
    log: str | os.PathLike[str] | IO[bytes] | IO[str] | Iterable[str | bytes],
    source: str | None = None,
) -> ServerLog:
    """Read a log from a path (plain, gzip, xz, bzip2, zstd where available), a file object, or
    lines.

    A `str` is a path; wrap text in `io.StringIO`. UTF-8 and UTF-16 are told apart; time is linear
    in size and memory bounded. Raises OSError when the file cannot be opened and ValueError when
    compressed data is broken before anything could be read.
    """
    raise NotImplementedError
