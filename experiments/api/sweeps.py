"""Sweeps: several settings measured one after another, those not worth a run left out."""

from __future__ import annotations

import itertools
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from experiments import groups
from experiments.api import find
from experiments.api import run_shapes as shapes
from experiments.api.endpoint import Endpoint
from experiments.api.investigations import Nothing, Reason
from experiments.api.shapes import Flag, JsonObject, Label, Shape, Text
from experiments.lifecycle.runs import ENGINES, workload_from
from experiments.models import RunGroup

TAG = ["sweeps"]
MOST_SETTINGS = 1000


class GroupShape(serializers.Serializer):
    """A sweep (S1) or a comparison in turns (C1): its settings, what was left out, and its runs."""

    label = serializers.CharField()
    number = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=RunGroup.Kind.choices)
    title = serializers.CharField()
    state = serializers.ChoiceField(choices=RunGroup.State.choices)
    reason = serializers.CharField(allow_blank=True)
    points = serializers.SerializerMethodField(help_text="settings that are measured")
    dropped = serializers.ListField(child=JsonObject(), help_text="settings left out, with why")
    runs = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_points(self, row: RunGroup) -> list[str]:
        return [str(point["name"]) for point in row.plan.get("points", [])]

    def get_runs(self, row: RunGroup) -> list[str]:
        return [run.label for run in row.runs.order_by("number")]


class Groups(serializers.Serializer):
    items = GroupShape(many=True)


class NewSweep(Shape):
    """`grid`: argument to values, all combinations; or `settings`: the combinations one by one."""

    title = Text(max_length=200)
    server_args = serializers.ListField(
        child=Text(max_length=8192, allow_blank=True, trim_whitespace=False),
        max_length=400,
        help_text="what all runs share",
    )
    grid = serializers.DictField(
        child=serializers.ListField(child=serializers.JSONField(), max_length=100), required=False
    )
    settings = serializers.ListField(child=JsonObject(), max_length=MOST_SETTINGS, required=False)
    engine = serializers.ChoiceField(choices=[(e, e) for e in ENGINES], required=False)
    engine_release = Text(max_length=40, required=False, allow_blank=True)
    workload = shapes.WorkloadShape(required=False)
    env = serializers.DictField(
        child=Text(max_length=8192, allow_blank=True, trim_whitespace=False), required=False
    )
    baseline = Label("R", required=False, allow_null=True)
    hypothesis = Label("H", required=False, allow_null=True)
    stop_early = Flag(required=False, help_text="leave out what can no longer win (true)")


def _settings(values: dict[str, Any]) -> list[dict[str, Any]]:
    """The combinations; refused where both or neither way of naming them is used."""
    grid, listed = values.get("grid"), values.get("settings")
    if bool(grid) == bool(listed):
        raise exceptions.ValidationError({"grid": ["give either a grid or settings"]})
    found: list[dict[str, Any]] = list(listed or [])
    if grid:
        count = 1
        for options in grid.values():
            count *= max(len(options), 1)
        if count > MOST_SETTINGS:
            raise exceptions.ValidationError({"grid": [f"{count} settings; at most 1000"]})
        names = list(grid)
        found = [dict(zip(names, c, strict=True)) for c in itertools.product(*grid.values())]
    for setting in found:
        for name, value in setting.items():
            if value is not None and not isinstance(value, str | int | float | bool):
                raise exceptions.ValidationError(
                    {"settings": [f"{name[:80]}: a text, a number, true, false or null"]}
                )
    return found


class Sweeps(Endpoint):
    @extend_schema(operation_id="listSweeps", responses=Groups, tags=TAG)
    def get(self, request: Any, slug: str) -> Response:
        """The sweeps and comparisons of an investigation."""
        rows = RunGroup.objects.filter(investigation=find.investigation(slug))
        items = GroupShape(rows.prefetch_related("runs"), many=True).data
        return Response({"items": items})

    @extend_schema(
        operation_id="startSweep", request=NewSweep, responses={201: GroupShape}, tags=TAG
    )
    def post(self, request: Any, slug: str) -> Response:
        """Plan a sweep and queue its first run; 409 lists why where nothing is worth a run."""
        values = find.checked(NewSweep, request.data)
        row = find.investigation(slug)
        made = groups.add_sweep(
            investigation=row,
            title=values["title"],
            common=groups.Common(
                engine=values.get("engine", "reference"),
                server_args=tuple(values["server_args"]),
                workload=workload_from(values.get("workload", {})),
                env=values.get("env", {}),
                engine_release=values.get("engine_release", ""),
            ),
            settings=_settings(values),
            baseline=find.run_in(row, "baseline", values.get("baseline")),
            hypothesis=find.hypothesis_in(row, "hypothesis", values.get("hypothesis")),
            stop_early=values.get("stop_early", True),
        )
        return Response(GroupShape(made).data, status=201)


def _one(slug: str, number: int) -> RunGroup:
    return RunGroup.objects.select_related("investigation").get(
        investigation__slug=slug, number=number
    )


class OneSweep(Endpoint):
    @extend_schema(operation_id="readSweep", responses=GroupShape, tags=TAG)
    def get(self, request: Any, slug: str, number: int) -> Response:
        """One sweep with its runs."""
        return self.tagged(GroupShape(_one(slug, number)).data)


class StopSweep(Endpoint):
    repeatable = False

    @extend_schema(operation_id="stopSweep", request=Reason, responses=GroupShape, tags=TAG)
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Make no further run; the one in hand goes on."""
        reason = find.checked(Reason, request.data)["reason"]
        groups.stop(_one(slug, number), reason=f"{self.by}: {reason}")
        return Response(GroupShape(_one(slug, number)).data)


class ResumeSweep(Endpoint):
    repeatable = False

    @extend_schema(operation_id="resumeSweep", request=Nothing, responses=GroupShape, tags=TAG)
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Go on where it was stopped."""
        find.checked(Nothing, request.data)
        groups.resume(_one(slug, number))
        return Response(GroupShape(_one(slug, number)).data)
