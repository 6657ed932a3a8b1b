"""The cost account of an investigation, expected acceptance, and the curves that people add."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments import queries
from experiments.lifecycle.curves import METHODS, add_curve, remove_curve
from experiments.models import AcceptanceCurve
from experiments.refusal import Refused
from experiments.reports.account_plots import depths
from experiments.reports.accounts import account_page
from experiments.views.compare import plot_file
from experiments.views.forms import Form
from experiments.views.found import found


class CurveForm(Form):
    target = forms.CharField(
        max_length=100, help_text="Part of the target's path or served name, e.g. kimi-k2.5."
    )
    method = forms.ChoiceField(
        required=False, choices=[(m, m or "any") for m in METHODS], label="Drafting"
    )
    points = forms.CharField(
        label="Accept length by draft tokens",
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono"}),
        help_text="Like 1: 1.83, 2: 2.43. The bonus token counts.",
    )
    source = forms.CharField(max_length=300, help_text="Where the figures come from.")
    about = forms.CharField(
        required=False, max_length=200, help_text="Draft, prompts, temperature, engine."
    )


@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest, slug: str) -> HttpResponse:
    """What a step costs, which depth would pay, what would reach the goal; POST adds a curve."""
    page = found(queries.investigation_page, slug)
    form = CurveForm(request.POST or None)
    if form.is_valid():
        try:
            add_curve(**form.cleaned_data, by=request.user.get_username())
        except Refused as no:
            form.add_error("points" if "point" in str(no) else None, str(no))
        else:
            return redirect("account", slug=slug)
    shown = account_page(page)
    if not form.is_bound:
        form.initial["target"] = shown.target.rsplit("/", 1)[-1]
    context = {
        "investigation": page.investigation,
        "goal": page.goal,
        "account": shown,
        "form": form,
    }
    return render(request, "account.html", context)


@require_safe
def plot(request: HttpRequest, slug: str, number: int, form: str) -> HttpResponse:
    """The depths of one account, counted from 1 as on the page, as a file."""
    page = found(queries.investigation_page, slug)
    families = account_page(page).families
    goal = page.goal.target if page.goal.metric == "tok_s" else None
    drawn = depths(families[number - 1], number, goal) if 0 < number <= len(families) else None
    return plot_file(drawn, form, slug)


@require_POST
def forget_curve(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Remove a curve that somebody added."""
    row = get_object_or_404(AcceptanceCurve, pk=pk)
    remove_curve(row)
    messages.info(request, f"Removed the curve of {row.target} from {row.source}.")
    return redirect("account", slug=slug)
