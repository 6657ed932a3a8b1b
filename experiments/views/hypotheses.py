"""One hypothesis: its prediction, its checks and both its verdicts; and stating a new one."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from experiments import lifecycle, queries
from experiments.models import Hypothesis, Investigation
from experiments.views.forms import HypothesisForm
from experiments.views.found import found


@require_safe
def hypothesis(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Claim, mechanism, predictions by version, checks, verdicts by run, links."""
    page = found(queries.hypothesis_page, slug, number)
    context = {
        "page": page,
        "facts": page.facts,
        "hypothesis": page.facts.hypothesis,
        "investigation": page.dossier.investigation,
    }
    return render(request, "hypothesis.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest, slug: str) -> HttpResponse:
    """State a hypothesis together with its prediction, before the run."""
    page = found(queries.investigation_page, slug)
    row = page.investigation
    runs = [facts.run for facts in page.dossier.runs]
    form = HypothesisForm(request.POST or None, runs=runs, initial={"baseline": row.baseline_id})
    if form.is_valid():
        try:
            made = _register(row, form, request.user.get_username())
        except lifecycle.Refused as no:
            form.add_error(None, str(no))
        else:
            return redirect(made)
    context = {"form": form, "heading": "State a hypothesis", "investigation": row}
    if not runs:
        context["needs"] = "A prediction compares with a run. Add the baseline run first."
    return render(request, "form.html", context)


def _register(investigation: Investigation, form: HypothesisForm, author: str) -> Hypothesis:
    """All of it or nothing: a hypothesis without its prediction would look registered."""
    values = form.cleaned_data
    with transaction.atomic():
        made = lifecycle.add_hypothesis(
            investigation=investigation,
            claim=values["claim"],
            mechanism=values["mechanism"],
            author=author,
        )
        lifecycle.register_prediction(
            hypothesis=made,
            metric=values["metric"],
            baseline=form.row("baseline"),
            direction=values["direction"],
            low=values["low"],
            high=values["high"],
            margin=values["margin"],
        )
        if values["check_kind"]:
            lifecycle.add_applied_check(
                hypothesis=made,
                kind=values["check_kind"],
                key=values["check_key"],
                expected=values["check_expected"],
            )
    return made
