"""Findings: over all investigations, of one, and what a person decides about them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from experiments import lifecycle
from experiments.api import find, schema
from experiments.api.endpoint import Endpoint
from experiments.api.investigations import Reason
from experiments.api.paging import piece
from experiments.api.shapes import Shape, Text, page_of
from experiments.models import Finding, FindingEvent
from experiments.queries.search import KINDS, narrowed

TAG = ["findings"]
_CITED = {
    "type": "object",
    "properties": {
        "source": {"type": "string"},
        "line": {"type": ["integer", "null"]},
        "text": {"type": "string"},
    },
}


class FindingShape(serializers.Serializer):
    """A named fault with its evidence and its life; codes are explained in docs/findings.md."""

    investigation = serializers.CharField(source="investigation.slug")
    code = serializers.CharField()
    severity = serializers.ChoiceField(choices=Finding.Severity.choices)
    confidence = serializers.ChoiceField(choices=Finding.Confidence.choices)
    state = serializers.ChoiceField(choices=Finding.State.choices)
    statement = serializers.CharField()
    fix = serializers.CharField(allow_blank=True)
    settled_by = serializers.CharField(allow_blank=True)
    evidence = serializers.SerializerMethodField()
    opened_in = serializers.CharField(source="opened_in.label", default=None, allow_null=True)
    seen_in = serializers.CharField(source="seen_in.label", default=None, allow_null=True)
    fixed_in = serializers.CharField(source="fixed_in.label", default=None, allow_null=True)
    set_aside_by = serializers.CharField(allow_blank=True)
    set_aside_reason = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    @extend_schema_field({"type": "array", "items": _CITED})
    def get_evidence(self, row: Finding) -> list[Any]:
        return list(row.evidence)


class TurnShape(serializers.Serializer):
    """One turn in a finding's life."""

    kind = serializers.ChoiceField(choices=FindingEvent.Kind.choices)
    run = serializers.CharField(source="run.label", default=None, allow_null=True)
    statement = serializers.CharField(allow_blank=True)
    by = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField()


class FindingFull(serializers.Serializer):
    finding = FindingShape()
    turns = TurnShape(many=True)


class Why(Shape):
    reason = Text(max_length=2000, required=False, allow_blank=True)


FindingPiece = page_of(FindingShape, "FindingPage")


def _full(row: Finding) -> dict[str, Any]:
    turns = FindingEvent.objects.filter(finding=row).select_related("run")
    return {"finding": FindingShape(row).data, "turns": TurnShape(turns, many=True).data}


def _listed(request: Any, rows: Any) -> Response:
    found = piece(KINDS["finding"], rows, request.GET)
    return Response({"items": FindingShape(found.rows, many=True).data, "next": found.next})


class AllFindings(Endpoint):
    @extend_schema(
        operation_id="listAllFindings", parameters=schema.LIST, responses=FindingPiece, tags=TAG
    )
    def get(self, request: Any) -> Response:
        """Findings of all investigations."""
        return _listed(request, narrowed(KINDS["finding"], request.GET.get("filter", "")))


class Findings(Endpoint):
    @extend_schema(
        operation_id="listFindings", parameters=schema.LIST, responses=FindingPiece, tags=TAG
    )
    def get(self, request: Any, slug: str) -> Response:
        """The findings of an investigation."""
        rows = narrowed(KINDS["finding"], request.GET.get("filter", ""))
        return _listed(request, rows.filter(investigation=find.investigation(slug)))


class OneFinding(Endpoint):
    @extend_schema(operation_id="readFinding", responses=FindingFull, tags=TAG)
    def get(self, request: Any, slug: str, code: str) -> Response:
        """One finding with the turns of its life."""
        return self.tagged(_full(find.finding(slug, code)))


class SetAside(Endpoint):
    repeatable = False

    @extend_schema(operation_id="setFindingAside", request=Reason, responses=FindingFull, tags=TAG)
    def post(self, request: Any, slug: str, code: str) -> Response:
        """Take an open finding out of the way, in your name and with a reason."""
        reason = find.checked(Reason, request.data)["reason"]
        row = find.finding(slug, code)
        lifecycle.set_finding_aside(finding=row, by=self.by, reason=reason)
        return self.tagged(_full(find.finding(slug, code)))


class ReopenFinding(Endpoint):
    repeatable = False

    @extend_schema(operation_id="reopenFinding", request=Why, responses=FindingFull, tags=TAG)
    def post(self, request: Any, slug: str, code: str) -> Response:
        """Bring back a finding that was set aside or called fixed."""
        reason = find.checked(Why, request.data).get("reason", "")
        lifecycle.reopen_finding(finding=find.finding(slug, code), by=self.by, reason=reason)
        return self.tagged(_full(find.finding(slug, code)))
