"""One click from an advice to a registered hypothesis and a queued run."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from experiments import dispatch, queries
from experiments.lifecycle.advice import take_up
from experiments.refusal import Refused
from experiments.reports.taking_up import offer
from experiments.views.found import found


@require_POST
def take(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """Register, add and queue; a second click comes to the same run."""
    page = found(queries.investigation_page, slug)
    row = page.investigation
    try:
        chosen = offer(page, key)
        if chosen.plan is None:
            raise Refused("nothing can be started from this advice; it needs a person's hand")
        hypothesis, run = take_up(
            investigation=row, plan=chosen.plan, by=request.user.get_username()
        )
        queued = dispatch.queue_run(run)
    except Refused as no:
        messages.error(request, f"Nothing was started: {no}.")
        return redirect(row)
    said = "queued" if queued else "on its way already"
    messages.info(request, f"{hypothesis.label} is registered and {run.label} is {said}.")
    return redirect(run)
