"""The workers: who is alive, which GPUs are leased, what runs and what waits in vain."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments import dispatch
from experiments.lifecycle import Refused
from experiments.lifecycle import workers as lifecycle
from experiments.models import Run, Worker
from experiments.queries.workers import choices, workers_page


@require_safe
@never_cache
def workers(request: HttpRequest) -> HttpResponse:
    """Each worker with its machine, then the queue. While something runs or waits, an
    open page asks every two seconds for the piece that changes."""
    piece = request.headers.get("HX-Target") == "workers"
    return render(request, "_workers.html" if piece else "workers.html", {"page": workers_page()})


@require_http_methods(["GET", "HEAD", "POST"])
def bind(request: HttpRequest, pk: int) -> HttpResponse:
    """Let one worker alone measure a queued run, or any again, and wake who can."""
    row = get_object_or_404(Run, pk=pk)
    if request.method != "POST":
        return render(request, "worker_bind.html", {"run": row, "choices": choices(row)})
    try:
        lifecycle.bind(row, request.POST.get("worker", ""))
        dispatch.send_again([row.pk])
    except Refused as no:
        messages.error(request, str(no))
    return redirect("workers")


@require_POST
def forget(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a worker that is gone for good from the list."""
    try:
        lifecycle.forget(get_object_or_404(Worker, pk=pk))
    except Refused as no:
        messages.error(request, str(no))
    return redirect("workers")
