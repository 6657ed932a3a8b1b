"""The `server_args=` dump of a log, as a call or a dict, into values; evaluates nothing."""

from __future__ import annotations

import ast
import re
from typing import Any

from specdebug.sglang.patterns import regex

_OPEN, _CLOSE = "([{<", ")]}>"
_KEYWORD = regex(r"\s*([A-Za-z_]\w*)\s*=\s*")
_KEY = regex(r"\s*(['\"])([A-Za-z_]\w*)\1\s*:\s*")
_MAX_VALUE = 20_000
_MAX_DEPTH = 50
_STRING = regex(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""")
# Operators behind an operand, doubled signs, attributes, calls, words: each nests one level deeper.
_CHAINED = regex(
    r"[-+~]\s*(?=[-+~])|[\w)\]}](?<![eE])\s*[-+*/%@&|^]|\.\s*[A-Za-z_]|[)\]}]\s*[(\[{]"
    r"|\b(?:not|else|lambda|await)\b"
)
_MAX_KEYS = 5_000


def read_server_args(text: str) -> dict[str, Any] | None:
    """The arguments in `text` (a log line or a paste), None when there is no dump in it.

    Values that are no Python literal stay text. A dump cut short yields the keys it still has.
    """
    start = re.search(r"server_args\s*=\s*(?=ServerArgs\(|\{)|(?=\bServerArgs\()", text)
    if start is None:
        return None
    at = start.end()
    if text.startswith("ServerArgs(", at):
        at += len("ServerArgs(")
        key_pattern, group = _KEYWORD, 1
    else:
        at += 1
        key_pattern, group = _KEY, 2
    values: dict[str, Any] = {}
    while len(values) < _MAX_KEYS:
        key = key_pattern.match(text, at)
        if key is None:
            break
        end = _value_end(text, key.end())
        values[key[group]] = _literal(text[key.end() : end].strip())
        if end >= len(text) or text[end] != ",":
            break
        at = end + 1
    return values or None


def _value_end(text: str, at: int) -> int:
    """Where the value starting at `at` ends: at a comma or closing bracket of its level."""
    depth = 0
    quote = ""
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in _OPEN and (char != "<" or re.match(r"<[\w.]", text[at : at + 2])):
            depth += 1
        elif char in _CLOSE and (char != ">" or depth):
            if not depth:
                return at
            depth -= 1
        elif char == "," and not depth:
            return at
        at += 1
    return at


def _literal(source: str) -> Any:
    if len(source) > _MAX_VALUE or _deep(source):
        return source
    try:
        return ast.literal_eval(source)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return source


def _deep(source: str) -> bool:
    """Whether parsing it would nest deeply, which no argument's value does.

    It must not be tried: CPython 3.11 miscounts its parser's recursion for good once it has run
    into the limit, and harmless texts then fail in the same process.
    """
    bare = _STRING.sub("", source)
    depth = deepest = 0
    for char in bare:
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth -= 1
    return deepest > _MAX_DEPTH or len(_CHAINED.findall(bare)) > _MAX_DEPTH
