"""From a query to rows: over all kinds of objects for the search page, over one for the API's
`filter`. The language itself is parsed in `language`; which fields there are stands here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from typing import Any

from django.db.models import Model, Q, QuerySet
from django.utils.dateparse import parse_date, parse_datetime

from experiments.models import (
    ConfigEntry,
    Event,
    Evidence,
    Finding,
    Hypothesis,
    Investigation,
    MetricSummary,
    Run,
)
from experiments.queries.json_values import JsonNumber, JsonText
from experiments.queries.language import (
    And,
    BadQuery,
    Node,
    Not,
    Operator,
    Term,
    Value,
    Words,
    parse,
)

__all__ = ["KINDS", "BadQuery", "Found", "Kind", "narrowed", "search", "unknown_field"]

_SQL = {"=": "", "<": "__lt", "<=": "__lte", ">": "__gt", ">=": "__gte"}

# A condition on rows for one term.
Condition = Callable[[Term], Q]


@dataclass(frozen=True)
class Kind:
    """One kind of object: its table, its fields, and the columns in which free text is looked for.

    prefixes: fields of a family, as metrics.NAME; orders: what rows can be ordered by; left:
    wide columns that a list does not show.
    """

    name: str
    model: type[Model]
    words: tuple[str, ...]
    fields: Mapping[str, Condition]
    related: tuple[str, ...] = ()
    prefixes: Mapping[str, Callable[[Term, str], Q]] = field(default_factory=dict)
    orders: Mapping[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()

    @property
    def rows(self) -> QuerySet[Any]:
        return self.model._default_manager.select_related(*self.related).defer(*self.left)


# ---- conditions by the type of a column ----------------------------------------------------------


def _text(column: str) -> Condition:
    """Compared without regard to case; ~ finds a part."""

    def condition(term: Term) -> Q:
        if term.operator in ("known", "unknown"):
            empty = Q(**{column: ""}) | Q(**{f"{column}__isnull": True})
            return ~empty if term.operator == "known" else empty
        texts = [_as_text(value) for value in term.values]
        if term.operator in ("~", "!~"):
            found = Q(**{f"{column}__icontains": texts[0]})
            return ~found if term.operator == "!~" else found
        if term.operator in ("in", "=", "!="):
            equal = _any(Q(**{f"{column}__iexact": text}) for text in texts)
            return ~equal if term.operator == "!=" else equal
        if term.operator == "between":
            return Q(**{f"{column}__gte": texts[0], f"{column}__lte": texts[1]})
        return Q(**{f"{column}{_SQL[term.operator]}": texts[0]})

    return condition


def _as_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _number(column: str) -> Condition:
    def condition(term: Term) -> Q:
        if term.operator in ("known", "unknown"):
            return Q(**{f"{column}__isnull": term.operator == "unknown"})
        return _numbers(column, term)

    return condition


def _numbers(column: str, term: Term) -> Q:
    values = [_as_number(term, value) for value in term.values]
    if term.operator in ("in", "=", "!="):
        equal = Q(**{f"{column}__in": values})
        return ~equal if term.operator == "!=" else equal
    if term.operator == "between":
        return Q(**{f"{column}__gte": values[0], f"{column}__lte": values[1]})
    if term.operator in ("~", "!~"):
        raise BadQuery(f"{term.field} is a number; ~ looks for text", term.place)
    return Q(**{f"{column}{_SQL[term.operator]}": values[0]})


def _as_number(term: Term, value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadQuery(f"{term.field} is a number, {value!r} is none", term.place)
    return value


def _labelled(letter: str, column: str) -> Condition:
    """A number that is written with its letter, R3 or H2, or without."""

    def condition(term: Term) -> Q:
        values: list[Value] = []
        for value in term.values:
            found = re.fullmatch(rf"(?i){letter}?(\d{{1,9}})", _as_text(value))
            if found is None:
                raise BadQuery(f"{term.field} is written {letter}1, not {value!r}", term.place)
            values.append(int(found[1]))
        return _number(column)(Term(term.field, term.operator, tuple(values), term.place))

    return condition


def _flag(column: str) -> Condition:
    def condition(term: Term) -> Q:
        value = term.values[0] if term.values else None
        if term.operator not in ("=", "!=") or not isinstance(value, bool):
            raise BadQuery(f"{term.field} is true or false", term.place)
        return Q(**{column: value == (term.operator == "=")})

    return condition


def _moment(column: str) -> Condition:
    """A date or a date with a time, in UTC unless it says otherwise; = means on that day."""

    def condition(term: Term) -> Q:
        if term.operator in ("known", "unknown"):
            return Q(**{f"{column}__isnull": term.operator == "unknown"})
        ends = [_span(term, value) for value in term.values]
        first, last = ends[0]
        if term.operator in ("=", "!=", "in"):
            held = _any(Q(**{f"{column}__gte": a, f"{column}__lte": b}) for a, b in ends)
            return ~held if term.operator == "!=" else held
        if term.operator == "between":
            return Q(**{f"{column}__gte": first, f"{column}__lte": ends[1][1]})
        if term.operator in ("~", "!~"):
            raise BadQuery(f"{term.field} is a time; ~ looks for text", term.place)
        edge = last if term.operator in (">", "<=") else first
        return Q(**{f"{column}{_SQL[term.operator]}": edge})

    return condition


def _span(term: Term, value: Value) -> tuple[datetime, datetime]:
    """First and last moment of a date; a moment twice."""
    text = _as_text(value)
    try:
        day = parse_date(text)
        if day is not None:
            return datetime.combine(day, time.min, UTC), datetime.combine(day, time.max, UTC)
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise BadQuery(
            f'{term.field} is a time like 2026-11-01 or "2026-11-01T10:00:00Z", not {text!r:.60}',
            term.place,
        )
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment, moment


def _any(conditions: Iterable[Q]) -> Q:
    whole = Q(pk__in=[])
    for condition in conditions:
        whole |= condition
    return whole


# ---- families of fields --------------------------------------------------------------------------


def _metric(term: Term, name: str) -> Q:
    """Runs by one of their metrics; != and NOT also hold for a run that lacks it."""
    rows = MetricSummary.objects.filter(name=name)
    if term.operator in ("known", "unknown"):
        has = Q(pk__in=rows.values("run_id"))
        return has if term.operator == "known" else ~has
    if term.operator == "!=":
        return ~_metric(Term(term.field, "in", term.values, term.place), name)
    return Q(pk__in=rows.filter(_numbers("value", term)).values("run_id"))


def _parameter(term: Term, name: str) -> Q:
    """Runs by one of their arguments: the value in force, else the one that was asked for."""
    rows = ConfigEntry.objects.filter(key=name)
    if term.operator in ("known", "unknown"):
        has = Q(pk__in=rows.values("run_id"))
        return has if term.operator == "known" else ~has
    if term.operator in ("!=", "!~"):
        opposite: Operator = "in" if term.operator == "!=" else "~"
        return ~_parameter(Term(term.field, opposite, term.values, term.place), name)
    rows = rows.annotate(
        now_number=JsonNumber("effective"),
        asked_number=JsonNumber("requested"),
        now_text=JsonText("effective"),
        asked_text=JsonText("requested"),
    )
    now, asked = (_json_value(column, term) for column in ("now", "asked"))
    held = (Q(effective_known=True) & now) | Q(effective_known=False, was_requested=True) & asked
    return Q(pk__in=rows.filter(held).values("run_id"))


def _json_value(column: str, term: Term) -> Q:
    numbers = [v for v in term.values if isinstance(v, int | float) and not isinstance(v, bool)]
    if term.operator in ("in", "="):
        texts = _any(Q(**{f"{column}_text__iexact": _as_text(value)}) for value in term.values)
        return texts | Q(**{f"{column}_number__in": numbers})
    if term.operator == "~":
        return Q(**{f"{column}_text__icontains": _as_text(term.values[0])})
    if len(numbers) == len(term.values):
        return _numbers(f"{column}_number", term)
    return _text(f"{column}_text")(term)


def _shown_finding(term: Term) -> Q:
    """Runs that opened, last showed, or fixed a finding of this code."""
    matching = _text("code")(
        Term(term.field, "in" if term.operator == "!=" else term.operator, term.values, term.place)
    )
    events = Finding.objects.filter(matching, events__run__isnull=False)
    held = Q(pk__in=events.values("events__run_id"))
    return ~held if term.operator == "!=" else held


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "investigation",
            Investigation,
            ("title", "question", "context", "slug"),
            {
                "title": _text("title"),
                "question": _text("question"),
                "slug": _text("slug"),
                "state": _text("state"),
                "goal_metric": _text("goal_metric"),
                "by": _text("created_by__username"),
                "created": _moment("created_at"),
                "updated": _moment("updated_at"),
                "closed": _moment("closed_at"),
            },
            related=("baseline", "created_by"),
            orders={"created": "pk", "updated": "updated_at", "title": "title"},
        ),
        Kind(
            "run",
            Run,
            ("title", "note", "host", "reason"),
            {
                "title": _text("title"),
                "note": _text("note"),
                "state": _text("state"),
                "engine": _text("engine"),
                "release": _text("engine_release"),
                "host": _text("host"),
                "worker": _text("worker"),
                "reason": _text("reason"),
                "investigation": _text("investigation__slug"),
                "label": _labelled("R", "number"),
                "hypothesis": _labelled("H", "hypothesis__number"),
                "baseline": _labelled("R", "baseline__number"),
                "recorded": _flag("recorded"),
                "by_script": _flag("by_script"),
                "finding": _shown_finding,
                "created": _moment("created_at"),
                "ended": _moment("ended_at"),
            },
            related=("investigation", "hypothesis"),
            prefixes={"metrics": _metric, "params": _parameter},
            orders={"created": "pk", "label": "number", "title": "title"},
            left=(
                *("plan", "server_info", "argv", "env", "versions", "shown", "untried"),
                *("preflight", "provenance", "investigation__shown", "investigation__notes"),
                "investigation__context",
            ),
        ),
        Kind(
            "hypothesis",
            Hypothesis,
            ("claim", "mechanism"),
            {
                "claim": _text("claim"),
                "mechanism": _text("mechanism"),
                "by": _text("author"),
                "label": _labelled("H", "number"),
                "investigation": _text("investigation__slug"),
                "created": _moment("created_at"),
            },
            related=("investigation",),
            orders={"created": "pk", "label": "number"},
        ),
        Kind(
            "finding",
            Finding,
            ("code", "statement", "fix"),
            {
                "code": _text("code"),
                "severity": _text("severity"),
                "confidence": _text("confidence"),
                "state": _text("state"),
                "statement": _text("statement"),
                "investigation": _text("investigation__slug"),
                "opened_in": _labelled("R", "opened_in__number"),
                "fixed_in": _labelled("R", "fixed_in__number"),
                "created": _moment("created_at"),
                "updated": _moment("updated_at"),
            },
            related=("investigation", "opened_in", "seen_in", "fixed_in"),
            orders={"created": "pk", "updated": "updated_at", "code": "code"},
        ),
        Kind(
            "event",
            Event,
            ("title", "text"),
            {
                "title": _text("title"),
                "text": _text("text"),
                "kind": _text("kind"),
                "by": _text("author"),
                "investigation": _text("investigation__slug"),
                "created": _moment("created_at"),
            },
            related=("investigation",),
            orders={"created": "pk"},
        ),
        Kind(
            "evidence",
            Evidence,
            ("name", "kind"),
            {
                "name": _text("name"),
                "kind": _text("kind"),
                "sha256": _text("blob_id"),
                "size": _number("blob__size"),
                "by": _text("added_by"),
                "investigation": _text("investigation__slug"),
                "run": _labelled("R", "run__number"),
                "added": _moment("added_at"),
            },
            related=("investigation", "run", "blob"),
            orders={"created": "pk", "name": "name"},
        ),
    )
}


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
        return _any(Q(**{f"{column}__icontains": node.text}) for column in kind.words)
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
