"""Answers whose fields are read straight from the row: the same as the framework's own way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from rest_framework import serializers

from experiments import lifecycle
from experiments.api.run_shapes import RunShape
from experiments.api.shapes import Told
from experiments.models import Investigation, Run
from experiments.queries.run_items import run_items


@pytest.mark.django_db
def test_a_run_is_told_as_the_framework_would_tell_it(inv: Investigation, base: Run) -> None:
    hypothesis = lifecycle.add_hypothesis(investigation=inv, claim="c")
    full = lifecycle.add_run(
        investigation=inv,
        title="é😀",
        server_args=["--model-path", "m"],
        hypothesis=hypothesis,
        baseline=base,
        follows=base,
    )
    for moment in (datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), datetime(2026, 1, 2, tzinfo=UTC)):
        Run.objects.filter(pk=full.pk).update(claimed_at=moment, fraction=0.5)
        rows = Run.objects.select_related("investigation", "hypothesis").order_by("pk")
        for item in run_items(list(rows)):
            shape = RunShape()
            told = shape.to_representation(item)
            assert told == serializers.Serializer.to_representation(shape, item)
            assert list(told) == list(shape.fields)


def test_a_field_that_shows_something_else_than_the_row_has_is_refused() -> None:
    class Odd(Told):
        tags: Any = serializers.ListField()

    with pytest.raises(TypeError, match="tags: ListField"):
        Odd().to_representation(object())
