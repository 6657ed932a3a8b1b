"""SQL that takes a JSON column apart into a number or a text, so that it can be compared."""

from __future__ import annotations

from typing import Any

from django.db.models import CharField, FloatField, Func


class JsonNumber(Func):
    """The value of a JSON column where it is a number, else NULL."""

    output_field = FloatField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = (
            "CASE WHEN JSON_TYPE(%(expressions)s) IN ('integer', 'real')"
            " THEN CAST(%(expressions)s AS REAL) END"
        )
        return _twice(self.as_sql(compiler, connection, template=template, **extra))

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = (
            "CASE WHEN JSONB_TYPEOF(%(expressions)s) = 'number'"
            " THEN (%(expressions)s #>> '{}')::double precision END"
        )
        return _twice(self.as_sql(compiler, connection, template=template, **extra))


class JsonText(Func):
    """The value of a JSON column as text without quotes; numbers and true as JSON has them."""

    output_field = CharField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = (
            "CASE WHEN JSON_TYPE(%(expressions)s) = 'text'"
            " THEN JSON_EXTRACT(%(expressions)s, '$') ELSE %(expressions)s END"
        )
        return _times(3, self.as_sql(compiler, connection, template=template, **extra))

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, template="(%(expressions)s #>> '{}')", **extra)


def _twice(compiled: tuple[str, Any]) -> tuple[str, Any]:
    return _times(2, compiled)


def _times(count: int, compiled: tuple[str, Any]) -> tuple[str, Any]:
    """The parameters as often as the template names its expression."""
    sql, params = compiled
    return sql, tuple(params) * count
