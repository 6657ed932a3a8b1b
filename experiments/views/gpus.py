"""The drawing of a run's GPUs, for its page and as a file."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from experiments.models import Run
from experiments.queries.gpus import gpu_course, gpu_part
from experiments.reports import gpu_plots
from experiments.views.compare import plot_file
from experiments.views.found import found


def gpu_context(run: Run) -> dict[str, Any]:
    """What _gpus.html shows of a run."""
    part = gpu_part(run)
    return {
        "gpus": part.summaries,
        "gpu_plot": None if part.course is None else gpu_plots.gpus(part.course),
    }


@require_safe
def plot(request: HttpRequest, slug: str, number: int, form: str) -> HttpResponse:
    """The drawing as CSV, SVG or PNG; 404 for a run without samples."""
    return plot_file(gpu_plots.gpus(found(gpu_course, slug, number)), form, f"{slug}-r{number}")
