"""Questions that programs ask many times a minute: the ORM writes their SQL once, then only values
change. Not for a query whose shape depends on what is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from django.db import connection, models
from django.db.models.expressions import Expression
from django.db.models.query import get_related_populators

Row = TypeVar("Row", bound=models.Model)


class Slot(Expression):
    """Stands in a query for its n-th value: a text or a whole number, which goes to the database as
    it is given, so that its column must be of that type."""

    def __init__(self, place: int) -> None:
        super().__init__(output_field=models.Field())
        self.place = place

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]


class Prepared(Generic[Row]):
    """`make` gets a slot for each value and gives the queryset, with the relations, columns and
    order that are wanted.

    To write the SQL of such a question and to work out how its columns are read takes the ORM three
    times as long as everything else about it.
    """

    def __init__(self, make: Callable[..., models.QuerySet[Row]], values: int = 1) -> None:
        self._make, self._values = make, values
        # How columns are read belongs to a connection, and each thread has its own.
        self._written = threading.local()

    def get(self, *values: str | int) -> Row:
        """The only row for these values. Raises the model's DoesNotExist."""
        written = self._here()
        for row in written.rows(values):
            return row
        raise written.model.DoesNotExist(f"no {written.model.__name__} for {values!r:.100}")

    def all(self, *values: str | int) -> list[Row]:
        """The rows for these values."""
        return self._here().rows(values)

    def _here(self) -> _Written[Row]:
        written: _Written[Row] | None = getattr(self._written, "here", None)
        if written is None:
            query = self._make(*map(Slot, range(self._values)))
            written = self._written.here = _Written(query)
        return written


class _Written(Generic[Row]):
    """The SQL and what makes a row of the model from a row of the answer, as ModelIterable does."""

    def __init__(self, rows: models.QuerySet[Row]) -> None:
        compiler: Any = rows.query.get_compiler(connection=connection)
        self.sql, self.params = compiler.as_sql()
        columns, info = compiler.select, compiler.klass_info
        self.converters = list(compiler.get_converters([c[0] for c in columns]).items())
        self.model: Any = info["model"]
        own = info["select_fields"]
        self.own = slice(own[0], own[-1] + 1)
        self.names = [column[0].target.attname for column in columns[self.own]]
        # The stubs are of a later release, where it takes one more.
        self.related = get_related_populators(info, columns, connection.alias)  # type: ignore[call-arg]

    def rows(self, values: tuple[str | int, ...]) -> list[Row]:
        params = [values[p.place] if isinstance(p, Slot) else p for p in self.params]
        with connection.cursor() as cursor:
            cursor.execute(self.sql, params)
            return [self._row(list(found)) for found in cursor.fetchall()]

    def _row(self, row: list[Any]) -> Row:
        for place, (converters, column) in self.converters:
            for convert in converters:
                row[place] = convert(row[place], column, connection)
        made: Row = self.model.from_db(connection.alias, self.names, row[self.own])
        for relation in self.related:
            relation.populate(row, made)
        return made
