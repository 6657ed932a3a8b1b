"""Saves many rows of one kind, or the same few very often: the SQL is written once, by the fields'
own rules. New rows learn no keys; for that there is the ORM's bulk_create, which takes three to
five times as long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from django.db import connection, models, transaction

# What stands in a row as the database takes it. Other fields, as JSON and times, say it themselves.
_PLAIN = (
    models.BooleanField,
    models.CharField,
    models.FloatField,
    models.ForeignKey,
    models.IntegerField,
    models.TextField,
)


def insert(
    rows: Iterable[models.Model], *, unique: tuple[str, ...] = (), replacing: tuple[str, ...] = ()
) -> None:
    """Save unsaved rows of one model, all or none. They get no key and must not be saved again.

    Where there is a row with the same values of the fields `unique` already, its fields `replacing`
    are written over; without them IntegrityError is raised, as for whatever the database refuses.
    """
    unsaved = list(rows)
    if unsaved:
        _execute(_insertion(type(unsaved[0]), unique, replacing), unsaved)


def update(rows: Sequence[models.Model], *fields: str) -> None:
    """Save these fields of rows that are there, all or none."""
    if rows:
        _execute(_update(type(rows[0]), fields), rows)


@dataclass(frozen=True, slots=True)
class _Statement:
    """readers: for each mark of the SQL what reads it from a row."""

    sql: str
    readers: tuple[Callable[[Any], Any], ...]


def _execute(statement: _Statement, rows: Sequence[models.Model]) -> None:
    values = [[read(row) for read in statement.readers] for row in rows]
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.executemany(statement.sql, values)


@cache
def _insertion(
    model: type[models.Model], unique: tuple[str, ...], replacing: tuple[str, ...]
) -> _Statement:
    fields = [f for f in model._meta.local_concrete_fields if not f.primary_key]
    marks = ", ".join(["%s"] * len(fields))
    sql = f"INSERT INTO {_table(model)} ({', '.join(map(_column, fields))}) VALUES ({marks})"  # noqa: S608
    if replacing:
        key = ", ".join(_column(model._meta.get_field(name)) for name in unique)
        columns = [_column(model._meta.get_field(name)) for name in replacing]
        written = ", ".join(f"{column} = EXCLUDED.{column}" for column in columns)
        sql += f" ON CONFLICT ({key}) DO UPDATE SET {written}"
    return _Statement(sql, tuple(_reader(field, new=True) for field in fields))


@cache
def _update(model: type[models.Model], names: tuple[str, ...]) -> _Statement:
    fields = [model._meta.get_field(name) for name in names]
    written = ", ".join(f"{_column(field)} = %s" for field in fields)
    key = model._meta.pk
    sql = f"UPDATE {_table(model)} SET {written} WHERE {_column(key)} = %s"  # noqa: S608
    return _Statement(sql, (*(_reader(field, new=False) for field in fields), attrgetter("pk")))


def _table(model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _column(field: Any) -> str:
    return connection.ops.quote_name(field.column)


def _reader(field: Any, *, new: bool) -> Callable[[Any], Any]:
    if isinstance(field, _PLAIN):
        return attrgetter(field.attname)
    return lambda row: field.get_db_prep_save(field.pre_save(row, add=new), connection)
