"""Many new rows at once: they are what the ORM itself would have saved."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, models

from experiments import bulk
from experiments.models import ConfigChange, ConfigEntry, DecodeSample, PointChunk, Repeat, Run

pytestmark = pytest.mark.django_db


def saved(model: type[models.Model]) -> list[dict[str, Any]]:
    rows = [dict(row) for row in model._default_manager.order_by("pk").values()]
    for row in rows:
        for name in ("id", "created_at"):
            row.pop(name, None)
        for name, value in row.items():
            row[name] = bytes(value) if isinstance(value, memoryview) else value
    return rows


def of(run: Run) -> list[list[models.Model]]:
    """Unsaved rows of every kind that is saved this way, with values of every kind."""
    values: list[Any] = [None, True, 1, 1.5, "text", "", ["a", None], {"b": {"c": 2}}, "é😀"]
    origin, kind = ConfigEntry.Origin.OVERRIDE, ConfigChange.Kind.PATCH
    return [
        [
            ConfigEntry(run=run, key=f"k{n}", requested=v, was_requested=True, origin=origin)
            for n, v in enumerate(values)
        ],
        [ConfigChange(run=run, key="k", kind=kind, before=v, after=None) for v in values],
        [DecodeSample(run=run, line=n, tok_s=1, rank="TP0", in_repeat=n > 1) for n in range(3)],
        [PointChunk(run=run, name="tok_s", count=1, data=bytes(range(256)))],
        [Repeat(run=run, index=0, tok_s=90.5, started_at=datetime(2026, 1, 2, 3, 4, 5, 6, UTC))],
    ]


def test_rows_are_kept_as_the_orm_keeps_them(baseline: Run) -> None:
    Repeat.objects.all().delete()
    for mine, its in zip(of(baseline), of(baseline), strict=True):
        model: Any = type(mine[0])
        model.objects.all().delete()
        model.objects.bulk_create(its)
        wanted = saved(model)
        model.objects.all().delete()
        bulk.insert(mine)
        assert saved(model) == wanted


def test_a_row_that_is_there_is_written_over_only_where_that_is_wanted(baseline: Run) -> None:
    old = ConfigEntry(run=baseline, key="a", requested=1, why="old")
    bulk.insert([old, ConfigEntry(run=baseline, key="b", requested=1, why="old")])
    bulk.insert(
        [
            ConfigEntry(run=baseline, key="b", requested={"n": 2}, why="new"),
            ConfigEntry(run=baseline, key="c", requested=3, why="new"),
        ],
        unique=("run", "key"),
        replacing=("requested",),
    )
    kept = {e.key: (e.requested, e.why) for e in ConfigEntry.objects.filter(run=baseline)}
    assert {k: kept[k] for k in "abc"} == {"a": (1, "old"), "b": ({"n": 2}, "old"), "c": (3, "new")}


def test_fields_of_rows_that_are_there_are_saved_alone(baseline: Run) -> None:
    bulk.insert([PointChunk(run=baseline, name=name, count=1, data=b"1") for name in "ab"])
    rows = list(PointChunk.objects.order_by("name"))
    for row in rows:
        row.data, row.count, row.name = b"\0\xff", 2, "not saved"
    bulk.update(rows, "data", "count")
    bulk.update([], "data")
    found = PointChunk.objects.order_by("pk")
    assert [(c.name, c.count, bytes(c.data)) for c in found] == [
        ("a", 2, b"\0\xff"),
        ("b", 2, b"\0\xff"),
    ]


def test_what_a_field_fills_in_itself_is_filled_in(baseline: Run) -> None:
    bulk.insert([Run(investigation=baseline.investigation, number=7, title="x", position=7)])
    assert Run.objects.get(number=7).created_at >= baseline.created_at


def test_none_is_kept_where_one_is_refused(baseline: Run) -> None:
    twice = [ConfigEntry(run=baseline, key=key) for key in ("a", "b", "a")]
    with pytest.raises(IntegrityError):
        bulk.insert(twice)


@pytest.mark.django_db(transaction=True)
def test_none_is_kept_outside_a_transaction_too(baseline: Run) -> None:
    before = ConfigEntry.objects.count()
    with pytest.raises(IntegrityError):
        bulk.insert([ConfigEntry(run=baseline, key=key) for key in ("a", "b", "a")])
    assert ConfigEntry.objects.count() == before


def test_nothing_is_saved_with_no_question(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        bulk.insert([])
