"""Investigations: /investigations and what is done with one of them."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from experiments import lifecycle, queries
from experiments.api import find, schema
from experiments.api.endpoint import Endpoint
from experiments.api.paging import piece
from experiments.api.shapes import (
    JsonObject,
    Label,
    Number,
    Shape,
    Text,
    metric_field,
    page_of,
)
from experiments.lifecycle.place import lock
from experiments.models import Investigation
from experiments.queries.goal import UNITS
from experiments.queries.search import KINDS, narrowed

LONGEST = 20_000


class GoalShape(serializers.Serializer):
    """What is to be reached: the metric of the best run against a factor of the baseline's
    (beat-baseline), or against a figure in the metric's own unit."""

    metric = serializers.CharField(source="goal_metric")
    kind = serializers.ChoiceField(source="goal_kind", choices=Investigation.Goal.choices)
    value = serializers.FloatField(source="goal_value")
    unit = serializers.SerializerMethodField()

    def get_unit(self, row: Investigation) -> str:
        return UNITS.get(row.goal_metric, "")


class InvestigationShape(serializers.Serializer):
    """An investigation: a question with a goal."""

    slug = serializers.CharField()
    title = serializers.CharField()
    question = serializers.CharField()
    context = serializers.CharField()
    state = serializers.ChoiceField(choices=Investigation.State.choices)
    goal = GoalShape(source="*")
    baseline = serializers.CharField(source="baseline.label", default=None, allow_null=True)
    exception_by = serializers.CharField()
    exception_reason = serializers.CharField()
    notes = JsonObject()
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)


class NewInvestigation(Shape):
    title = Text(max_length=200)
    question = Text(max_length=LONGEST)
    context = Text(max_length=LONGEST, required=False, allow_blank=True)
    goal_metric = metric_field(required=False)
    goal_kind = serializers.ChoiceField(choices=Investigation.Goal.choices, required=False)
    goal_value = Number(required=False, help_text="a factor of the baseline, or a figure")
    notes = JsonObject(required=False)


class InvestigationEdit(NewInvestigation):
    baseline = Label("R", required=False, allow_null=True)


class GoalStanding(serializers.Serializer):
    """How far the best run is: target, best_value and gap in the metric's unit; met is null while a
    side is not known. latest: the newest measured run with a draft where it is not the best, with
    its value and its ratio to the target."""

    sentence = serializers.CharField()
    met = serializers.BooleanField(allow_null=True)
    target = serializers.FloatField(allow_null=True)
    best = serializers.SerializerMethodField()
    best_value = serializers.FloatField(allow_null=True)
    ratio = serializers.FloatField(allow_null=True)
    gap = serializers.FloatField(allow_null=True)
    latest = serializers.SerializerMethodField()
    latest_value = serializers.FloatField(allow_null=True)
    latest_ratio = serializers.FloatField(allow_null=True)

    @extend_schema_field({"type": ["string", "null"]})
    def get_latest(self, goal: queries.Goal) -> str | None:
        return None if goal.latest is None else goal.latest.run.label

    @extend_schema_field({"type": ["string", "null"]})
    def get_best(self, goal: queries.Goal) -> str | None:
        return None if goal.best is None else goal.best.run.label


class Standing(serializers.Serializer):
    """Where an investigation stands. obstacles: what is left before it can be resolved."""

    investigation = serializers.CharField(source="investigation.slug")
    state = serializers.CharField(source="investigation.state")
    goal = GoalStanding()
    obstacles = serializers.ListField(child=serializers.CharField())
    runs = serializers.SerializerMethodField()
    open_findings = serializers.SerializerMethodField()

    def get_runs(self, page: queries.InvestigationPage) -> int:
        return len(page.dossier.runs)

    @extend_schema_field({"type": "array", "items": {"type": "string"}})
    def get_open_findings(self, page: queries.InvestigationPage) -> list[str]:
        return [facts.finding.code for facts in page.open_findings]


class Resolving(Shape):
    exception_reason = Text(
        max_length=LONGEST,
        required=False,
        allow_blank=True,
        help_text="signs the exception in your name where something is left",
    )


