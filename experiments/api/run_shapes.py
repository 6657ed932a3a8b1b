"""What is asked for and answered about runs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from experiments.api.hypotheses import VerdictShape
from experiments.api.shapes import (
    Flag,
    JsonObject,
    JsonValue,
    Label,
    Number,
    Shape,
    Text,
    Told,
    Whole,
    page_of,
)
from experiments.lifecycle.runs import ENGINES
from experiments.models import ConfigChange, ConfigEntry, Run
from experiments.queries.run_items import RunItem

_METRIC = {
    "type": "object",
    "required": ["value", "count", "measured", "low", "high"],
    "properties": {
        "value": {"type": "number", "description": "mean of the repeats, or the last point"},
        "count": {"type": "integer", "description": "repeats or points behind it"},
        "measured": {"type": "boolean", "description": "true: from repeats; false: from points"},
        "low": {"type": "number"},
        "high": {"type": "number"},
        "last_step": {"type": ["integer", "null"]},
    },
}


class RunShape(Told):
    """A run: one configuration under one workload, where it stands and its figures."""

    investigation = serializers.CharField(source="run.investigation.slug")
    label = serializers.CharField(source="run.label")
    number = serializers.IntegerField(source="run.number")
    title = serializers.CharField(source="run.title")
    state = serializers.ChoiceField(source="run.state", choices=Run.State.choices)
    reason = serializers.CharField(source="run.reason", help_text="why it ended as it did")
    phase = serializers.CharField(source="run.phase")
    fraction = serializers.FloatField(source="run.fraction", allow_null=True)
    engine = serializers.CharField(source="run.engine")
    release = serializers.CharField(source="run.engine_release")
    host = serializers.CharField(source="run.host")
    recorded = serializers.BooleanField(source="run.recorded", help_text="from a write-up")
    by_script = serializers.BooleanField(
        source="run.by_script", help_text="measured and sent by a program"
    )
    hypothesis = serializers.CharField(source="run.hypothesis.label", default=None, allow_null=True)
    baseline = serializers.CharField(allow_null=True)
    follows = serializers.CharField(allow_null=True)
    repeats = serializers.CharField(allow_null=True, help_text="the run that it repeats")
    created_at = serializers.DateTimeField(source="run.created_at")
    started_at = serializers.DateTimeField(source="run.claimed_at", allow_null=True)
    ended_at = serializers.DateTimeField(source="run.ended_at", allow_null=True)
    metrics = serializers.SerializerMethodField()
    params = serializers.SerializerMethodField()

    @extend_schema_field({"type": "object", "additionalProperties": _METRIC})
    def get_metrics(self, item: RunItem) -> dict[str, Any]:
        return {
            name: {
                "value": row.value,
                "count": row.count,
                "measured": row.measured,
                "low": row.low,
                "high": row.high,
                "last_step": row.last_step,
            }
            for name, row in sorted(item.metrics.items())
        }

    @extend_schema_field({"type": "object", "additionalProperties": {}})
    def get_params(self, item: RunItem) -> dict[str, Any]:
        return dict(item.params)


class ConfigShape(serializers.Serializer):
    """One argument, requested and effective side by side; `predicted`: by rule, not yet seen."""

    key = serializers.CharField()
    requested = JsonValue(allow_null=True)
    was_requested = serializers.BooleanField()
    effective = JsonValue(allow_null=True)
    effective_known = serializers.BooleanField()
    predicted = serializers.BooleanField()
    origin = serializers.ChoiceField(choices=ConfigEntry.Origin.choices)
    why = serializers.CharField(allow_blank=True)
    line = serializers.IntegerField(allow_null=True)


class ChangeShape(serializers.Serializer):
    """One thing that the run changed against the one it follows."""

    kind = serializers.ChoiceField(choices=ConfigChange.Kind.choices)
    key = serializers.CharField()
    before = JsonValue(allow_null=True)
    after = JsonValue(allow_null=True)
    note = serializers.CharField(allow_blank=True)


class RepeatShape(serializers.Serializer):
    """One measured pass; definitions in docs/metrics.md."""

    index = serializers.IntegerField()
    started_at = serializers.DateTimeField(allow_null=True)
    seconds = serializers.FloatField(allow_null=True)
    requests = serializers.IntegerField(allow_null=True)
    tokens = serializers.IntegerField(allow_null=True)
    verify_ct = serializers.IntegerField(allow_null=True)
    tok_s = serializers.FloatField()
    accept_len = serializers.FloatField(allow_null=True)
    accept_rate = serializers.FloatField(allow_null=True)
    step_ms = serializers.FloatField(allow_null=True)


class UntriedShape(serializers.Serializer):
    code = serializers.CharField()
    missing = serializers.CharField()


class RunFull(serializers.Serializer):
    """A run with its arguments, repeats, verdict and what could not be judged."""

    run = RunShape()
    note = serializers.CharField(allow_blank=True)
    argv = serializers.ListField(child=JsonValue())
    env = JsonObject()
    versions = JsonObject()
    workload = JsonObject()
    config = ConfigShape(many=True)
    changes = ChangeShape(many=True)
    repeats = RepeatShape(many=True)
    ratio = serializers.FloatField(allow_null=True, help_text="tok/s over the baseline's")
    verdict = VerdictShape(allow_null=True)
    findings = serializers.ListField(child=serializers.CharField(), help_text="codes shown by it")
    untried = UntriedShape(many=True)
    check_problem = serializers.CharField(allow_blank=True)


class WorkloadShape(Shape):
    """What the server is asked while it is measured; what is left out keeps its usual value."""

    prompts = Text(max_length=400, required=False)
    max_new_tokens = Whole(required=False)
    prompts_per_repeat = Whole(required=False)
    repeats = Whole(required=False)
    warm_up_prompts = Whole(required=False)
    concurrency = Whole(required=False)
    temperature = Number(required=False)
    ignore_eos = Flag(required=False)


class _Named(Shape):
    title = Text(max_length=200)
    note = Text(max_length=20_000, required=False, allow_blank=True)
    hypothesis = Label("H", required=False, allow_null=True)


class NewRun(_Named):
    """A run to be measured by a worker; `queue`: send it to the workers at once."""

    server_args = serializers.ListField(
        child=Text(max_length=8192, allow_blank=True, trim_whitespace=False),
        max_length=400,
        help_text="the engine's own flags, without interpreter, host and port",
    )
    engine = serializers.ChoiceField(choices=[(e, e) for e in ENGINES], required=False)
    engine_release = Text(max_length=40, required=False, allow_blank=True)
    env = serializers.DictField(
        child=Text(max_length=8192, allow_blank=True, trim_whitespace=False), required=False
    )
    workload = WorkloadShape(required=False)
    baseline = Label("R", required=False, allow_null=True)
    follows = Label("R", required=False, allow_null=True)
    strict = Flag(
        required=False, help_text="not measured where an argument would not be in force as asked"
    )
    worker = Text(
        max_length=100,
        required=False,
        allow_blank=True,
        help_text="the name of the worker that alone may measure it; empty or left out: any",
    )
    queue = Flag(required=False)


class NewScriptRun(_Named):
    """A run that the caller measures and sends."""

    config = JsonObject(required=False, help_text="parameters by name")
    server_args = serializers.ListField(
        child=Text(max_length=8192, allow_blank=True, trim_whitespace=False),
        max_length=400,
        required=False,
    )
    engine = Text(max_length=20, required=False)
    engine_release = Text(max_length=40, required=False, allow_blank=True)
    env = serializers.DictField(
        child=Text(max_length=8192, allow_blank=True, trim_whitespace=False), required=False
    )
    concurrency = Whole(required=False, allow_null=True)
    baseline = Label("R", required=False, allow_null=True)
    follows = Label("R", required=False, allow_null=True)
    host = Text(max_length=200, required=False, allow_blank=True)


class NewBranch(_Named):
    """A run that follows another and differs from it in what is given."""

    server_args = serializers.ListField(
        child=Text(max_length=8192, allow_blank=True, trim_whitespace=False),
        max_length=400,
        required=False,
    )
    env = serializers.DictField(
        child=Text(max_length=8192, allow_blank=True, trim_whitespace=False), required=False
    )
    workload = WorkloadShape(required=False)
    worker = Text(
        max_length=100,
        required=False,
        allow_blank=True,
        help_text="the name of the worker that alone may measure it; left out: as for its origin",
    )
    queue = Flag(required=False)


class Queueing(Shape):
    queue = Flag(required=False)


class RunEdit(Shape):
    title = Text(max_length=200, required=False)
    note = Text(max_length=20_000, required=False, allow_blank=True)


class SentRepeatShape(Shape):
    """One pass as its sender measured it; tok_s: output tokens per second of wall time."""

    tok_s = Number()
    accept_len = Number(required=False, allow_null=True, help_text="bonus token included")
    step_ms = Number(required=False, allow_null=True)
    seconds = Number(required=False, allow_null=True)
    requests = Whole(required=False, allow_null=True)
    tokens = Whole(required=False, allow_null=True)
    verify_ct = Whole(required=False, allow_null=True)
    started_at = serializers.DateTimeField(required=False, allow_null=True)


class NewRepeats(Shape):
    """Passes numbered from `first`; those that were sent before are skipped."""

    first = Whole(min_value=0)
    repeats = SentRepeatShape(many=True, allow_empty=False)


class RecordedRepeatShape(Shape):
    tok_s = Number()
    accept_len = Number(required=False, allow_null=True)
    accept_rate = Number(required=False, allow_null=True)


class NewRecordedRun(_Named):
    """A run whose figures come from a write-up; it stays marked as recorded."""

    repeats = RecordedRepeatShape(many=True, allow_empty=True)
    engine = Text(max_length=20, required=False)
    engine_release = Text(max_length=40, required=False, allow_blank=True)
    concurrency = Whole(required=False, allow_null=True)
    server_args = serializers.ListField(
        child=Text(max_length=8192, allow_blank=True, trim_whitespace=False),
        max_length=400,
        required=False,
    )
    baseline = Label("R", required=False, allow_null=True)
    follows = Label("R", required=False, allow_null=True)
    host = Text(max_length=200, required=False, allow_blank=True)


class Finish(Shape):
    """How the run ended. server_info: the engine's own answer; its arguments are read from it."""

    state = serializers.ChoiceField(
        choices=[(s, s) for s in ("done", "failed", "cancelled")], required=False
    )
    reason = Text(max_length=2000, required=False, allow_blank=True)
    server_info = JsonObject(required=False, allow_null=True)
    versions = serializers.DictField(child=Text(max_length=400), required=False)
    exit_code = Whole(required=False, allow_null=True, min_value=-1000, max_value=1000)


class RunStanding(serializers.Serializer):
    """Where a run stands now; ask again while `ended` is false."""

    label = serializers.CharField(source="run.label")
    state = serializers.ChoiceField(source="run.state", choices=Run.State.choices)
    ended = serializers.BooleanField()
    phase = serializers.CharField(source="run.phase")
    phase_detail = serializers.CharField(source="run.phase_detail")
    fraction = serializers.FloatField(source="run.fraction", allow_null=True)
    reason = serializers.CharField(source="run.reason")
    waiting_behind = serializers.IntegerField(help_text="runs before it in the queue")


RunPiece = page_of(RunShape, "RunPage")
