"""The findings board: what is wrong anywhere, the gravest first."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.models import Finding, SavedView
from experiments.queries.board import board
from experiments.views.kept import kept
from specdebug.diagnosis.catalogue import CATALOGUE


@require_safe
def findings(request: HttpRequest) -> HttpResponse:
    """Findings of all investigations; severity, state, code and page stand in the address."""
    asked = {name: request.GET.get(name, "") for name in ("severity", "state", "code")}
    if "state" not in request.GET:
        asked["state"] = Finding.State.OPEN
    found = board(**asked, page=request.GET.get("page", "1"))
    states = Finding.State.choices
    query = urlencode({k: v for k, v in asked.items() if v or k == "state"})
    context = {
        "board": found,
        "rows": [(row, CATALOGUE.get(row.code)) for row in found.page],
        "states": states,
        "matrix": [
            (severity, [(state, found.count(severity, state)) for state, _ in states])
            for severity in Finding.Severity.values
        ],
        "query": query,
        "keep": kept(request, SavedView.Page.FINDINGS, query),
    }
    return render(request, "findings.html", context)
