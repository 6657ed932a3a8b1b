"""From a query to rows: over all kinds of objects for the search page, over one for the API's
`filter`. The language itself is parsed in `language`; which fields there are stands in `kinds`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from experiments.queries.conditions import any_of
from experiments.queries.kinds import KINDS, Kind
from experiments.queries.language import And, BadQuery, Node, Not, Term, Words, parse

__all__ = ["KINDS", "BadQuery", "Found", "Kind", "narrowed", "search", "unknown_field"]


def unknown_field(kind: Kind, term: Term) -> BadQuery:
    known = [*kind.fields, *(f"{prefix}.NAME" for prefix in kind.prefixes)]
    return BadQuery(
        f"{term.field!r} is no field of {kind.name} rows; known: {', '.join(known)}", term.place
    )


def _of_term(kind: Kind, term: Term) -> Q:
    known = kind.fields.get(term.field)
    if known is not None:
        return known(term)
    family, _, name = term.field.partition(".")
    if family in kind.prefixes and name:
        return kind.prefixes[family](term, name)
    raise unknown_field(kind, term)


def _condition(kind: Kind, node: Node) -> Q:
    if isinstance(node, Term):
        return _of_term(kind, node)
    if isinstance(node, Words):
        return any_of(Q(**{f"{column}__icontains": node.text}) for column in kind.words)
    if isinstance(node, Not):
        return ~_condition(kind, node.part)
    parts = [_condition(kind, part) for part in node.parts]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part if isinstance(node, And) else whole | part
    return whole


def narrowed(kind: Kind, text: str) -> QuerySet[Any]:
    """The rows of one kind that a query leaves. Raises BadQuery with the place of the fault."""
    node = parse(text)
    return kind.rows if node is None else kind.rows.filter(_condition(kind, node))


@dataclass(frozen=True)
class Found:
    """Rows by kind, newest first; `more`: kinds of which there are more rows than `limit`."""

    query: str
    rows: Mapping[str, tuple[Any, ...]]
    more: frozenset[str]

    @property
    def total(self) -> int:
        return sum(len(rows) for rows in self.rows.values())


def search(text: str, *, kinds: Iterable[str] = KINDS, limit: int = 20) -> Found:
    """What matches in all kinds, one query per kind; a kind that lacks a field of the query has
    no match. Raises BadQuery where the text is no query or no kind knows a field."""
    node = parse(text)
    chosen = [KINDS[name] for name in kinds]
    rows: dict[str, tuple[Any, ...]] = {}
    more: set[str] = set()
    refusals: list[BadQuery] = []
    for kind in chosen if node is not None else ():
        try:
            condition = _condition(kind, node)  # type: ignore[arg-type]
        except BadQuery as no:
            refusals.append(no)
            continue
        found = list(kind.rows.filter(condition).order_by("-pk")[: limit + 1])
        rows[kind.name] = tuple(found[:limit])
        if len(found) > limit:
            more.add(kind.name)
    if refusals and len(refusals) == len(chosen):
        raise refusals[0]
    return Found(text, rows, frozenset(more))
