"""Text and JSON inside what was pasted: encodings told apart, JSON found between other words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from specdebug.sglang.patterns import regex

_TRIES = 50
_ENTITY = regex(r"&(?:quot|apos|lt|gt|amp|nbsp|#0?3[49]|#x2[27]|#6[02]|#x3[ceCE]);")
_AMPERSAND = regex("&")


def as_text(content: str | bytes) -> str:
    """Text of UTF-8 or UTF-16 bytes (bad bytes replaced), with plain line ends."""
    if isinstance(content, bytes):
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            content = content.decode("utf-16", "replace")
        elif content[1:200:2].count(0) > 60 and not content[:200:2].count(0):
            content = content.decode("utf-16-le", "replace")
        else:
            content = content.decode("utf-8", "replace")
    return unescaped(content.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))


def unescaped(text: str) -> str:
    """Text copied from the source of a web page, with &quot; &gt; &amp; as the signs they mean.

    A page escapes every such sign: where one also stands by itself, its entity is meant as written
    (a JSON string that quotes a page, for one).
    """
    if "&" not in text or _ENTITY.search(text) is None:
        return text
    import html  # late: it brings every name of a sign, and few pastes have one

    meant = {sign for sign in "\"'<>\u00a0" if sign not in text}
    if all(_ENTITY.match(text, at.start()) for at in _AMPERSAND.finditer(text)):
        meant.add("&")

    def sign_of(match: re.Match[str]) -> str:
        sign = html.unescape(match[0])
        return sign.replace("\u00a0", " ") if sign in meant else match[0]

    return _ENTITY.sub(sign_of, text)


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
            printed = _printed_by_python(text, at)
            if printed is not None:
                value, end = printed
                line += text.count("\n", counted, at)
                counted = at
                yield line, value
                at = end
                continue
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


_PYTHON = regex(r"(?:\[\s*)?\{\s*'")
_SIGN = regex(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|[\[\]{}()]")
_LONGEST_PRINTED = 1 << 18
_DEEPEST = 40


def _printed_by_python(text: str, at: int) -> tuple[Any, int] | None:
    """The dict or list of dicts that Python printed at `at`, and where it ends; None for none.

    What an engine's line assigns (`server_args={'model_path'...`) is that line's own.
    """
    if not _PYTHON.match(text, at) or text[max(0, at - 3) : at].rstrip(" ")[-1:] == "=":
        return None
    depth = 0
    for sign in _SIGN.finditer(text, at, at + _LONGEST_PRINTED):
        if sign[0] in "[{(":
            depth += 1
        elif sign[0] in "]})":
            depth -= 1
        if depth > _DEEPEST:
            return None
        if depth == 0:
            import ast  # a paste in Python's own notation is rare

            try:
                return ast.literal_eval(text[at : sign.end()]), sign.end()
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                return None
    return None


def unquoted(text: str) -> str:
    """The text without the signs of a quoted reply, where two lines or more in a row bear them.

    One line alone may be a shell's `> server.log`.
    """
    lines = text.split("\n")
    quoted = [_LEAD.match(line) is not None for line in lines]
    if not any(quoted):
        return text
    beside = zip([False, *quoted], quoted, [*quoted[1:], False], strict=False)
    return "\n".join(
        _LEAD.sub("", line) if here and (before or after) else line
        for line, (before, here, after) in zip(lines, beside, strict=True)
    )


def rejoined(text: str) -> str:
    """The text with decode lines whole again that a mailer or a terminal broke in several.

    The rest of a line moves up to its beginning and leaves blank lines, so that numbers stay.
    """
    lines = text.split("\n")
    changed = False
    for at, line in enumerate(lines):
        if _DECODE not in line or len(line) > _BROKEN or _QUEUE.search(line):
            continue
        for last in range(at + 1, min(at + 6, len(lines))):
            more = lines[last]
            if not more.strip() or len(more) > _BROKEN or _DECODE in more or _STAMP.search(more):
                break
            parts = [line, *(_LEAD.sub("", part) for part in lines[at + 1 : last + 1])]
            # A mailer breaks at a blank and drops it, a terminal anywhere.
            both = (" ".join(part.strip() for part in parts), "".join(parts))
            whole = max(both, key=lambda way: len(_FIELD.findall(way)))
            if _WHOLE.search(whole):
                lines[at : last + 1] = [whole, *[""] * (last - at)]
                changed = True
                break
    return "\n".join(lines) if changed else text


_DECODE = "Decode batch"
_BROKEN = 400
_QUEUE = regex(r"#queue-req: \d")
_STAMP = regex(r"\[\d{4}-\d\d-\d\d[ T]\d")
_LEAD = regex(r"^[ \t]{0,3}(?:>[ \t]?)+")
# A field that stands as the engine prints it; the wrong way of joining leaves fewer of them.
_FIELD = regex(
    r"[,.] (?:#running-req|#(?:full )?token|(?:full )?token usage|accept (?:len|rate)|\w{3,4} graph"
    r"|gen throughput \(token/s\)|#queue-req): [\w.]+(?=, |,?\s*$)"
)
_WHOLE = regex(r"#running-req: \d+,.*gen throughput \(token/s\): [\d.]+,.*#queue-req: \d")


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
