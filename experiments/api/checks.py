"""The library without the record: what is wrong in these files, what will this command do."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from experiments.api import find
from experiments.api.endpoint import Endpoint
from experiments.api.shapes import JsonObject, Number, Shape, Text
from specdebug.diagnosis.diagnose import diagnose, to_json
from specdebug.diagnosis.facts import Input
from specdebug.diagnosis.gather import build_case

TAG = ["library"]
MOST_FILES = 50


class GivenFile(Shape):
    name = Text(max_length=200)
    text = Text(max_length=4_000_000, allow_blank=True, trim_whitespace=False)


class Checking(Shape):
    """Files as text; what each is, is told from its content. Send large logs as evidence."""

    files = GivenFile(many=True, allow_empty=False)
    engine_version = Text(max_length=40, required=False, allow_null=True)
    baseline = Number(
        required=False, allow_null=True, help_text="output tokens per second without speculation"
    )


class Preflighting(Shape):
    """A launch command; it is read and never run."""

    command = Text(max_length=100_000)
    engine_version = Text(max_length=40, required=False, allow_null=True)
    baseline = Number(required=False, allow_null=True)


class DiagnosisShape(serializers.Serializer):
    """The answer in the form of docs/check-json.md."""

    inputs = serializers.ListField(child=JsonObject())
    values = JsonObject()
    findings = serializers.ListField(child=JsonObject())
    missing = JsonObject(allow_null=True)
    untried = serializers.ListField(child=JsonObject())


def _answer(inputs: list[Input], values: dict[str, Any]) -> Response:
    baseline = values.get("baseline")
    if baseline is not None and baseline <= 0:
        raise serializers.ValidationError({"baseline": ["must be above zero"]})
    case = build_case(
        inputs, engine_version=values.get("engine_version") or None, baseline=baseline
    )
    return Response(to_json(diagnose(case)))


class Check(Endpoint):
    asks = {"POST": "read"}
    repeatable = False

    @extend_schema(operation_id="check", request=Checking, responses=DiagnosisShape, tags=TAG)
    def post(self, request: Any) -> Response:
        """Find faults in logs, commands, configs and benchmark output; nothing is kept."""
        values = find.checked(Checking, request.data)
        files = values["files"][: MOST_FILES + 1]
        if len(files) > MOST_FILES:
            raise serializers.ValidationError({"files": [f"at most {MOST_FILES} files"]})
        inputs = [
            Input(file["name"], file["text"].encode("utf-8", "surrogatepass")) for file in files
        ]
        return _answer(inputs, values)


class Preflight(Endpoint):
    asks = {"POST": "read"}
    repeatable = False

    @extend_schema(
        operation_id="preflight", request=Preflighting, responses=DiagnosisShape, tags=TAG
    )
    def post(self, request: Any) -> Response:
        """Say what a launch command will really do, before it is started."""
        values = find.checked(Preflighting, request.data)
        text = values["command"].encode("utf-8", "surrogatepass")
        return _answer([Input("command", text)], values)
