"""Events of a timeline: observations, source readings, fixes, beliefs and notes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from experiments import lifecycle
from experiments.api import find, schema
from experiments.api.endpoint import Endpoint
from experiments.api.paging import piece
from experiments.api.shapes import Label, Number, Shape, Text, page_of
from experiments.models import Event
from experiments.queries.search import KINDS, narrowed


class EventShape(serializers.Serializer):
    """An entry that is no run and no hypothesis; position: its place on the timeline."""

    id = serializers.IntegerField(source="pk")
    investigation = serializers.CharField(source="investigation.slug")
    kind = serializers.ChoiceField(choices=Event.Kind.choices)
    title = serializers.CharField()
    text = serializers.CharField(allow_blank=True, help_text="Markdown")
    position = serializers.FloatField()
    at = serializers.DateTimeField(allow_null=True)
    author = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class NewEvent(Shape):
    title = Text(max_length=200)
    kind = serializers.ChoiceField(choices=Event.Kind.choices, required=False)
    text = Text(max_length=20_000, required=False, allow_blank=True)
    after = Number(required=False, allow_null=True, help_text="a position to stand right after")
    at = serializers.DateTimeField(required=False, allow_null=True)
    run = Label("R", required=False, allow_null=True)
    hypothesis = Label("H", required=False, allow_null=True)


EventPiece = page_of(EventShape, "EventPage")


class Events(Endpoint):
    @extend_schema(
        operation_id="listEvents", parameters=schema.LIST, responses=EventPiece, tags=["events"]
    )
    def get(self, request: Any, slug: str) -> Response:
        """The events of an investigation."""
        rows = narrowed(KINDS["event"], request.GET.get("filter", ""))
        rows = rows.filter(investigation=find.investigation(slug))
        found = piece(KINDS["event"], rows, request.GET)
        return Response({"items": EventShape(found.rows, many=True).data, "next": found.next})

    @extend_schema(
        operation_id="addEvent", request=NewEvent, responses={201: EventShape}, tags=["events"]
    )
    def post(self, request: Any, slug: str) -> Response:
        """Put an event at the end of the timeline, or right after a place."""
        values = find.checked(NewEvent, request.data)
        row = find.investigation(slug)
        run = find.run_in(row, "run", values.pop("run", None))
        hypothesis = find.hypothesis_in(row, "hypothesis", values.pop("hypothesis", None))
        made = lifecycle.add_event(
            investigation=row, run=run, hypothesis=hypothesis, author=self.by, **values
        )
        return Response(EventShape(made).data, status=201)
