"""The courses of an investigation's runs laid over each other, to zoom into."""

from __future__ import annotations

from django.db.models import Avg, Count
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from experiments import frames
from experiments.models import DecodeSample, Investigation, Repeat, Run
from experiments.reports.charts import courses

METRICS = {
    "tok_s": "throughput",
    "accept_len": "accept length",
    "running": "running requests",
    "queue": "waiting requests",
}
MOST_RUNS = 8


def _chosen(request: HttpRequest, investigation: Investigation) -> tuple[list[Run], list[Run], str]:
    """Runs with decode lines, those that are drawn, and the metric."""
    runs: list[Run] = list(
        investigation.runs.annotate(lines=Count("samples"))
        .filter(lines__gt=0)
        .order_by("number")
        .defer("server_info", "argv", "env", "shown", "untried")
    )
    asked = set(request.GET.getlist("run"))
    drawn = [run for run in runs if run.label in asked] or runs[-MOST_RUNS:]
    metric = request.GET.get("metric", "")
    return runs, drawn[:MOST_RUNS], metric if metric in METRICS else "tok_s"


@require_safe
def explore(request: HttpRequest, slug: str) -> HttpResponse:
    """Choose runs and a figure; the chart itself is fetched and drawn by the browser."""
    investigation = get_object_or_404(Investigation, slug=slug)
    runs, drawn, metric = _chosen(request, investigation)
    context = {
        "investigation": investigation,
        "runs": runs,
        "drawn": drawn,
        "metrics": METRICS,
        "metric": metric,
        "words": METRICS[metric],
        "most": MOST_RUNS,
    }
    return render(request, "explore.html", context)


@require_safe
def spec(request: HttpRequest, slug: str) -> HttpResponse:
    """The chart as a Vega-Lite specification with its rows."""
    investigation = get_object_or_404(Investigation, slug=slug)
    _, drawn, metric = _chosen(request, investigation)
    rows = DecodeSample.objects.filter(run__in=drawn, **{f"{metric}__isnull": False})
    frame = frames.samples(rows.select_related("run").order_by("run__number", "line"))
    if frame.empty:
        return JsonResponse({"problem": "none of these runs logged this figure"}, status=404)
    baseline = Repeat.objects.filter(run=investigation.baseline_id, tok_s__isnull=False)
    told = baseline.aggregate(mean=Avg("tok_s"), n=Count("pk"))
    if metric != "tok_s" or told["mean"] is None or investigation.baseline is None:
        return JsonResponse(courses(frame, metric))
    says = f"baseline {investigation.baseline.label}: {told['mean']:.1f} (mean, n={told['n']})"
    return JsonResponse(courses(frame, metric, reference=told["mean"], says=says))
