"""Collects what one boot of a server says, line by line, and bounds the release that printed it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from specdebug.sglang.decode_table import TableBuilder
from specdebug.sglang.log_events import MODEL_LOAD, EventKind, Phase, event_of, release_named
from specdebug.sglang.log_line import Parts
from specdebug.sglang.log_types import Boot, Event, ModelLoad, Warned
from specdebug.sglang.patterns import regex
from specdebug.sglang.releases import Release
from specdebug.sglang.rules import Rule, printing

KEPT_PER_KIND = 200
KEPT_TEXT = 2_000
_KEPT_LINES = 1_000  # of loaded models (two a rank) and of argument-stage lines
_KEPT_SHAPES = 4_000
_DIGITS = b"0123456789"
_ARGUMENT_STAGE = regex(r"peculative|verlap scheduler|verlap spec v2|ttention backend")
_START_UP = regex(r"Load weight begin|Init torch distributed|KV Cache is allocated|Memory pool end")
Bounds = tuple[Release | None, Release | None]
_R = Release.parse
# What only some releases print, as (pattern over a decode line, first release, last release).
_DECODE_FORMS: tuple[tuple[re.Pattern[str], Bounds], ...] = (
    (regex(r"Decode batch\."), (None, _R("0.5.3"))),
    (regex(r"Decode batch(?: \[\d+\])?,"), (_R("0.5.4"), None)),
    (
        regex(r"Decode batch(?: \[\d+\])?, .*accept rate.*#queue-req: \d+, ?$"),
        (_R("0.5.4"), _R("0.5.8.post1")),
    ),
    (regex(r"Decode batch(?: \[\d+\])?, .*#queue-req: \d+$"), (_R("0.5.9"), None)),
    (regex(r"accept rate:"), (_R("0.5.4"), None)),
    (regex(r"fwd occupancy:"), (_R("0.5.11"), None)),
    (regex(r"cap len:|block accept len:"), (_R("0.5.16"), None)),
)


class BootBuilder:
    """One boot while it is being read."""

    def __init__(self, start_line: int) -> None:
        self.start_line = start_line
        self.end_line = start_line
        self.server_args: dict[str, Any] | None = None
        self.server_args_line: int | None = None
        self.warnings: list[Warned] = []
        self.loads: list[ModelLoad] = []
        self.events: list[Event] = []
        self.counts: dict[EventKind, int] = {}
        self.tables: dict[str, TableBuilder] = {}
        self.prefill = 0
        self.started = False
        self.served = False
        self.failed = False
        self.release: Release | None = None
        self.phase = Phase("starting")
        self._bounds: Bounds = (None, None)
        self._contradicted = False
        self._forms_seen = False
        self._shapes: dict[bytes, tuple[int, EventKind]] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing has been read into this boot yet."""
        return not (
            self.server_args
            or self.warnings
            or self.loads
            or self.events
            or self.tables
            or self.prefill
        )

    def warn(self, warned: Warned, rules: tuple[Rule, ...]) -> None:
        """Take a line of the argument stage."""
        if len(self.warnings) < _KEPT_LINES:
            self.warnings.append(warned)
        if rules:
            lasts = [rule.until for rule in rules]
            self.bound(
                (
                    min(rule.since for rule in rules),
                    None if None in lasts else max(last for last in lasts if last),
                )
            )

    def arguments(self, args: dict[str, Any], line: int, text: str) -> None:
        """Take the server_args dump."""
        self.server_args, self.server_args_line, self.started = args, line, True
        as_dict = re.search(r"server_args\s*=\s*\{", text) is not None
        self.bound((_R("0.5.19"), None) if as_dict else (None, _R("0.5.18")))
        version = args.get("version")
        if isinstance(version, str):
            self.release = self.release or Release.find(version)

    def announce(self, parts: Parts, text: str, line: int) -> bool:
        """Take a line that may be an event or a loaded model; False if it is neither."""
        known = False
        if named := release_named(parts.message):
            self.release = self.release or Release.find(named)
            known = True
        if load := MODEL_LOAD.search(parts.message[:KEPT_TEXT]):
            seconds = float(load[1]) if load[1] and load[1].count(".") < 2 else None
            if len(self.loads) < _KEPT_LINES:
                self.loads.append(
                    ModelLoad(line, load[2].strip("."), parts.rank, seconds, text[:KEPT_TEXT])
                )
            self.started = known = True
        elif _START_UP.search(parts.message):
            self.started = known = True
        event = event_of(parts.message)
        if event is None:
            return known
        kind, fields = event
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if kind == "startup-limits":
            self.started = True
        self.served |= kind == "ready"
        self.failed |= kind in ("exception", "child-died")
        if kind in ("exception", "error-message", "aux-capture") and (
            rules := printing(parts.message)
        ):
            fields = {**fields, "rule": rules[0].id}
        if self.counts[kind] <= KEPT_PER_KIND:
            self.events.append(Event(kind, line, text[:KEPT_TEXT], parts.rank, parts.time, fields))
        return True

    def remember(self, raw: bytes, message: str) -> None:
        """Note that a line made an event and nothing else, so that its repeats can be counted."""
        event = event_of(message)
        if event is None or len(raw) > KEPT_TEXT or MODEL_LOAD.search(message) or printing(message):
            return
        if b" batch" in raw:
            return  # glued to a decode line, which is read for itself
        shape = raw.translate(None, _DIGITS)
        times = self._shapes.get(shape, (0, event[0]))[0]
        if times or len(self._shapes) < _KEPT_SHAPES:
            self._shapes[shape] = (times + 1, event[0])

    def said_before(self, raw: bytes) -> bool:
        """Count a line that differs by digits alone from as many events as are kept of its kind.

        A server in trouble says one thing a million times; what is kept of it is full by then.
        """
        if not self._shapes:
            return False
        times, kind = self._shapes.get(raw.translate(None, _DIGITS), (0, None))
        if kind is None or times < KEPT_PER_KIND:
            return False
        self.counts[kind] += 1
        return True

    def without_repeats(self, data: bytes) -> tuple[bytes, list[int], int]:
        """The whole lines of `data` that are no repeats, their indices, and how many lines it had.

        The repeats are counted. Meant for pieces that are full of them: it goes over every line.
        """
        shapes = data.translate(None, _DIGITS).split(b"\n")[:-1]
        full = {s: kind for s, (n, kind) in self._shapes.items() if n >= KEPT_PER_KIND}
        kept = [at for at, shape in enumerate(shapes) if shape not in full]
        for shape, times in Counter(shapes).items():
            if shape in full:
                self.counts[full[shape]] += times
        if kept:
            lines = data.split(b"\n")
            data = b"".join(lines[at] + b"\n" for at in kept)
        return data if kept else b"", kept, len(shapes)

    def table(self, rank: str) -> TableBuilder:
        """The table of one rank."""
        self.served = True
        return self.tables.setdefault(rank, TableBuilder(rank))

    def decode_form(self, text: str) -> None:
        """Bound the release by how its decode lines look; the first line is enough."""
        if self._forms_seen:
            return
        self._forms_seen = True
        text = text[:KEPT_TEXT]
        for pattern, bounds in _DECODE_FORMS:
            if pattern.search(text):
                self.bound(bounds)
        if "accept len:" in text and "accept rate:" not in text:
            self.bound((None, _R("0.5.3")))

    def bound(self, bounds: Bounds) -> None:
        """Narrow the range of releases; a contradiction (a patched server) leaves it open."""
        if self._contradicted:
            return
        first, last = self._bounds
        if bounds[0] is not None and (first is None or bounds[0] > first):
            first = bounds[0]
        if bounds[1] is not None and (last is None or bounds[1] < last):
            last = bounds[1]
        if first is not None and last is not None and first > last:
            self._contradicted = True
            first = last = None
        self._bounds = (first, last)

    def build(self) -> Boot:
        """The boot as read so far."""
        between = (self.release, self.release) if self.release else self._bounds
        return Boot(
            start_line=self.start_line,
            end_line=self.end_line,
            server_args=self.server_args,
            server_args_line=self.server_args_line,
            argument_warnings=tuple(self.warnings),
            release=self.release,
            release_between=between,
            model_loads=tuple(self.loads),
            events=tuple(self.events),
            event_counts=dict(self.counts),
            decode={rank: builder.table() for rank, builder in sorted(self.tables.items())},
            prefill_lines=self.prefill,
        )


def argument_stage(parts: Parts, has_dump: bool, served: bool) -> tuple[bool, tuple[Rule, ...]]:
    """Whether a line belongs to the argument stage, and the rules that print it.

    `has_dump` and `served` tell how far the current boot is. A line that a rule prints counts
    anywhere if it is bare, and in front of a dump (this boot's or the next one's) if it carries a
    time, as where loggers are set up early. Other bare sentences count in front of the dump only.
    """
    rules = tuple(rule for rule in printing(parts.message) if rule.kind != "reject")
    if rules:
        return not parts.stamped or served or not has_dump, rules
    message = parts.message
    if parts.stamped or has_dump or served or not _ARGUMENT_STAGE.search(message):
        return False, ()
    said_otherwise = message.startswith(("File ", "raise ", "assert ", "/", "+ ", "python", "--"))
    an_error = re.match(r"[\w.]*(?:Error|Exception)\b", message)
    return not said_otherwise and not an_error and "erver_args=" not in message, ()


__all__ = ["KEPT_TEXT", "BootBuilder", "argument_stage"]
