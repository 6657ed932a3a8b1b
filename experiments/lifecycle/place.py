"""Numbers and places: which number a new row gets, and where on the timeline it stands."""

from __future__ import annotations

from django.db import connection
from django.db.models import Max

from experiments.models import Event, Hypothesis, Investigation, Run

# Below this distance two places are too close to put a third between them safely.
_CLOSEST = 1e-6


def lock(investigation: Investigation) -> None:
    """Hold the investigation's row until the transaction ends, so that numbers are given once.

    SQLite needs no row lock: its transactions begin with the write lock (settings).
    """
    Investigation.objects.select_for_update().values_list("pk").get(pk=investigation.pk)


def next_number(model: type[Run] | type[Hypothesis], investigation: Investigation) -> int:
    """R0, R1 ... and H1, H2 ... within the investigation; a number is never given twice."""
    last = model.objects.filter(investigation=investigation).aggregate(last=Max("number"))["last"]
    first = 0 if model is Run else 1
    return first if last is None else int(last) + 1


def _places(investigation: Investigation) -> list[float]:
    found: list[float] = []
    for model in (Run, Hypothesis, Event):
        rows = model.objects.filter(investigation=investigation)
        found.extend(rows.values_list("position", flat=True))
    return sorted(found)


# One statement, since every run that a program opens asks for it.
_LAST = " UNION ALL ".join(
    f"SELECT MAX(position), {number} FROM {model._meta.db_table} WHERE investigation_id = %s"  # noqa: S608
    for model, number in ((Run, "MAX(number)"), (Hypothesis, "NULL"), (Event, "NULL"))
)


def next_run(investigation: Investigation) -> tuple[int, float]:
    """The number of the next run and the place behind the last row; asks for no row, since there
    may be ten thousand."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST, [investigation.pk] * 3)
        rows = cursor.fetchall()
    numbers = [number for _, number in rows if number is not None]
    ends = [end for end, _ in rows if end is not None]
    return max(numbers, default=-1) + 1, max(ends, default=0.0) + 1.0


def place(investigation: Investigation, after: float | None = None) -> float:
    """A free place at the end of the timeline, or right after the place `after`."""
    if after is None:
        return next_run(investigation)[1]
    taken = _places(investigation)
    if not taken:
        return 1.0
    later = [p for p in taken if p > after]
    if not later:
        return max(after, taken[-1]) + 1.0
    if later[0] - after < _CLOSEST:
        _spread(investigation)
        rank = sum(1 for p in taken if p <= after)
        return rank + 0.5
    return (after + later[0]) / 2


def _spread(investigation: Investigation) -> None:
    """Give every row of the timeline a whole-numbered place, in the order it has."""
    rows: list[Run | Hypothesis | Event] = [
        *Run.objects.filter(investigation=investigation),
        *Hypothesis.objects.filter(investigation=investigation),
        *Event.objects.filter(investigation=investigation),
    ]
    rows.sort(key=lambda row: row.position)
    for place_, row in enumerate(rows, start=1):
        type(row).objects.filter(pk=row.pk).update(position=float(place_))
