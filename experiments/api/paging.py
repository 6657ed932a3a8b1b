"""Lists in pieces: each answer has the cursor of the next piece, which later rows do not shift."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.dateparse import parse_datetime
from rest_framework import exceptions

from experiments.models import MetricSummary
from experiments.queries.search import Kind

PARAMETERS = frozenset({"cursor", "filter", "limit", "order"})
MOST = 1000
USUAL = 50
MOST_METRIC_NAME = 80


@dataclass(frozen=True)
class Piece:
    """Some rows of a list; next: the cursor of what follows, None at the end."""

    rows: Sequence[Any]
    next: str | None


def piece(kind: Kind, rows: QuerySet[Any], params: Any) -> Piece:
    """The piece of `rows` that `limit`, `order` and `cursor` of a request ask for. A parameter that
    is none of a list's is refused: whoever sends `state=done` means to filter."""
    if unknown := sorted(params.keys() - PARAMETERS):
        names = ", ".join(sorted(PARAMETERS))
        reason = f"is no parameter of a list; known: {names}. Fields are asked for in filter"
        raise exceptions.ValidationError({str(one)[:80]: [reason] for one in unknown})
    limit = _limit(params.get("limit"))
    order = params.get("order") or "-created"
    down, name = order.startswith("-"), order.removeprefix("-")
    family, _, metric = name.partition(".")
    if family == "metrics" and "metrics" in kind.prefixes and 0 < len(metric) <= MOST_METRIC_NAME:
        return _by_metric(rows, metric, order, down, limit, _cursor(params.get("cursor"), order))
    if name not in kind.orders:
        known = [*kind.orders, *(["metrics.NAME"] if "metrics" in kind.prefixes else [])]
        raise exceptions.ValidationError(
            {"order": [f"{order[:80]!r} is unknown; order by {', '.join(known)}, - for downwards"]}
        )
    column = kind.orders[name]
    after = _cursor(params.get("cursor"), order)
    if after is not None:
        rows = rows.filter(_beyond(column, down, _as_is(column, after[0]), after[1]))
    sign = "-" if down else ""
    found = list(rows.order_by(*dict.fromkeys((f"{sign}{column}", f"{sign}pk")))[: limit + 1])
    if len(found) <= limit:
        return Piece(found, None)
    last = found[limit - 1]
    return Piece(found[:limit], _packed(order, getattr(last, column), last.pk))


def _by_metric(
    rows: QuerySet[Any], metric: str, order: str, down: bool, limit: int, after: Any
) -> Piece:
    """By the value of a metric; rows that lack it come last, newest first."""
    found: list[Any] = []
    sign = "-" if down else ""
    if after is None or after[0] is not None:
        wanted = Q(name=metric)
        if after is not None:
            if not isinstance(after[0], int | float):
                raise _bad_cursor()
            wanted &= _beyond("value", down, after[0], after[1], "run_id")
        # Along the index of name and value, which has the order: no more is read than is shown.
        kept = Exists(rows.order_by().filter(pk=OuterRef("run_id")).values("pk"))
        having = MetricSummary.objects.filter(wanted, kept).order_by(
            f"{sign}value", f"{sign}run_id"
        )
        values = dict(having.values_list("run_id", "value")[: limit + 1])
        by_pk = rows.in_bulk(list(values))
        # One that was deleted between the two questions is left out.
        found = [by_pk[pk] for pk in values if pk in by_pk]
        for row in found:
            row._value = values[row.pk]
        if len(found) > limit:
            last = found[limit - 1]
            return Piece(found[:limit], _packed(order, last._value, last.pk))
    lacking = rows.exclude(metrics__name=metric)
    if after is not None and after[0] is None:
        lacking = lacking.filter(pk__lt=after[1])
    found += lacking.order_by("-pk")[: limit + 1 - len(found)]
    if len(found) <= limit:
        return Piece(found, None)
    last = found[limit - 1]
    return Piece(found[:limit], _packed(order, getattr(last, "_value", None), last.pk))


def _beyond(column: str, down: bool, value: Any, pk: int, key: str = "pk") -> Q:
    step = "lt" if down else "gt"
    return Q(**{f"{column}__{step}": value}) | Q(**{column: value, f"{key}__{step}": pk})


def _limit(text: str | None) -> int:
    if text is None or text == "":
        return USUAL
    if text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= MOST:
        return int(text)
    raise exceptions.ValidationError({"limit": [f"must be a number from 1 to {MOST}"]})


def _packed(order: str, value: Any, pk: int) -> str:
    said = value.isoformat() if isinstance(value, datetime) else value
    text = json.dumps([order, said, pk], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _cursor(text: str | None, order: str) -> tuple[Any, int] | None:
    if not text:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        made, value, pk = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise _bad_cursor() from None
    if (
        made != order
        or not isinstance(value, str | int | float | None)
        or isinstance(value, bool)
        or type(pk) is not int
        or not 0 <= pk < 1 << 63
    ):
        raise _bad_cursor()
    return value, pk


def _as_is(column: str, value: Any) -> Any:
    """A value of a cursor as the column has it."""
    if column.endswith("_at"):
        try:
            moment = parse_datetime(value) if isinstance(value, str) else None
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            raise _bad_cursor()
        return moment
    if column in ("pk", "number"):
        if type(value) is not int or not 0 <= value < 1 << 63:
            raise _bad_cursor()
    elif not isinstance(value, str):
        raise _bad_cursor()
    return value


def _bad_cursor() -> exceptions.ValidationError:
    return exceptions.ValidationError(
        {"cursor": ["is not one that this list gave for this order; begin without a cursor"]}
    )
