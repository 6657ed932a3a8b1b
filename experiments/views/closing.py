"""Closing an investigation: what is left is listed, and overruled with a name and a reason."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from experiments import lifecycle, queries
from experiments.views.found import found
from experiments.views.hypothesis_forms import ClosingForm


@require_http_methods(["GET", "HEAD", "POST"])
def close(request: HttpRequest, slug: str) -> HttpResponse:
    """Resolve or abandon."""
    page = found(queries.investigation_page, slug)
    row = page.investigation
    form = ClosingForm(request.POST or None, initial={"name": request.user.get_username()})
    status = 200
    if form.is_valid():
        by, reason = form.cleaned_data["name"], form.cleaned_data["reason"]
        try:
            if form.cleaned_data["outcome"] == "abandoned":
                lifecycle.abandon(investigation=row, by=by, reason=reason)
            else:
                # A name alone signs nothing: it stands in the form from the start.
                signed = by if reason.strip() else ""
                lifecycle.resolve(investigation=row, exception_by=signed, exception_reason=reason)
        except lifecycle.Refused as no:
            # The list stands on the page already; the rows may have changed since it was read.
            form.add_error(None, "Not resolved: see what is left." if no.obstacles else str(no))
            page = found(queries.investigation_page, slug)
            status = 409 if no.obstacles else 200
        else:
            return redirect(row)
    context = {"form": form, "page": page, "goal": page.goal, "investigation": row}
    return render(request, "close.html", context, status=status)
