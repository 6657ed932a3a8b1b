"""Text and JSON inside what was pasted: encodings told apart, JSON found between other words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_TRIES = 50


def as_text(content: str | bytes) -> str:
    """Text of UTF-8 or UTF-16 bytes (bad bytes replaced), with plain line ends."""
    if isinstance(content, bytes):
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            content = content.decode("utf-16", "replace")
        elif content[1:200:2].count(0) > 60 and not content[:200:2].count(0):
            content = content.decode("utf-16-le", "replace")
        else:
            content = content.decode("utf-8", "replace")
    return content.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def load(text: str) -> Any:
    """Decode one JSON value. Raises ValueError, also for nesting too deep to read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def json_values(text: str) -> Iterator[tuple[int, Any]]:
    """(1-based line, value) of every JSON object or array of objects that begins a line or a paste.

    Whole text first, then line by line, then the first brackets found; at most fifty failed tries.
    """
    stripped = text.strip()
    if not stripped:
        return
    first = text[: text.index(stripped[0])].count("\n") + 1
    if stripped[0] in "{[":
        try:
            yield first, load(stripped)
            return
        except ValueError:
            pass
    decoder = json.JSONDecoder()
    at = failed = counted = 0
    line = 1
    brace = bracket = -1  # the next of each at or behind `at`; the length of the text for none
    while failed < _TRIES:
        brace = _next(text, "{", at, brace)
        bracket = _next(text, "[{", at, bracket)
        at = min(brace, bracket)
        if at == len(text):
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            failed += 1
            # The next line has the next chance; within a line the first bracket decides.
            following = text.find("\n", at)
            if following < 0:
                return
            at = following + 1
            continue
        line += text.count("\n", counted, at)
        counted = at
        yield line, value
        at = end


def _next(text: str, sign: str, at: int, known: int) -> int:
    """Where `sign` comes next, looked for once and not again from every place before it."""
    if known >= at:
        return known
    found = text.find(sign, at)
    return len(text) if found < 0 else found


def number(value: Any) -> float | None:
    """A finite number as float, None for anything else (text, null, booleans, infinities)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None


def whole(value: Any) -> int | None:
    """A whole number as int, None for anything else."""
    found = number(value)
    return int(found) if found is not None and found == int(found) else None
