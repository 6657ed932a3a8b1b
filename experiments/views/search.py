"""Search over everything; query, kind and page stand in the address, which can be kept by name."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.lifecycle.saved import remove_view, save_view
from experiments.models import SavedView
from experiments.queries.matches import matches
from experiments.queries.search import KINDS
from experiments.refusal import Refused

EXAMPLES = (
    ("aux layer", "words, wherever they stand"),
    ("state:failed", "runs that failed"),
    ("metrics.tok_s > 60 AND params.speculative_num_steps IN (1, 3)", "figures and arguments"),
    ("finding = aux-layer-mismatch OR finding = draft-tokens-overridden", "runs with a fault"),
    ("severity IN (critical, high) AND state = open", "grave findings that are open"),
    ("engine = sglang AND ended > 2026-11-01", "runs since a day"),
)


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 (login is required)
    return request.user


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """What the query finds, by kind."""
    text, kind = request.GET.get("q", "")[:4000], request.GET.get("kind", "")
    kind = kind if kind in KINDS else ""
    found = matches(text, kind, request.GET.get("page", "1"))
    context = {
        "q": text,
        "kind": kind,
        "kinds": list(KINDS),
        "found": found,
        "runs": [(run, found.figures.get(run.pk)) for run in found.rows.get("run", ())],
        "query": urlencode({"q": text, **({"kind": kind} if kind else {})}),
        "examples": EXAMPLES,
        "fields": [
            (name, [*known.fields, *(f"{prefix}.NAME" for prefix in known.prefixes)])
            for name, known in KINDS.items()
        ],
        "views": SavedView.objects.filter(user=_user(request)),
    }
    return render(request, "search.html", context)


@require_POST
def keep(request: HttpRequest) -> HttpResponse:
    """Keep the address of a page under a name."""
    try:
        view = save_view(
            user=_user(request),
            page=request.POST.get("page", ""),
            name=request.POST.get("name", ""),
            query=request.POST.get("query", ""),
        )
    except Refused as no:
        messages.error(request, str(no))
        return redirect("search")
    messages.success(request, f"Kept as “{view.name}”; it stands on the search page.")
    return redirect(view)


@require_POST
def forget(request: HttpRequest, pk: int) -> HttpResponse:
    """Let go of a kept view."""
    remove_view(user=_user(request), pk=pk)
    return redirect("search")
