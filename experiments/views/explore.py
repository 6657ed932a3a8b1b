"""The courses of an investigation's runs laid over each other, to zoom into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.db.models import Avg, Count, Max, Min
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from experiments import frames
from experiments.models import DecodeSample, Investigation, Repeat, Run
from experiments.reports.charts import courses

if TYPE_CHECKING:
    import pandas as pd

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
        "rows": _table(drawn, metric),
        "query": urlencode([("metric", metric), *(("run", run.label) for run in drawn)]),
        "most": MOST_RUNS,
    }
    return render(request, "explore.html", context)


@require_safe
def spec(request: HttpRequest, slug: str) -> HttpResponse:
    """The chart as a Vega-Lite specification with its rows."""
    investigation = get_object_or_404(Investigation, slug=slug)
    frame, metric = _frame(request, investigation)
    if frame.empty:
        return JsonResponse({"problem": "none of these runs logged this figure"}, status=404)
    return JsonResponse(_chart(investigation, frame, metric))


@require_safe
def file(request: HttpRequest, slug: str, form: str) -> HttpResponse:
    """Every line that is drawn as CSV, or the whole chart as SVG or PNG."""
    investigation = get_object_or_404(Investigation, slug=slug)
    frame, metric = _frame(request, investigation)
    if frame.empty or form not in ("csv", "svg", "png"):
        raise Http404("There is no such drawing.")
    if form == "csv":
        columns = ["run", "line", "rank", "t", metric, "in_repeat"]
        answer = HttpResponse(frame[columns].to_csv(index=False), content_type="text/csv")
    else:
        import vl_convert

        chart = _chart(investigation, frame, metric)
        if form == "svg":
            answer = HttpResponse(vl_convert.vegalite_to_svg(chart), content_type="image/svg+xml")
        else:
            picture = vl_convert.vegalite_to_png(chart, scale=2)
            answer = HttpResponse(picture, content_type="image/png")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-{metric}.{form}"'
    return answer


def _frame(request: HttpRequest, investigation: Investigation) -> tuple[pd.DataFrame, str]:
    """The decode lines of the chosen runs that have the figure."""
    _, drawn, metric = _chosen(request, investigation)
    rows = DecodeSample.objects.filter(run__in=drawn, **{f"{metric}__isnull": False})
    return frames.samples(rows.select_related("run").order_by("run__number", "line")), metric


def _chart(investigation: Investigation, frame: pd.DataFrame, metric: str) -> dict[str, Any]:
    baseline = Repeat.objects.filter(run=investigation.baseline_id, tok_s__isnull=False)
    told = baseline.aggregate(mean=Avg("tok_s"), n=Count("pk"))
    if metric != "tok_s" or told["mean"] is None or investigation.baseline is None:
        return courses(frame, metric)
    says = f"baseline {investigation.baseline.label}: {told['mean']:.1f} (mean, n={told['n']})"
    return courses(frame, metric, reference=told["mean"], says=says)


def _table(drawn: list[Run], metric: str) -> list[dict[str, Any]]:
    """The drawn lines of each run in one row: how many, mean, lowest and highest."""
    rows = DecodeSample.objects.filter(run__in=drawn, **{f"{metric}__isnull": False})
    kept = (
        rows.order_by()
        .values("run", "in_repeat")
        .annotate(n=Count("pk"), mean=Avg(metric), low=Min(metric), high=Max(metric))
    )
    by_run = {(row["run"], row["in_repeat"]): row for row in kept}
    return [
        {**by_run[run.pk, part], "run": run, "part": words}
        for run in drawn
        for part, words in ((True, "measured"), (False, "warm-up or idle"))
        if (run.pk, part) in by_run
    ]
