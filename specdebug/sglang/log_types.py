"""What a read log consists of: boots, events, warnings, phases; plain frozen data, no reading."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from specdebug.sglang.decode_line import DecodeLine
from specdebug.sglang.decode_table import DecodeTable
from specdebug.sglang.log_events import EventKind, Phase
from specdebug.sglang.releases import Release

LineKind = EventKind | Literal["decode", "prefill", "server-args", "model-load", "http", "other"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something the engine said once; `text` is verbatim (at most 2,000 characters), `line`
    1-based.

    `fields` holds what was read out of it (for example max_running_requests, exit_code, captured).
    """

    kind: EventKind
    line: int
    text: str
    rank: str
    time: datetime | None
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Warned:
    """A line of the argument stage, mostly bare because logging is not set up yet.

    `rule` names the rule of `overrides` that prints it, None when no rule is known to.
    """

    line: int
    text: str
    rule: str | None


@dataclass(frozen=True, slots=True)
class ModelLoad:
    """One `Load weight end`: the class that really loaded (`type=`), its rank, seconds taken."""

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
    lines. `event_counts` counts events beyond those kept. Lines are 1-based over the whole file.
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
        return heapq.merge(*self.decode.values(), key=lambda line: line.line)

    @property
    def decode_count(self) -> int:
        """How many decode lines this boot printed, kept or not."""
        return sum(table.count for table in self.decode.values())


@dataclass(frozen=True)
class ServerLog:
    """A log read to its end.

    `is_excerpt`: no start-up line is in it, so absence of a warning or of a graph capture proves
    nothing. `unread_decode_lines` look like decode lines and could not be read (the first few stand
    in `problems`); `unknown_lines` carry nothing this reader knows. `problems` are (line, message).
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
class LineClass:
    """What one line is; `phase` is the phase it announces, None when it announces none."""

    kind: LineKind
    phase: Phase | None
    rank: str
    time: datetime | None
    message: str
    decode: DecodeLine | None = None
