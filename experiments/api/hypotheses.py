"""Hypotheses of an investigation, their predictions, checks, links and verdicts."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from experiments import lifecycle, queries
from experiments.api import find, schema
from experiments.api.endpoint import Endpoint
from experiments.api.paging import piece
from experiments.api.shapes import (
    JsonValue,
    Label,
    Number,
    Shape,
    Text,
    Whole,
    metric_field,
    page_of,
)
from experiments.lifecycle.place import lock
from experiments.models import AppliedCheck, Hypothesis, HypothesisLink, Prediction, Verdict
from experiments.queries.search import KINDS, narrowed

TAG = ["hypotheses"]


class LinkShape(serializers.Serializer):
    kind = serializers.ChoiceField(choices=HypothesisLink.Kind.choices)
    other = serializers.CharField(source="other.label")


class PredictionShape(serializers.Serializer):
    """One version of a prediction; `low` and `high` bound the ratio run / baseline."""

    version = serializers.IntegerField()
    metric = serializers.CharField()
    baseline = serializers.CharField(source="baseline.label", default=None, allow_null=True)
    direction = serializers.ChoiceField(choices=Prediction.Direction.choices)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    margin = serializers.FloatField(help_text="smallest ratio change that matters")
    registered_at = serializers.DateTimeField()
    frozen_at = serializers.DateTimeField(allow_null=True)


class CheckShape(serializers.Serializer):
    """How one will know that the change was applied."""

    kind = serializers.ChoiceField(choices=AppliedCheck.Kind.choices)
    key = serializers.CharField(allow_blank=True)
    expected = JsonValue(allow_null=True)
    registered_at = serializers.DateTimeField()


class VerdictShape(serializers.Serializer):
    """Both verdicts of a hypothesis after one run, with their reasons."""

    id = serializers.IntegerField(source="pk")
    hypothesis = serializers.CharField(source="hypothesis.label")
    run = serializers.CharField(source="run.label")
    applied = serializers.ChoiceField(choices=Verdict.Applied.choices)
    applied_reason = serializers.CharField()
    outcome = serializers.ChoiceField(choices=Verdict.Outcome.choices)
    outcome_reason = serializers.CharField()
    decided_by = serializers.CharField(allow_blank=True, help_text="empty: by the rules")
    in_force = serializers.BooleanField()
    decided_at = serializers.DateTimeField()


class HypothesisShape(serializers.Serializer):
    """A hypothesis as it was stated."""

    investigation = serializers.CharField(source="investigation.slug")
    label = serializers.CharField()
    claim = serializers.CharField()
    mechanism = serializers.CharField(allow_blank=True)
    author = serializers.CharField(allow_blank=True)
    recorded = serializers.BooleanField(help_text="entered afterwards, from a write-up")
    created_at = serializers.DateTimeField()


class HypothesisFull(serializers.Serializer):
    """A hypothesis with all that was registered and decided about it."""

    hypothesis = HypothesisShape()
    predictions = PredictionShape(many=True)
    checks = CheckShape(many=True)
    links = LinkShape(many=True)
    runs = serializers.ListField(child=serializers.CharField())
    verdicts = VerdictShape(many=True)


def _full(slug: str, number: int) -> dict[str, Any]:
    facts = queries.hypothesis_page(slug, number).facts
    return {
        "hypothesis": HypothesisShape(facts.hypothesis).data,
        "predictions": PredictionShape(facts.predictions, many=True).data,
        "checks": CheckShape(facts.checks, many=True).data,
        "links": LinkShape(facts.links, many=True).data,
        "runs": [run.label for run in facts.runs],
        "verdicts": VerdictShape(facts.verdicts, many=True).data,
    }


class NewPrediction(Shape):
    """What the hypothesis predicts of a metric against a baseline run."""

    metric = metric_field(required=False)
    baseline = Label("R")
    direction = serializers.ChoiceField(choices=Prediction.Direction.choices, required=False)
    low = Number(required=False, allow_null=True)
    high = Number(required=False, allow_null=True)
    margin = Number(required=False)


class NewCheck(Shape):
    kind = serializers.ChoiceField(choices=AppliedCheck.Kind.choices)
    key = Text(max_length=200, required=False, allow_blank=True)
    expected = JsonValue(required=False, allow_null=True)


class NewLink(Shape):
    kind = serializers.ChoiceField(choices=HypothesisLink.Kind.choices)
    other = Label("H")


class NewHypothesis(Shape):
    """A claim; prediction and checks may come with it and are registered in the same step."""

    claim = Text(max_length=400)
    mechanism = Text(max_length=20_000, required=False, allow_blank=True)
    prediction = NewPrediction(required=False)
    checks = NewCheck(many=True, required=False)
    links = NewLink(many=True, required=False)


class HypothesisEdit(Shape):
    claim = Text(max_length=400, required=False)
    mechanism = Text(max_length=20_000, required=False, allow_blank=True)


class Overruling(Shape):
    """A person's verdict in place of the one in force."""

    verdict = Whole(help_text="id of the verdict in force")
    reason = Text(max_length=500)
    applied = serializers.ChoiceField(choices=Verdict.Applied.choices, required=False)
    outcome = serializers.ChoiceField(choices=Verdict.Outcome.choices, required=False)


def _predict(row: Hypothesis, values: dict[str, Any], field: str = "baseline") -> Prediction:
    baseline = find.run_in(row.investigation, field, values.pop("baseline"))
    return lifecycle.register_prediction(hypothesis=row, baseline=baseline, **values)


