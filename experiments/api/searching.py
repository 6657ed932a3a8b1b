"""/search over everything."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from experiments.api.endpoint import Endpoint
from experiments.models import Event, Evidence, Finding, Hypothesis, Investigation, Run
from experiments.queries.search import KINDS, search

LONGEST_EXCERPT = 300


class HitShape(serializers.Serializer):
    """One match. name: its label, code, slug or id within the investigation."""

    kind = serializers.ChoiceField(choices=[(kind, kind) for kind in KINDS])
    investigation = serializers.CharField()
    name = serializers.CharField()
    title = serializers.CharField(allow_blank=True)
    excerpt = serializers.CharField(allow_blank=True)


class FoundShape(serializers.Serializer):
    """Matches of all kinds, newest first in each; more: kinds that have more than were shown."""

    items = HitShape(many=True)
    more = serializers.ListField(child=serializers.CharField())


def hit(kind: str, row: Any) -> dict[str, str]:
    """A row of any kind as one match."""
    if isinstance(row, Investigation):
        name, title, text = row.slug, row.title, row.question
        return _hit(kind, row.slug, name, title, text)
    slug = row.investigation.slug
    if isinstance(row, Run):
        return _hit(kind, slug, row.label, row.title, row.note)
    if isinstance(row, Hypothesis):
        return _hit(kind, slug, row.label, row.claim, row.mechanism)
    if isinstance(row, Finding):
        return _hit(kind, slug, row.code, f"{row.code} ({row.state})", row.statement)
    if isinstance(row, Evidence):
        return _hit(kind, slug, str(row.pk), row.name, row.kind)
    assert isinstance(row, Event)  # noqa: S101 (the last kind there is)
    return _hit(kind, slug, str(row.pk), row.title, row.text)


def _hit(kind: str, slug: str, name: str, title: str, text: str) -> dict[str, str]:
    return {
        "kind": kind,
        "investigation": slug,
        "name": name,
        "title": title,
        "excerpt": text[:LONGEST_EXCERPT],
    }


class Search(Endpoint):
    @extend_schema(
        operation_id="search",
        parameters=[
            OpenApiParameter("q", str, required=True, description="A query of docs/api.md."),
            OpenApiParameter("kind", str, enum=list(KINDS), description="Only this kind."),
            OpenApiParameter("limit", {"type": "integer", "minimum": 1, "maximum": 100}),
        ],
        responses=FoundShape,
        tags=["search"],
    )
    def get(self, request: Any) -> Response:
        """Words and fields over investigations, runs, hypotheses, findings, events and files."""
        kind = request.GET.get("kind", "")
        if kind and kind not in KINDS:
            raise exceptions.ValidationError({"kind": [f"choose one of {', '.join(KINDS)}"]})
        text = request.GET.get("limit", "20")
        if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= 100):
            raise exceptions.ValidationError({"limit": ["must be a number from 1 to 100"]})
        found = search(request.GET.get("q", ""), kinds=[kind] if kind else KINDS, limit=int(text))
        items = [hit(name, row) for name, rows in found.rows.items() for row in rows]
        return Response({"items": items, "more": sorted(found.more)})
