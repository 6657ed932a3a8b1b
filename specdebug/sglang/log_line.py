"""One line of an SGLang log by itself: time, rank, message, decode fields; keeps no state."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime

from specdebug.sglang.decode_line import DecodeLine
from specdebug.sglang.patterns import regex

DECODE = "Decode batch"
# With the escape byte or, as in many pastes, without it or spelt out. A reset ends the last figure.
ANSI = regex(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]"
    r"|(?:\^\[|\u241b|\\(?:x1[bB]|u001[bB]|033|e))\[[0-9;?]*[A-Za-z]"
    r"|(?<!\w)\[\d{1,3}(?:;\d{1,3})*m|\[0?m(?!\w)"
)
PREFIX = regex(
    r"\[(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?(?:Z|[+-]\d\d:?\d\d)?"
    r"((?: [A-Za-z][A-Za-z_]*\d+)*)\]"
)
PLAIN = regex(
    r"(?<![\d\[])(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r"(?:Z|[+-]\d\d:?\d\d)?(?!\d)()"
)
_LEAD = regex(r"^(?:[\w.-]{1,80}\s+\|\s|>\s?|\|\s?)+")
_ORIGIN = regex(
    r"^\s*(?:\[?(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL)\]?:?\s+(?!\d+\.\d))?"
    r"(?:\d{1,7}\s+)?(?:\[?[\w./-]+\.py:\d+\]?:?\s+)?(?:-\s+)?"
)
_FIELD = regex(r"([#A-Za-z(][^:,\[\]]{0,60}?):\s*([^,\s]+)")
_OPENING = regex(r"\s*(?:\[\d+\])?\s*[.,:]?\s*")
_NUMBER = regex(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$")
# Another message glued behind this one, as happens when two processes write at once.
_NEXT = regex(r"\[\d{4}-\d\d-\d\d[ T]\d\d:")
_MAX_DECODE = 4_000
_MAX_GLUED = 1_000

KEYS = {
    "#running-req": "running",
    "#queue-req": "queue",
    "#token": "tokens",
    "#full token": "tokens",
    "token usage": "token_usage",
    "full token usage": "token_usage",
    "accept len": "accept_len",
    "accept rate": "accept_rate",
    "gen throughput (token/s)": "throughput",
}


@dataclass(frozen=True, slots=True)
class Parts:
    """A line taken apart; `stamped` tells whether a time stood in front of the message."""

    time: datetime | None
    rank: str
    message: str
    stamped: bool


@dataclass(frozen=True, slots=True)
class Field:
    """One `key: value` of a decode line, with the span of the value in the text."""

    key: str
    value: str
    start: int
    end: int


def clean(text: str) -> str:
    """The line without colour codes and line end."""
    text = text.rstrip("\r\n")
    return ANSI.sub("", text) if "[" in text or "\x1b" in text else text


def engine_free(text: str) -> bool:
    """Whether a line is not the engine's own: no stamp, no decode or prefill message."""
    return not (PREFIX.search(text) or DECODE in text or "Prefill batch" in text)


def take_apart(text: str) -> Parts:
    """Time, rank and message of one line, whatever stands in front of it."""
    text = clean(text)
    match = PREFIX.search(text)
    if match is None:
        lead = _LEAD.match(text)
        rest = text[lead.end() :] if lead else text
        match = PLAIN.match(rest)
        if match is None:
            return Parts(None, "", rest.strip(), False)
        text = rest
    message = _ORIGIN.sub("", text[match.end() :], count=1)
    return Parts(moment(match), match[8].strip(), message.strip(), True)


def moment(match: re.Match[str]) -> datetime | None:
    """The time of a prefix match, None if it is no date."""
    year, month, day, hour, minute, second = (int(match[n]) for n in range(1, 7))
    micro = int((match[7] or "0")[:6].ljust(6, "0")) if match[7] else 0
    try:
        return datetime(year, month, day, hour, minute, second, micro)  # noqa: DTZ001
    except ValueError:
        return None


def stamp_before(text: str, at: int) -> re.Match[str] | None:
    """The prefix nearest in front of `at`: bracketed if there is one, else a plain time."""
    begin = max(0, at - 400)
    last = None
    for match in PREFIX.finditer(text, begin, at):
        last = match
    if last is None:
        for match in PLAIN.finditer(text, begin, at):
            last = match
    return last


def decode_fields(text: str, at: int) -> list[Field]:
    """The fields of the decode message that starts at `at`, up to the next message or the end."""
    begin = at + len(DECODE)
    limit = min(len(text), at + _MAX_DECODE)
    again = text.find(DECODE, begin, limit)
    limit = again if again >= 0 else limit
    following = _NEXT.search(text, begin, limit)
    end = following.start() if following else limit
    opening = _OPENING.match(text, begin, end)
    start = opening.end() if opening else begin
    return [
        Field(match[1].strip(), match[2], match.start(2), match.end(2))
        for match in _FIELD.finditer(text, start, end)
    ]


def number(value: str) -> float | None:
    """A finite plain number, None for anything else (nan, None, a word, four hundred digits)."""
    found = float(value) if _NUMBER.match(value) else None
    return None if found is None or math.isinf(found) else found


def decode_line(text: str, at: int, line: int) -> DecodeLine | None:
    """The decode message at `at`; None when its running requests or throughput cannot be read."""
    values: dict[str, float | None] = {}
    extra: dict[str, str] = {}
    graph: bool | None = None
    for found in decode_fields(text, at):
        column = KEYS.get(found.key)
        if column is not None and (
            column not in values or not found.key.startswith(("full", "#f"))
        ):
            values[column] = number(found.value)
        elif found.key.endswith(" graph"):
            graph = {"True": True, "False": False}.get(found.value)
            if found.key != "cuda graph":
                extra["graph"] = found.key
        else:
            extra[found.key] = found.value
    if values.get("throughput") is None or values.get("running") is None:
        return None
    stamp = stamp_before(text, at)

    def whole(column: str) -> int | None:
        value = values.get(column)
        return None if value is None else int(value)

    return DecodeLine(
        line=line,
        time=moment(stamp) if stamp else None,
        rank=stamp[8].strip() if stamp else "",
        running=whole("running"),
        queue=whole("queue"),
        tokens=whole("tokens"),
        token_usage=values.get("token_usage"),
        accept_len=values.get("accept_len"),
        accept_rate=values.get("accept_rate"),
        graph=graph,
        throughput=values.get("throughput"),
        extra=extra,
    )


def decode_lines(text: str, line: int) -> list[DecodeLine | None]:
    """Every decode message on one physical line; None for each that cannot be read."""
    found: list[DecodeLine | None] = []
    at = text.find(DECODE)
    while at >= 0 and len(found) < _MAX_GLUED:
        found.append(decode_line(text, at, line))
        at = text.find(DECODE, at + len(DECODE))
    return found
