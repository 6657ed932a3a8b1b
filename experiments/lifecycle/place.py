"""Numbers and places: which number a new row gets, and where on the timeline it stands."""

from __future__ import annotations

from django.db import connection
from django.db.models import Max, Model

from experiments.models import Event, Hypothesis, Investigation, Run

# Below this distance two places are too close to put a third between them safely.
_CLOSEST = 1e-6


def lock(investigation: Investigation) -> None:
    """Hold the investigation's row until the transaction ends, so that numbers are given once.

    SQLite needs no row lock and is asked nothing: its transactions begin with the write lock
    (settings), and investigations are never deleted.
    """
    if connection.features.has_select_for_update:
        Investigation.objects.select_for_update().values_list("pk").get(pk=investigation.pk)


def next_number(investigation: Investigation) -> int:
    """Of hypotheses: H1, H2 ... within the investigation; a number is never given twice."""
    rows = Hypothesis.objects.filter(investigation=investigation)
    last = rows.aggregate(last=Max("number"))["last"]
    return 1 if last is None else int(last) + 1


def _places(investigation: Investigation) -> list[float]:
    found: list[float] = []
    for model in (Run, Hypothesis, Event):
        rows = model.objects.filter(investigation=investigation)
        found.extend(rows.values_list("position", flat=True))
    return sorted(found)


def _maximum(model: type[Model], column: str) -> str:
    return f"(SELECT MAX({column}) FROM {model._meta.db_table} WHERE investigation_id = %s)"  # noqa: S608


# One statement, since every run that a program opens asks for it; each part is the end of an index,
# since there may be ten thousand runs.
_LAST = "SELECT " + ", ".join(
    [_maximum(Run, "number"), *(_maximum(m, "position") for m in (Run, Hypothesis, Event))]
)


def _last(investigation: Investigation) -> tuple[int, float]:
    """The last run's number, -1 where there is none, and the last place, 0 where there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST, [investigation.pk] * 4)
        number, *ends = cursor.fetchone()
    return -1 if number is None else number, max(end or 0.0 for end in ends)


def next_run(investigation: Investigation, after: float | None = None) -> tuple[int, float]:
    """The number of the next run, R0, R1 ..., never given twice, and its place."""
    number, end = _last(investigation)
    return number + 1, end + 1.0 if after is None else place(investigation, after)


def place(investigation: Investigation, after: float | None = None) -> float:
    """A free place at the end of the timeline, or right after the place `after`."""
    if after is None:
        return _last(investigation)[1] + 1.0
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
