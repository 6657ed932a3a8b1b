"""What people do with a hypothesis after stating it: change its prediction, add a check or a link,
overrule a verdict and hand it back to the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments import lifecycle, queries
from experiments.models import Verdict
from experiments.queries import HypothesisPage
from experiments.views.forms import Form
from experiments.views.found import found
from experiments.views.hypothesis_forms import (
    CheckForm,
    LinkForm,
    OverruleForm,
    prediction_form,
)

FORM_METHODS = ["GET", "HEAD", "POST"]


def _answer(
    request: HttpRequest,
    page: HypothesisPage,
    form: Form,
    heading: str,
    act: Callable[[], Any],
    **context: Any,
) -> HttpResponse:
    """Show the form, or do what it asks and go back to the hypothesis."""
    if form.is_valid():
        try:
            act()
        except lifecycle.Refused as no:
            form.add_error(None, str(no))
        else:
            return redirect(page.facts.hypothesis)
    context |= {"form": form, "heading": heading, "hypothesis": page.facts.hypothesis}
    context["investigation"] = page.dossier.investigation
    return render(request, "hypothesis_form.html", context)


@require_http_methods(FORM_METHODS)
def predict(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Register the prediction, change it, or add a version where it is frozen."""
    page = found(queries.hypothesis_page, slug, number)
    row, newest = page.facts.hypothesis, page.facts.prediction
    form = prediction_form(request.POST or None, row, [f.run for f in page.dossier.runs])
    return _answer(
        request,
        page,
        form,
        f"Predict for {row.label}",
        lambda: lifecycle.register_prediction(
            hypothesis=row,
            baseline=form.row("baseline"),
            **{k: v for k, v in form.cleaned_data.items() if k != "baseline"},
        ),
        frozen=newest if newest is not None and newest.frozen_at else None,
    )


@require_http_methods(FORM_METHODS)
def add_check(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Say how one will know that the change was applied."""
    page = found(queries.hypothesis_page, slug, number)
    row, form = page.facts.hypothesis, CheckForm(request.POST or None)
    return _answer(
        request,
        page,
        form,
        f"How one will know that {row.label} was applied",
        lambda: lifecycle.add_applied_check(hypothesis=row, **form.cleaned_data),
        late=bool(page.runs),
    )


@require_http_methods(FORM_METHODS)
def link(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Say that it follows from, rules out or replaces another hypothesis."""
    page = found(queries.hypothesis_page, slug, number)
    row = page.facts.hypothesis
    others = [h.hypothesis for h in page.dossier.hypotheses if h.hypothesis.pk != row.pk]
    form = LinkForm(request.POST or None, hypotheses=others)
    return _answer(
        request,
        page,
        form,
        f"Link {row.label}",
        lambda: lifecycle.link_hypotheses(
            origin=row, kind=form.cleaned_data["kind"], other=form.row("hypothesis")
        ),
    )


def _in_force(page: HypothesisPage, run: int) -> Verdict:
    for verdict in page.facts.verdicts:
        if verdict.in_force and verdict.run.number == run:
            return verdict
    raise Http404(f"no verdict in force after R{run}")


@require_http_methods(FORM_METHODS)
def overrule(request: HttpRequest, slug: str, number: int, run: int) -> HttpResponse:
    """Put a person's verdict in place of the one in force, with a reason."""
    page = found(queries.hypothesis_page, slug, number)
    standing = _in_force(page, run)
    initial = {"applied": standing.applied, "outcome": standing.outcome}
    form = OverruleForm(request.POST or None, verdict=standing, initial=initial)
    return _answer(
        request,
        page,
        form,
        f"Overrule the verdict after R{run}",
        lambda: lifecycle.overrule(
            verdict=standing, by=request.user.get_username(), **form.cleaned_data
        ),
        standing=standing,
    )


@require_POST
def hand_back(request: HttpRequest, slug: str, number: int, run: int) -> HttpResponse:
    """Let the rules decide again."""
    page = found(queries.hypothesis_page, slug, number)
    try:
        lifecycle.hand_back(verdict=_in_force(page, run), by=request.user.get_username())
    except lifecycle.Refused as no:
        messages.error(request, str(no))
    return redirect(page.facts.hypothesis)
