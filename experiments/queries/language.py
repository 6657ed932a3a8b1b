"""The query language of search and of the API's `filter`, as a pure parser; docs/api.md has it in
full. It knows no fields and no database: `search` turns the tree into queries.

    state = done AND (metrics.tok_s > 60 OR metrics.accept_len BETWEEN 1.5 AND 2.5)
    params.speculative_num_steps IN (1, 3) AND NOT title ~ "warm up"
    aux layer state:open
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = ["And", "BadQuery", "Node", "Not", "Operator", "Or", "Term", "Value", "Words", "parse"]

Value = str | float | int | bool | None
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "~", "!~", "in", "between", "known", "unknown"]

LONGEST = 2000
DEEPEST = 30
MOST_TERMS = 100
MOST_IN_LIST = 200


class BadQuery(ValueError):
    """The text is no query; `place` is the 0-based character where it goes wrong."""

    def __init__(self, sentence: str, place: int) -> None:
        super().__init__(f"{sentence} (character {place + 1})")
        self.place = place


@dataclass(frozen=True, slots=True)
class Term:
    """A field compared with values: one, the members of a list, the two ends of a range, none."""

    field: str
    operator: Operator
    values: tuple[Value, ...]
    place: int


@dataclass(frozen=True, slots=True)
class Words:
    """A piece of text that is looked for in whatever has text."""

    text: str


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Node


Node = Term | Words | And | Or | Not

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<open>\() | (?P<close>\)) | (?P<comma>,)
    | (?P<op><=|>=|!=|!~|==|=|<|>|~|:)
    | (?P<text>"(?:[^"\\]|\\.)*"|'[^']*')
    | (?P<word>[^\s()<>=!~:,"'][^\s()<>=!~:,]*)
    )""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_RANGE = re.compile(
    r"(?P<low>[+-]?[\d.]*\d(?:[eE][+-]?\d+)?)\.\.(?P<high>[+-]?[\d.]*\d(?:[eE][+-]?\d+)?)"
)
_CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/@-]*")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: int


def parse(text: str) -> Node | None:
    """The query as a tree, None for an empty one. Raises BadQuery with the place of the fault."""
    if len(text) > LONGEST:
        raise BadQuery(f"the query has {len(text)} characters; at most {LONGEST} are read", LONGEST)
    if "\0" in text:
        raise BadQuery("the query holds a zero byte", text.index("\0"))
    parser = _Parser(list(_tokens(text)), len(text))
    return parser.whole()


def _tokens(text: str) -> Iterator[_Token]:
    place, end = 0, len(text.rstrip())
    while place < end:
        found = _TOKEN.match(text, place)
        if found is None:
            rest = text[place:].lstrip()
            where = len(text) - len(rest)
            if rest[0] in "\"'":
                raise BadQuery("a quoted text is not closed", where)
            raise BadQuery(f"{rest[0]!r} is not understood here", where)
        kind = str(found.lastgroup)
        yield _Token(kind, found.group(kind), found.start(kind))
        place = found.end()


class _Parser:
    """Recursive descent over the tokens of one query."""

    def __init__(self, tokens: list[_Token], end: int) -> None:
        self.tokens, self.end, self.at, self.terms = tokens, end, 0, 0

    def whole(self) -> Node | None:
        if not self.tokens:
            return None
        node = self._either(0)
        if (left := self._peek()) is not None:
            raise BadQuery(f"{left.text!r} is not understood here", left.place)
        return node

    # ---- the tokens ------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> _Token | None:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else None

    def _next(self, wanted: str) -> _Token:
        token = self._peek()
        if token is None:
            raise BadQuery(f"the query ends where {wanted} is expected", self.end)
        self.at += 1
        return token

    def _is_word(self, word: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token is not None and token.kind == "word" and token.text.upper() == word

    # ---- the grammar -----------------------------------------------------------------------------

    def _either(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise BadQuery(f"more than {DEEPEST} brackets deep", self._place())
        parts = [self._all(depth)]
        while self._is_word("OR"):
            self.at += 1
            parts.append(self._all(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all(self, depth: int) -> Node:
        parts = [self._one(depth)]
        while (token := self._peek()) is not None and token.kind != "close":
            if self._is_word("OR"):
                break
            if self._is_word("AND"):
                self.at += 1
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self, depth: int) -> Node:
        if self._is_word("NOT") and self._peek(1) is not None:
            if depth > DEEPEST:
                raise BadQuery(f"more than {DEEPEST} brackets deep", self._place())
            self.at += 1
            return Not(self._one(depth + 1))
        token = self._next("a term")
        if token.kind == "open":
            node = self._either(depth + 1)
            closing = self._next("')'")
            if closing.kind != "close":
                raise BadQuery("')' is expected", closing.place)
            return node
        if token.kind not in ("word", "text"):
            raise BadQuery(f"a field or a text is expected, not {token.text!r}", token.place)
        self.terms += 1
        if self.terms > MOST_TERMS:
            raise BadQuery(f"more than {MOST_TERMS} terms", token.place)
        if token.kind == "word" and token.text.upper() in ("AND", "OR"):
            raise BadQuery(f"a term is expected before {token.text}", token.place)
        return self._term(token) or Words(_text_of(token))

    def _term(self, field: _Token) -> Term | None:
        """What follows a field's name; None where the token is a piece of text for itself."""
        if field.kind != "word" or (token := self._peek()) is None:
            return None
        if token.kind == "op":
            self.at += 1
            return self._compared(field, token)
        negated = self._is_word("NOT") and self._is_word("IN", 1)
        if self._is_word("IN") or negated:
            following = self._peek(2 if negated else 1)
            if following is None or following.kind != "open":
                return None
            self.at += 2 if negated else 1
            values = self._list()
            if negated:  # a list has no opposite operator of its own; != over all members is one
                return Term(self._field(field), "!=", values, field.place)
            return Term(self._field(field), "in", values, field.place)
        if self._is_word("BETWEEN"):
            self.at += 1
            low = _value_of(self._next("the lower end of the range"))
            if not self._is_word("AND"):
                raise BadQuery("AND is expected between the two ends of the range", self._place())
            self.at += 1
            high = _value_of(self._next("the upper end of the range"))
            return Term(self._field(field), "between", (low, high), field.place)
        if self._is_word("IS"):
            return self._known(field)
        return None

    def _known(self, field: _Token) -> Term | None:
        negated = self._is_word("NOT", 1)
        if not self._is_word("NULL", 2 if negated else 1):
            return None
        self.at += 3 if negated else 2
        return Term(self._field(field), "known" if negated else "unknown", (), field.place)

    def _compared(self, named: _Token, operator: _Token) -> Term:
        field, token = self._field(named), self._next("a value")
        sign = {"==": "=", ":": "="}.get(operator.text, operator.text)
        place = named.place
        if sign == "=" and token.kind == "word" and (ends := _RANGE.fullmatch(token.text)):
            return Term(field, "between", (float(ends["low"]), float(ends["high"])), place)
        value = _value_of(token)
        if value is None and sign in ("=", "!="):
            return Term(field, "unknown" if sign == "=" else "known", (), place)
        return Term(field, sign, (value,), place)  # type: ignore[arg-type]

    def _list(self) -> tuple[Value, ...]:
        self._next("'('")
        values = [_value_of(self._next("a value"))]
        while True:
            token = self._next("',' or ')'")
            if token.kind == "close":
                return tuple(values)
            if token.kind != "comma":
                raise BadQuery("',' or ')' is expected in the list", token.place)
            values.append(_value_of(self._next("a value")))
            if len(values) > MOST_IN_LIST:
                raise BadQuery(f"more than {MOST_IN_LIST} values in a list", token.place)

    def _place(self) -> int:
        token = self._peek()
        return self.end if token is None else token.place

    @staticmethod
    def _field(token: _Token) -> str:
        if not _FIELD.fullmatch(token.text):
            raise BadQuery(f"{token.text!r} is no name of a field", token.place)
        return token.text


def _text_of(token: _Token) -> str:
    if token.kind != "text":
        return token.text
    if token.text[0] == "'":
        return token.text[1:-1]
    try:
        return str(json.loads(token.text))
    except ValueError:  # a backslash that JSON does not know stands for itself
        return token.text[1:-1]


def _value_of(token: _Token) -> Value:
    """A number, true, false, null, or a text with or without quotes."""
    if token.kind == "text":
        return _text_of(token)
    if token.kind != "word":
        raise BadQuery(f"a value is expected, not {token.text!r}", token.place)
    if token.text.lower() in _CONSTANTS:
        return _CONSTANTS[token.text.lower()]
    if _NUMBER.fullmatch(token.text):
        plain = token.text.replace("_", "")
        number = int(plain) if plain.lstrip("+-").isdigit() and len(plain) < 19 else float(plain)
        if not math.isfinite(number):
            raise BadQuery(f"{token.text!r} is too large a number", token.place)
        return number
    return token.text
