"""What a log line announces: which lines deserve a look, and what event or phase each is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from specdebug.sglang.patterns import regex

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
class Phase:
    """Where a starting server is; `done`/`total` count weight shards or graph batch sizes."""

    name: PhaseName
    done: int | None = None
    total: int | None = None

    def __str__(self) -> str:
        return self.name if self.done is None else f"{self.name} {self.done}/{self.total}"


# Every line that matters, other than decode and prefill lines, contains one of these.
NEEDLES: tuple[bytes, ...] = (
    b"erver_args=",
    b"ServerArgs(",
    b"peculative",
    b"SpecV2",
    b"spec v2",
    b"ttention backend",
    b"apture ",
    b"aptured ",
    b"Capturing",
    b"Load weight",
    b"shards",
    b"torch distributed",
    b"ready to roll",
    b"max_total_num_tokens=",
    b"xception",
    b"Error",
    b"igquit",
    b"SIGQUIT",
    b"is dead",
    b"Exit code:",
    b"ut of memory",
    b"Not enough memory",
    b"etract",
    b"atchdog timeout",
    b"Health check failed",
    b"Initialization failed",
    b"already in use",
    b"graph is disabled",
    b"graph because",
    b"SIMULATE_ACC",
    b"imulate_acc",
    b"KV Cache is allocated",
    b"Memory pool end",
    b"glang==",
    b"lmsysorg/sglang:",
    b"glang version",
)
LOOK = regex(b"|".join(re.escape(needle) for needle in (b"Decode batch", *NEEDLES)))
# While a server runs, one of these announces that something else than serving happens.
GATES: tuple[bytes, ...] = (
    b"erver_args=",
    b"Traceback (most recent call last)",
    b"Load weight begin",
    b"KV cache pool is full",
    b"out of memory",
    b"igquit",
    b"atchdog timeout",
)

_GRAPH = r"(?:cuda|CUDA|npu|cpu) graph"
_TOOK = r"(?:.*?elapsed:? (?P<seconds>[\d.]+))?"
_LIMITS = (
    r"max_total_num_tokens=(?P<max_total_num_tokens>\d+)"
    r"(?:.*?max_running_requests=(?P<max_running_requests>\d+))?"
    r"(?:.*?context_len=(?P<context_len>\d+))?"
)
_AUX = (
    r"captured (?P<captured>\d+) of (?P<expected>\d+) aux hidden states"
    r"|mat1 and mat2 shapes cannot be multiplied "
    r"\((?P<rows>\d+)x(?P<got>\d+) and (?P<want>\d+)x(?P<out>\d+)\)"
    r"|unsupported operand type\(s\) for \+: 'Tensor' and 'NoneType'"
)
_MEMORY = (
    r"(?:CUDA|HIP) out of memory|OutOfMemoryError|Not enough memory\. Please try"
    r"|(?P<stage>Prefill|Decode) out of memory"
)
_RETRACTED = (
    r"(?:KV cache pool is full\. )?Retract requests.*?#retracted_reqs: (?P<requests>\d+)"
    r"|KV cache pool is full\. Retract requests"
)
_MISSING = (
    r"(?:OSError|HFValidationError|RepositoryNotFoundError|FileNotFoundError|EntryNotFoundError)"
    r": (?P<what>.{0,200})|is not a local folder and is not a valid model identifier"
)
_DIED = (
    r"Received sigquit from a child|SIGQUIT received|Rank (?P<rank>\d+) scheduler is dead"
    r"|Exit code: (?P<exit_code>-?\d+)"
)
_ERROR = (
    r"^(?P<error>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\b"
    r"(?:: (?P<message>.{0,500}))?"
)
# In this order: the first that fits names the event.
_PATTERNS: tuple[tuple[EventKind, str], ...] = (
    ("ready", r"fired up and ready to roll"),
    ("startup-limits", _LIMITS),
    ("capture-draft-begin", rf"Capture draft .*?{_GRAPH} begin"),
    ("capture-draft-end", rf"Capture draft .*?{_GRAPH} end{_TOOK}"),
    ("capture-failed", r"Capture (?:cuda|CUDA|npu|cpu)? ?graph failed"),
    ("capture-begin", rf"Capture .*?{_GRAPH} begin"),
    ("capture-end", rf"Capture .*?{_GRAPH} end{_TOOK}"),
    ("graph-disabled", r"(?i:cuda graph is disabled|Disable cuda graph because)(?P<reason>.*)"),
    ("simulated-acceptance", r"(?i)simulate_acc(?:_len)?[^\d]{0,20}(?P<length>\d+(?:\.\d+)?)?"),
    ("aux-capture", _AUX),
    ("out-of-memory", _MEMORY),
    ("retracted", _RETRACTED),
    ("watchdog", r"[Ww]atchdog timeout"),
    ("port-in-use", r"(?i)address already in use|port (?P<port>\d+) is (?:already )?in use"),
    ("missing-model", _MISSING),
    ("health-check-failed", r"Health check failed"),
    ("warmup-failed", r"Initialization failed\. warmup error"),
    ("child-died", _DIED),
    ("exception", r"(?P<where>[\w ]{1,60}) hit an exception|Traceback \(most recent call last\)"),
    ("error-message", _ERROR),
)
_EVENTS = tuple((kind, regex(pattern)) for kind, pattern in _PATTERNS)
_PHASES: tuple[tuple[PhaseName, re.Pattern[str]], ...] = (
    ("ready", regex(r"fired up and ready to roll")),
    ("failed", regex(r"hit an exception|[Ss]igquit|SIGQUIT received|scheduler is dead")),
    ("warming up", regex(r"max_total_num_tokens=\d|Application startup complete")),
    ("capturing graphs", regex(r"Capture .*graph begin|Capturing ")),
    ("loading weights", regex(r"Load weight begin|(?i:shards)\s*:")),
    ("starting", regex(r"server_args=")),
)
_PROGRESS = regex(r"(\d{1,6})/(\d{1,6})(?= \[| Completed|,|\s|$)")
_RELEASE = regex(
    r"(?:lmsysorg/)?(?i:sglang)(?:\[[\w,]*\])?\s*(?:==|:\s*v?|-v?|\s+v(?:ersion)?[:= ]*v?)"
    r"(\d+\.\d+\.\d+[\w.]*)"
)
MODEL_LOAD = regex(r"Load weight end\.(?:.*?elapsed=([\d.]+) ?s)?.*?type=([\w.]+)")


# Some patterns look ahead along the line, so long lines are searched at their start only.
_SEARCHED = 4_000


def event_of(message: str) -> tuple[EventKind, dict[str, str]] | None:
    """The event a message announces and what it says, None for none."""
    found = _event_of(message[:_SEARCHED])
    return (found[0], dict(found[1])) if found else None


@lru_cache(maxsize=1024)
def _event_of(message: str) -> tuple[EventKind, dict[str, str]] | None:
    for kind, pattern in _EVENTS:
        match = pattern.search(message)
        if match is not None:
            return kind, {k: v.strip() for k, v in match.groupdict().items() if v is not None}
    return None


def phase_of(text: str) -> Phase | None:
    """The phase a line announces, with its progress if a bar is in it."""
    text = text[:_SEARCHED]
    for name, pattern in _PHASES:
        if pattern.search(text):
            if name in ("loading weights", "capturing graphs"):
                bars = _PROGRESS.findall(text)
                if bars:
                    return Phase(name, int(bars[-1][0]), int(bars[-1][1]))
            return Phase(name)
    return None


def release_named(message: str) -> str | None:
    """The release number a line names for SGLang itself, None if it names none."""
    match = _RELEASE.search(message[:_SEARCHED])
    return match[1] if match else None
