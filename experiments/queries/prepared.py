"""Questions that programs ask many times a minute: the ORM writes their SQL once, then only values
change. Not for a query whose shape depends on what is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, Generic, TypeVar

from django.db import connection, models
from django.db.models.expressions import Expression
from django.db.models.query import get_related_populators

Row = TypeVar("Row", bound=models.Model)
Value = str | int | datetime


class Slot(Expression):
    """Stands in a query for its n-th value: a text, a whole number or a time, as the column has."""

    def __init__(self, place: int) -> None:
        super().__init__(output_field=models.Field())
        self.place = place

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]


class Prepared(Generic[Row]):
    """`make` gets a slot for each value and gives the queryset, with the relations, columns and
    order that are wanted. The SQL depends on how many values there are and on nothing else of them,
    so that a list of keys must be short.

    To write the SQL of such a question and to work out how its columns are read takes the ORM three
    times as long as everything else about it.
    """

    def __init__(self, make: Callable[..., models.QuerySet[Row]]) -> None:
        self._make = make
        # How columns are read belongs to a connection, and each thread has its own.
        self._local = threading.local()

    def get(self, *values: Value) -> Row:
        """The only row for these values. Raises the model's DoesNotExist."""
        written = self._written(len(values))
        for row in written.rows(values):
            return row
        raise written.model.DoesNotExist(f"no {written.model.__name__} for {values!r:.100}")

    def all(self, *values: Value) -> list[Row]:
        """The rows for these values."""
        return self._written(len(values)).rows(values)

    def _written(self, count: int) -> _Written[Row]:
        known: dict[str, _Written[Row]] = self._local.__dict__
        name = f"of_{count}"
        if name not in known:
            known[name] = _Written(self._make(*map(Slot, range(count))))
        return known[name]


class _Written(Generic[Row]):
    """The SQL and what makes a row of the model from a row of the answer, as ModelIterable does."""

    def __init__(self, rows: models.QuerySet[Row]) -> None:
        compiler: Any = rows.query.get_compiler(connection=connection)
        self.sql, self.params = compiler.as_sql()
        columns, info = compiler.select, compiler.klass_info
        self.converters = [
            (place, _as_one(converters, column))
            for place, (converters, column) in compiler.get_converters(
                [column[0] for column in columns]
            ).items()
        ]
        self.model: Any = info["model"]
        own = info["select_fields"]
        self.own = slice(own[0], own[-1] + 1)
        self.names = [column[0].target.attname for column in columns[self.own]]
        # The stubs are of a later release, where it takes one more.
        self.related = get_related_populators(info, columns, connection.alias)  # type: ignore[call-arg]

    def rows(self, values: tuple[Value, ...]) -> list[Row]:
        params = [_sent(values[p.place]) if isinstance(p, Slot) else p for p in self.params]
        with connection.cursor() as cursor:
            cursor.execute(self.sql, params)
            return [self._row(list(found)) for found in cursor.fetchall()]

    def _row(self, row: list[Any]) -> Row:
        for place, convert in self.converters:
            if row[place] is not None:  # no column of the record reads NULL as something else
                row[place] = convert(row[place])
        made: Row = self.model.from_db(connection.alias, self.names, row[self.own])
        for relation in self.related:
            relation.populate(row, made)
        return made


def _sent(value: Value) -> Any:
    """A value as the database takes it."""
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return value


def _as_one(converters: list[Callable[..., Any]], column: Any) -> Callable[[Any], Any]:
    """What a column's converters do with a value, one after the other."""
    field = column.target
    if isinstance(field, models.JSONField) and field.decoder is None:
        return _from_json
    if isinstance(field, models.BooleanField):
        return bool

    def convert(value: Any) -> Any:
        for one in converters:
            value = one(value, column, connection)
        return value

    return convert


def _from_json(text: str) -> Any:
    """As JSONField reads it; short texts, numbers and truth values, of which runs have the same few
    as arguments, are read once."""
    try:
        return json.loads(text) if text[:1] in "[{" or len(text) > _SHORT else _single(text)
    except json.JSONDecodeError:
        return text


_SHORT = 100
_single = lru_cache(maxsize=4096)(json.loads)
