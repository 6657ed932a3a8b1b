"""The bytes and the text of one input: found, bounded, unpacked, decoded; it tells no meaning."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from specdebug.diagnosis.facts import Input
from specdebug.sglang import log_input
from specdebug.sglang.pasted import as_text, rejoined, unquoted

__all__ = [
    "HEAD",
    "WHOLE",
    "Unusable",
    "decoded",
    "head",
    "mended",
    "small_text",
    "text",
    "unwrapped",
    "whole",
]

HEAD = 1 << 20
WHOLE = 64 << 20
_PACKED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd")


class Unusable(Exception):
    """The input cannot be used; the message says why and what to do."""


def head(given: Input) -> bytes:
    """The first megabyte as stored. Raises Unusable for a folder, OSError where unreadable."""
    if isinstance(given.data, bytes):
        return given.data[:HEAD]
    if given.data.is_dir():
        raise Unusable("is a folder; name the files in it")
    with given.data.open("rb") as file:
        return file.read(HEAD)


def whole(given: Input) -> bytes:
    """All bytes, unpacked. Raises Unusable above WHOLE bytes, packed or not: only logs are larger.

    Raises ValueError where compressed data are broken from their start.
    """
    if isinstance(given.data, bytes):
        raw = given.data
    elif given.data.stat().st_size > WHOLE:
        raise Unusable(f"larger than {WHOLE >> 20} MiB, which only a log may be")
    else:
        raw = given.data.read_bytes()
    if not raw.startswith(_PACKED):
        return raw
    parts: list[bytes] = []
    size = 0
    for piece, _ in log_input.pieces(io.BytesIO(raw)):
        part = piece.encode() if isinstance(piece, str) else piece
        parts.append(part)
        size += len(part)
        if size > WHOLE:
            raise Unusable(f"unpacks to more than {WHOLE >> 20} MiB, which only a log may be")
    return b"".join(parts)


def decoded(data: bytes) -> str:
    """Text of UTF-8 or UTF-16 bytes, bad bytes replaced; lines end in a line feed."""
    return as_text(data)


def text(given: Input) -> str:
    """The whole content as text, under the conditions of `whole`."""
    return decoded(whole(given))


def small_text(given: Input) -> str | None:
    """The whole content as text where it is at most HEAD bytes, stored and unpacked; else None."""
    stored = len(given.data) if isinstance(given.data, bytes) else given.data.stat().st_size
    if stored > HEAD:
        return None
    try:
        data = whole(given)
    except (Unusable, ValueError):
        return None
    return decoded(data) if len(data) <= HEAD else None


def mended(given: Input) -> Input:
    """A small text without the signs of a quoted reply, and with those decode lines whole that a
    mailer or a terminal broke in several; lines keep their numbers."""
    before = small_text(given)
    if before is None or "\x00" in before or before.count("\ufffd") > len(before) // 100:
        return given
    after = unquoted(before)
    if "Decode batch" in after:
        after = rejoined(after)
    return given if after == before else replace(given, data=after.encode("utf-8", "replace"))


# Log collectors keep each line as one object: the line itself, and when and where it was printed.
_LINE_KEYS = ("log", "message", "msg")
_BESIDE = frozenset({"time", "timestamp", "ts", "@timestamp", "stream", "level", "severity"})


def _line_of(raw: str) -> str | None:
    """The line inside one collected object, None when `raw` is no such object."""
    if not raw.startswith("{"):
        return None
    try:
        value: Any = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, Mapping) or not _BESIDE & value.keys():
        return None
    found = [value[key] for key in _LINE_KEYS if isinstance(value.get(key), str)]
    return str(found[0]).rstrip("\r\n").replace("\n", " ") if found else None


def unwrapped(given: Input) -> Input:
    """The input without the JSON a log collector put around each line; lines keep their numbers.

    Anything else comes back as it is, a log of more than WHOLE bytes too.
    """
    start = decoded(head(given)[: HEAD >> 4]).split("\n")[:20]
    told = [_line_of(line.strip()) for line in start if line.strip()]
    if sum(line is not None for line in told) <= len(told) // 2:
        return given
    try:
        lines = text(given).split("\n")
    except (Unusable, ValueError):
        return given
    own = [found if (found := _line_of(line.strip())) is not None else line for line in lines]
    return replace(given, data="\n".join(own).encode())
