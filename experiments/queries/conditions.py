"""Conditions on rows for one term of a query, by the type of the column it names; which columns
there are stands in `kinds`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, time

from django.db.models import Q
from django.utils.dateparse import parse_date, parse_datetime

from experiments.queries.language import BadQuery, Term, Value

_SQL = {"=": "", "<": "__lt", "<=": "__lte", ">": "__gt", ">=": "__gte"}

# A condition on rows for one term.
Condition = Callable[[Term], Q]


def text(column: str) -> Condition:
    """Compared without regard to case; ~ finds a part."""

    def condition(term: Term) -> Q:
        if term.operator in ("known", "unknown"):
            empty = Q(**{column: ""}) | Q(**{f"{column}__isnull": True})
            return ~empty if term.operator == "known" else empty
        texts = [as_text(value) for value in term.values]
        if term.operator in ("~", "!~"):
            found = Q(**{f"{column}__icontains": texts[0]})
            return ~found if term.operator == "!~" else found
        if term.operator in ("in", "=", "!="):
            equal = any_of(Q(**{f"{column}__iexact": one}) for one in texts)
            return ~equal if term.operator == "!=" else equal
        if term.operator == "between":
            return Q(**{f"{column}__gte": texts[0], f"{column}__lte": texts[1]})
        return Q(**{f"{column}{_SQL[term.operator]}": texts[0]})

    return condition


def as_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def number(column: str) -> Condition:
    def condition(term: Term) -> Q:
        if term.operator in ("known", "unknown"):
            return Q(**{f"{column}__isnull": term.operator == "unknown"})
        return numbers(column, term)

    return condition


def numbers(column: str, term: Term) -> Q:
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


def labelled(letter: str, column: str) -> Condition:
    """A number that is written with its letter, R3 or H2, or without."""

    def condition(term: Term) -> Q:
        values: list[Value] = []
        for value in term.values:
            found = re.fullmatch(rf"(?i){letter}?(\d{{1,9}})", as_text(value))
            if found is None:
                raise BadQuery(f"{term.field} is written {letter}1, not {value!r}", term.place)
            values.append(int(found[1]))
        return number(column)(Term(term.field, term.operator, tuple(values), term.place))

    return condition


def flag(column: str) -> Condition:
    def condition(term: Term) -> Q:
        value = term.values[0] if term.values else None
        if term.operator not in ("=", "!=") or not isinstance(value, bool):
            raise BadQuery(f"{term.field} is true or false", term.place)
        return Q(**{column: value == (term.operator == "=")})

    return condition


def moment(column: str) -> Condition:
    """A date or a date with a time, in UTC unless it says otherwise; = means on that day."""

    def condition(term: Term) -> Q:
        if term.operator in ("known", "unknown"):
            return Q(**{f"{column}__isnull": term.operator == "unknown"})
        ends = [_span(term, value) for value in term.values]
        first, last = ends[0]
        if term.operator in ("=", "!=", "in"):
            held = any_of(Q(**{f"{column}__gte": a, f"{column}__lte": b}) for a, b in ends)
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
    text = as_text(value)
    try:
        day = parse_date(text)
        if day is not None:
            return datetime.combine(day, time.min, UTC), datetime.combine(day, time.max, UTC)
        at = parse_datetime(text)
    except ValueError:
        at = None
    if at is None:
        raise BadQuery(
            f'{term.field} is a time like 2026-11-01 or "2026-11-01T10:00:00Z", not {text!r:.60}',
            term.place,
        )
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return at, at


def any_of(conditions: Iterable[Q]) -> Q:
    whole = Q(pk__in=[])
    for condition in conditions:
        whole |= condition
    return whole
