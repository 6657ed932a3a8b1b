"""What follows from an investigation's rows: timeline, gap account, post-mortem; and the
comparison of any runs. Nothing is decided here."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from experiments import queries, store
from experiments.api import problems, schema
from experiments.api.endpoint import Endpoint, OpenFile, file_answer
from experiments.api.shapes import JsonObject
from experiments.models import Rendering
from experiments.queries.comparison import FEWEST, MOST, compared
from experiments.refusal import Refused
from experiments.reports import document as documents
from experiments.reports import making, render
from experiments.reports.comparing import Beside, comparing

TAG = ["conclusions"]
TRY_AGAIN_AFTER = timedelta(minutes=1)


class Entries(serializers.Serializer):
    """`items`: one object for each, as the library gives it."""

    items = serializers.ListField(child=JsonObject())


class GapPartShape(serializers.Serializer):
    """tok/s won (+) or lost (-) by one part, and its milliseconds a step, null where it is no time;
    low and high: 95 % range. reached: tok/s after this part and all before it."""

    name = serializers.CharField()
    tok_s = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    reached = serializers.FloatField()
    ms = serializers.FloatField(allow_null=True)
    ms_low = serializers.FloatField(allow_null=True)
    ms_high = serializers.FloatField(allow_null=True)


class GapAccountShape(serializers.Serializer):
    """The parts add up to measured - baseline. spread: where the ranges come from; note: why the
    longer step is not shared out, empty where it is. break_even: accept length at which the run
    draws level; ceiling_tok_s: of a perfect draft."""

    baseline = serializers.CharField()
    baseline_tok_s = serializers.FloatField()
    measured_tok_s = serializers.FloatField()
    accept_len = serializers.FloatField()
    parts = GapPartShape(many=True)
    break_even = serializers.FloatField()
    ceiling_tok_s = serializers.FloatField()
    spread = serializers.CharField()
    note = serializers.CharField(allow_blank=True)


class RunGapShape(serializers.Serializer):
    run = serializers.CharField()
    account = GapAccountShape()


class GapsShape(serializers.Serializer):
    """One account for each run with a draft whose throughput and accept length are known."""

    items = RunGapShape(many=True)


class PostMortemShape(serializers.Serializer):
    """The whole report as the page and the PDF show it; digest: SHA-256 of its canonical bytes."""

    digest = serializers.CharField()
    document = JsonObject()


class DeltaShape(serializers.Serializer):
    """One figure beside the baseline's; ratio and its interval are null where it cannot be said."""

    metric = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    verdict = serializers.CharField(allow_null=True)
    sentence = serializers.CharField(allow_null=True)
    ratio = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    level = serializers.FloatField(allow_null=True, help_text="of the interval")
    n_before = serializers.IntegerField(allow_null=True)
    n_after = serializers.IntegerField(allow_null=True)


class BesideShape(serializers.Serializer):
    """One run beside the baseline. outputs_equal: same answers to the same prompts."""

    run = serializers.CharField()
    title = serializers.CharField()
    deltas = DeltaShape(many=True)
    outputs_equal = serializers.BooleanField(allow_null=True)
    split = serializers.CharField(allow_blank=True)
    not_comparable = serializers.CharField(allow_blank=True)


class DifferenceShape(serializers.Serializer):
    """A setting in which the runs differ; values in the order of `runs`, null: not known."""

    group = serializers.CharField()
    key = serializers.CharField()
    values = serializers.ListField(child=serializers.JSONField(allow_null=True))


class ComparisonShape(serializers.Serializer):
    """Runs beside a pinned one, which comes first."""

    baseline = serializers.CharField()
    noise = serializers.CharField()
    runs = BesideShape(many=True)
    differences = DifferenceShape(many=True)


def _told(slug: str) -> dict[str, Any]:
    found = documents.document(queries.investigation_page(slug))
    return dict(found.told)


class Timeline(Endpoint):
    @extend_schema(operation_id="readTimeline", responses=Entries, tags=TAG)
    def get(self, request: Any, slug: str) -> Response:
        """What happened in order: runs, hypotheses, findings, events; with what each showed."""
        return self.tagged({"items": _told(slug)["steps"]})


class Gap(Endpoint):
    @extend_schema(operation_id="readGapAccount", responses=GapsShape, tags=TAG)
    def get(self, request: Any, slug: str) -> Response:
        """From the baseline to each run: how many tok/s go to acceptance, drafting and the rest,
        each with its range; the same accounts as on the page and in the report."""
        return self.tagged({"items": _told(slug)["gaps"]})


