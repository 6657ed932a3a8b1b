"""What a vLLM server says of its own life: out of memory, dead, a port in use, no such model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from specdebug.diagnosis.facts import Notice
from specdebug.sglang.patterns import regex

__all__ = ["life_of"]

_KEPT = 200
_LONGEST = 2_000
_EVENTS = (
    ("out-of-memory", regex(r"OutOfMemoryError|(?:CUDA|HIP) out of memory")),
    (
        "child-died",
        regex(
            r"EngineDeadError|EngineCore (?:encountered a fatal error|failed to start)"
            r"|Engine core (?:initialization failed|proc\w* .{0,60}died)"
            r"|Engine process failed to start|Worker\w* proc\w* .{0,60}died"
        ),
    ),
    ("port-in-use", regex(r"[Aa]ddress already in use")),
    ("missing-model", regex(r"is not a local folder and is not a valid model identifier")),
)
_SIGNS = (
    "emory",
    "EngineDead",
    "EngineCore ",
    "Engine ",
    "Worker",
    "already in use",
    "local folder",
)
# A user's text stands behind it, and is no statement of the engine.
_RECORD = regex(r"Received request |Generated response |prompt: ")


def life_of(text: str, source: str) -> tuple[Notice, ...]:
    """The first two hundred such lines, in order."""
    return tuple(islice(_events(text, source), _KEPT))


def _events(text: str, source: str) -> Iterator[Notice]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not any(sign in line for sign in _SIGNS):
            continue
        record = _RECORD.search(line)
        said = line[: record.start()] if record else line
        for kind, pattern in _EVENTS:
            if pattern.search(said[:_LONGEST]):
                yield Notice(kind, source, number, line.strip()[:_LONGEST])
                break