HypothesisPiece = page_of(HypothesisShape, "HypothesisPage")
VerdictPiece = page_of(VerdictShape, "VerdictPage")


class Hypotheses(Endpoint):
    @extend_schema(
        operation_id="listHypotheses",
        parameters=schema.LIST,
        responses=HypothesisPiece,
        tags=TAG,
    )
    def get(self, request: Any, slug: str) -> Response:
        """The hypotheses of an investigation."""
        kind, row = KINDS["hypothesis"], find.investigation(slug)
        rows = narrowed(kind, request.GET.get("filter", "")).filter(investigation=row)
        found = piece(kind, rows, request.GET)
        items = HypothesisShape(found.rows, many=True).data
        return Response({"items": items, "next": found.next})

    @extend_schema(
        operation_id="createHypothesis",
        request=NewHypothesis,
        responses={201: HypothesisFull},
        tags=TAG,
    )
    def post(self, request: Any, slug: str) -> Response:
        """State a hypothesis, with its prediction and checks where they are given."""
        values = find.checked(NewHypothesis, request.data)
        row = find.investigation(slug)
        with transaction.atomic():
            made = lifecycle.add_hypothesis(
                investigation=row,
                claim=values["claim"],
                mechanism=values.get("mechanism", ""),
                author=self.by,
            )
            for link in values.get("links", ()):
                other = find.hypothesis_in(row, "links", link["other"])
                if other is not None:
                    lifecycle.link_hypotheses(origin=made, kind=link["kind"], other=other)
            if "prediction" in values:
                _predict(made, dict(values["prediction"]), "prediction.baseline")
            for check in values.get("checks", ()):
                lifecycle.add_applied_check(hypothesis=made, **check)
        return self.tagged(_full(slug, made.number), status=201)


class OneHypothesis(Endpoint):
    @extend_schema(operation_id="readHypothesis", responses=HypothesisFull, tags=TAG)
    def get(self, request: Any, slug: str, number: int) -> Response:
        """One hypothesis with its predictions, checks, links, runs and verdicts."""
        find.hypothesis(slug, number)
        return self.tagged(_full(slug, number))

    @extend_schema(
        operation_id="editHypothesis",
        request=HypothesisEdit,
        responses=HypothesisFull,
        tags=TAG,
    )
    def patch(self, request: Any, slug: str, number: int) -> Response:
        """Change the wording; refused once a run has tested it."""
        values = find.checked(HypothesisEdit, request.data, partial=True)
        with transaction.atomic():
            row = find.hypothesis(slug, number)
            lock(row.investigation)
            self.unchanged(_full(slug, number))
            row.refresh_from_db()
            lifecycle.edit_hypothesis(
                row,
                claim=values.get("claim", row.claim),
                mechanism=values.get("mechanism", row.mechanism),
            )
        return self.tagged(_full(slug, number))


class Predictions(Endpoint):
    @extend_schema(
        operation_id="registerPrediction",
        request=NewPrediction,
        responses={201: PredictionShape},
        tags=TAG,
    )
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Register or change the prediction; one that a run has frozen gets a new version."""
        values = find.checked(NewPrediction, request.data)
        made = _predict(find.hypothesis(slug, number), values)
        return Response(PredictionShape(made).data, status=201)


class Checks(Endpoint):
    @extend_schema(
        operation_id="addAppliedCheck",
        request=NewCheck,
        responses={201: CheckShape},
        tags=TAG,
    )
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Say how one will know that the change was applied; binds later runs."""
        values = find.checked(NewCheck, request.data)
        made = lifecycle.add_applied_check(hypothesis=find.hypothesis(slug, number), **values)
        return Response(CheckShape(made).data, status=201)


class Links(Endpoint):
    @extend_schema(
        operation_id="linkHypotheses", request=NewLink, responses={201: LinkShape}, tags=TAG
    )
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Link to another hypothesis of the investigation; twice changes nothing."""
        values = find.checked(NewLink, request.data)
        row = find.hypothesis(slug, number)
        other = find.hypothesis_in(row.investigation, "other", values["other"])
        if other is None:
            raise Hypothesis.DoesNotExist
        made = lifecycle.link_hypotheses(origin=row, kind=values["kind"], other=other)
        return Response(LinkShape(made).data, status=201)


class Verdicts(Endpoint):
    @extend_schema(operation_id="listVerdicts", responses=VerdictPiece, tags=TAG)
    def get(self, request: Any, slug: str) -> Response:
        """The verdicts of an investigation, oldest first; `in_force` is the one that counts."""
        row = find.investigation(slug)
        rows = Verdict.objects.filter(hypothesis__investigation=row)
        items = VerdictShape(rows.select_related("hypothesis", "run"), many=True).data
        return Response({"items": items, "next": None})


class Overrule(Endpoint):
    @extend_schema(
        operation_id="overruleVerdict",
        request=Overruling,
        responses={201: VerdictShape},
        tags=TAG,
    )
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Put your verdict in place of the one in force; the old one stays in the history."""
        values = find.checked(Overruling, request.data)
        row = find.hypothesis(slug, number)
        verdict = Verdict.objects.select_related("hypothesis", "run", "prediction").get(
            hypothesis=row, pk=min(max(values.pop("verdict"), 0), (1 << 63) - 1)
        )
        made = lifecycle.overrule(verdict=verdict, by=self.by, **values)
        return Response(VerdictShape(made).data, status=201)