class Regressions(Endpoint):
    @extend_schema(operation_id="readRegressions", responses=Entries, tags=TAG)
    def get(self, request: Any, slug: str) -> Response:
        """Comparisons of the runs with the baseline and with the run before; `flagged`: worse."""
        return self.tagged({"items": _told(slug)["regressions"]})


class Report(Endpoint):
    @extend_schema(operation_id="readReport", responses=PostMortemShape, tags=TAG)
    def get(self, request: Any, slug: str) -> Response:
        """The post-mortem of the present rows as JSON, redacted like the page."""
        found = documents.document(queries.investigation_page(slug))
        return self.tagged({"digest": found.digest, "document": found.body})


class MakingShape(serializers.Serializer):
    """A PDF that is being made. step: what it is at; fraction: how far, 0 to 1."""

    state = serializers.ChoiceField(["queued", "running"])
    step = serializers.CharField(allow_blank=True)
    fraction = serializers.FloatField()


class ReportPdf(Endpoint):
    @extend_schema(
        operation_id="readReportPdf",
        parameters=[OpenApiParameter("page", str, enum=["A4", "Letter"])],
        responses={(200, "application/pdf"): schema.FILE, 202: MakingShape},
        tags=TAG,
    )
    def get(self, request: Any, slug: str) -> Any:
        """The same as PDF. A worker makes it: 202 says how far it is, ask again after Retry-After
        seconds. 503 where Pango is missing or it could not be made; a minute later it is tried
        anew."""
        page = request.GET.get("page", "A4")
        if page not in ("A4", "Letter"):
            raise exceptions.ValidationError({"page": ["A4 or Letter"]})
        found = documents.document(queries.investigation_page(slug))
        try:
            row = making.ordered(found, page)
            if _failed_long_ago(row):
                row = making.ordered(found, page, again=True)
        except (render.PdfUnavailable, Refused) as no:
            raise problems.Unavailable(str(no)) from None
        if row.state == Rendering.State.FAILED:
            raise problems.Unavailable(row.problem)
        if row.state != Rendering.State.DONE or row.pdf_id is None:
            told = {"state": row.state, "step": row.step, "fraction": row.fraction}
            return Response(told, status=202, headers={"Retry-After": "1"})
        file = OpenFile(store.path_of(row.pdf_id).open("rb"))
        return file_answer(file, name=f"{slug}.pdf", media_type="application/pdf")


def _failed_long_ago(row: Rendering) -> bool:
    """Whether whatever stood in the way may be gone by now."""
    if row.state != Rendering.State.FAILED or row.ended_at is None:
        return False
    return row.ended_at < timezone.now() - TRY_AGAIN_AFTER


class Compare(Endpoint):
    @extend_schema(
        operation_id="compareRuns",
        parameters=[
            OpenApiParameter(
                "runs", str, required=True, description="SLUG/R1,SLUG/R2,... two to eight runs"
            ),
            OpenApiParameter(
                "baseline", str, description="SLUG/R0; else the goal's baseline, else the first"
            ),
        ],
        responses=ComparisonShape,
        tags=TAG,
    )
    def get(self, request: Any) -> Response:
        """Runs beside a pinned one: deltas with intervals and sample sizes, and what differs."""
        names = [name for name in request.GET.get("runs", "").split(",") if name.strip()]
        asked = [name for name in [*names, request.GET.get("baseline", "")] if name]
        found = compared(names, request.GET.get("baseline", ""))
        if found.unread:
            wrong = ", ".join(name[:80] for name in found.unread[:5])
            raise exceptions.ValidationError({"runs": [f"no such run: {wrong}"]})
        if not FEWEST <= len(set(asked)) <= MOST or found.baseline is None:
            raise exceptions.ValidationError({"runs": [f"name {FEWEST} to {MOST} runs"]})
        told = comparing(found)
        return Response(
            {
                "baseline": told.rows[0].name,
                "noise": told.noise,
                "runs": [_beside(row) for row in told.rows],
                "differences": [
                    {
                        "group": line.group,
                        "key": line.key,
                        "values": [cell.value if cell.known else None for cell in line.cells],
                    }
                    for line in told.lines
                ],
            }
        )


def _beside(row: Beside) -> dict[str, Any]:
    return {
        "run": row.name,
        "title": row.facts.run.title,
        "deltas": [
            {
                "metric": delta.metric,
                "value": delta.value,
                **{
                    name: None if delta.comparison is None else getattr(delta.comparison, name)
                    for name in (
                        "verdict",
                        "sentence",
                        "ratio",
                        "low",
                        "high",
                        "level",
                        "n_before",
                        "n_after",
                    )
                },
            }
            for delta in row.deltas
        ],
        "outputs_equal": row.outputs,
        "split": row.split,
        "not_comparable": row.why_not,
    }