class Reason(Shape):
    reason = Text(max_length=LONGEST)


class Nothing(Shape):
    """An empty object."""


InvestigationPiece = page_of(InvestigationShape, "InvestigationPage")


class Investigations(Endpoint):
    @extend_schema(
        operation_id="listInvestigations",
        parameters=schema.LIST,
        responses=InvestigationPiece,
        tags=["investigations"],
    )
    def get(self, request: Any) -> Response:
        """All investigations, or those that a filter leaves."""
        kind = KINDS["investigation"]
        found = piece(kind, narrowed(kind, request.GET.get("filter", "")), request.GET)
        items = InvestigationShape(found.rows, many=True).data
        return Response({"items": items, "next": found.next})

    @extend_schema(
        operation_id="createInvestigation",
        request=NewInvestigation,
        responses={201: InvestigationShape},
        tags=["investigations"],
    )
    def post(self, request: Any) -> Response:
        """Open an investigation."""
        values = find.checked(NewInvestigation, request.data)
        made = lifecycle.create_investigation(**values, created_by=request.user)
        return self.tagged(InvestigationShape(made).data, status=201)


class OneInvestigation(Endpoint):
    @extend_schema(
        operation_id="readInvestigation", responses=InvestigationShape, tags=["investigations"]
    )
    def get(self, request: Any, slug: str) -> Response:
        """One investigation, with an ETag."""
        return self.tagged(InvestigationShape(find.investigation(slug)).data)

    @extend_schema(
        operation_id="editInvestigation",
        request=InvestigationEdit,
        responses=InvestigationShape,
        tags=["investigations"],
    )
    def patch(self, request: Any, slug: str) -> Response:
        """Change what is given; `baseline` names the run that the goal compares with."""
        values = find.checked(InvestigationEdit, request.data, partial=True)
        with transaction.atomic():
            row = find.investigation(slug)
            lock(row)
            row = find.investigation(slug)
            self.unchanged(InvestigationShape(row).data)
            if "baseline" in values:
                values["baseline"] = find.run_in(row, "baseline", values["baseline"])
            row = lifecycle.edit_investigation(row, **values)
        return self.tagged(InvestigationShape(row).data)


class StandingOf(Endpoint):
    @extend_schema(operation_id="readStanding", responses=Standing, tags=["investigations"])
    def get(self, request: Any, slug: str) -> Response:
        """How far the goal is, what is open, what is left before it can be resolved."""
        return self.tagged(Standing(queries.investigation_page(slug)).data)


class _Close(Endpoint):
    repeatable = False


class Resolve(_Close):
    @extend_schema(
        operation_id="resolveInvestigation",
        request=Resolving,
        responses=InvestigationShape,
        tags=["investigations"],
    )
    def post(self, request: Any, slug: str) -> Response:
        """Call it resolved: 409 with the obstacles unless none is left or you sign why not."""
        reason = find.checked(Resolving, request.data).get("exception_reason", "")
        row = lifecycle.resolve(
            investigation=find.investigation(slug),
            exception_by=self.by if reason else "",
            exception_reason=reason,
        )
        return self.tagged(InvestigationShape(row).data)


class Abandon(_Close):
    @extend_schema(
        operation_id="abandonInvestigation",
        request=Reason,
        responses=InvestigationShape,
        tags=["investigations"],
    )
    def post(self, request: Any, slug: str) -> Response:
        """Stop without an answer, in your name and with a reason."""
        reason = find.checked(Reason, request.data)["reason"]
        row = lifecycle.abandon(investigation=find.investigation(slug), by=self.by, reason=reason)
        return self.tagged(InvestigationShape(row).data)


class Reopen(_Close):
    @extend_schema(
        operation_id="reopenInvestigation",
        request=Nothing,
        responses=InvestigationShape,
        tags=["investigations"],
    )
    def post(self, request: Any, slug: str) -> Response:
        """Open a closed investigation again."""
        find.checked(Nothing, request.data)
        row = lifecycle.reopen(investigation=find.investigation(slug))
        return self.tagged(InvestigationShape(row).data)
