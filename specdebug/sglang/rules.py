"""The rule table of rules.toml and the small language of its conditions; decides nothing by itself.

It is read from rules.json, which `python -m specdebug.sglang.rules_json` writes.

A condition may be true, false or unknown: an argument the engine chooses by itself (the attention
backend, say) is unknown, and so is everything that hangs on it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from specdebug.sglang.patterns import regex
from specdebug.sglang.releases import Release


class _Unknown:
    """A value nobody can know from the inputs."""

    def __repr__(self) -> str:
        return "unknown"

    def __bool__(self) -> bool:
        raise TypeError("an unknown value has no truth; ask with `is UNKNOWN`")


UNKNOWN = _Unknown()


@dataclass(frozen=True)
class Rule:
    """One row of the table; `until` None means it still holds in the newest release read."""

    id: str
    kind: str
    severity: str
    algorithms: tuple[str, ...]
    since: Release
    until: Release | None
    why: str
    fix: str = ""
    when: str = ""
    set: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    log: str = ""
    formula: str = ""
    elsewhere: str = ""

    def holds(self, release: Release) -> bool:
        """Whether the rule is there in `release`."""
        return release >= self.since and (self.until is None or release <= self.until)

    def concerns(self, algorithm: object) -> bool:
        """Whether the rule is about this speculative algorithm."""
        return algorithm is not None and (
            "any" in self.algorithms or algorithm is UNKNOWN or algorithm in self.algorithms
        )


@dataclass(frozen=True)
class Table:
    """All rules in the order the engine applies them, lists of architectures, first releases."""

    rules: tuple[Rule, ...]
    lists: Mapping[str, tuple[str, ...]]
    algorithms: Mapping[str, Release]


@cache
def table() -> Table:
    """The table that ships with the package."""
    data = json.loads(Path(__file__).with_name("rules.json").read_text(encoding="utf-8"))
    rules = tuple(
        Rule(
            **{
                **row,
                "algorithms": tuple(row["algorithms"]),
                "since": Release.parse(row["since"]),
                "until": Release.parse(row["until"]) if row["until"] else None,
            }
        )
        for row in data["rule"]
    )
    return Table(
        rules=rules,
        lists={name: tuple(values) for name, values in data["lists"].items()},
        algorithms={name: Release.parse(text) for name, text in data["algorithms"].items()},
    )


@cache
def printed() -> tuple[tuple[re.Pattern[str], tuple[Rule, ...]], ...]:
    """Every line the rules print, with the rules that print it (several may share one)."""
    by_log: dict[str, list[Rule]] = {}
    for rule in table().rules:
        if rule.log and not rule.elsewhere:
            by_log.setdefault(rule.log, []).append(rule)
    return tuple((regex(log), tuple(rules)) for log, rules in by_log.items())


def printing(message: str) -> tuple[Rule, ...]:
    """The rules that print `message`, none for a line no rule is known to print."""
    return _printing(message[:2_000]) if any(sign in message for sign in _SIGNS) else ()


# One of these stands in every line that a rule prints; most lines are settled by looking for them.
_SIGNS = (
    *("pec", "chunk", "NoneType", "AssertionError", "Pipeline", "LoRA", "ngram", "EAGLE3"),
    *("DFLASH", "DSpark", "trtllm", "MTP"),
)


@lru_cache(maxsize=1024)
def _printing(message: str) -> tuple[Rule, ...]:
    return next((rules for pattern, rules in printed() if pattern.search(message)), ())


Function = Callable[..., Any]
_Names = Mapping[str, Any]


@cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression.strip(), mode="eval").body


def evaluate(expression: str, names: _Names, functions: Mapping[str, Function]) -> Any:
    """The value of an expression of the table: constants, names, and/or/not, comparisons, + and
    calls.

    Unknown operands make the result unknown unless it is settled without them. Raises ValueError on
    anything else: the table is at fault then.
    """
    return _value(_parsed(expression), names, functions)


def _value(node: ast.expr, names: _Names, functions: Mapping[str, Function]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.List(elts=items):
            return [_value(item, names, functions) for item in items]
        case ast.BoolOp(op=op, values=values):
            return _all(values, names, functions, isinstance(op, ast.And))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _value(operand, names, functions)
            return UNKNOWN if inner is UNKNOWN else not inner
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            a, b = _value(left, names, functions), _value(right, names, functions)
            return UNKNOWN if not (_whole(a) and _whole(b)) else a + b
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compare(op, _value(left, names, functions), _value(right, names, functions))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            decided = _value(test, names, functions)
            if decided is UNKNOWN:
                return UNKNOWN
            return _value(body if decided else orelse, names, functions)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return functions[name](*(_value(arg, names, functions) for arg in args))
    raise ValueError(f"the rule table uses {ast.unparse(node)!r}, which its language does not have")


def _all(
    nodes: Sequence[ast.expr], names: _Names, functions: Mapping[str, Function], conjunction: bool
) -> Any:
    unknown = False
    for node in nodes:
        value = _value(node, names, functions)
        if value is UNKNOWN:
            unknown = True
        elif bool(value) != conjunction:
            return not conjunction
    return UNKNOWN if unknown else conjunction


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _compare(op: ast.cmpop, left: Any, right: Any) -> Any:
    if isinstance(op, ast.In | ast.NotIn):
        if left is UNKNOWN:
            return UNKNOWN
        inside = any(item is not UNKNOWN and item == left for item in right)
        if not inside and any(item is UNKNOWN for item in right):
            return UNKNOWN
        return inside == isinstance(op, ast.In)
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if isinstance(op, ast.Is):
        return left is right
    if isinstance(op, ast.IsNot):
        return left is not right
    if isinstance(op, ast.Eq):
        return left == right
    if isinstance(op, ast.NotEq):
        return left != right
    # An absent value is neither larger nor smaller; the engine's own failure on it is a rule.
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    return numbers and (left > right if isinstance(op, ast.Gt) else left < right)
