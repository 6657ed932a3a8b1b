"""Search over everything; query, kind and page stand in the address, which can be kept by name."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.models import SavedView
from experiments.queries.kinds import KINDS
from experiments.queries.matches import matches
from experiments.views.kept import kept

EXAMPLES = (
    ("aux layer", "words, wherever they stand"),
    ("state:failed", "runs that failed"),
    ("metrics.tok_s > 60 AND params.speculative_num_steps IN (1, 3)", "figures and arguments"),
    ("finding = aux-layer-mismatch OR finding = draft-tokens-overridden", "runs with a fault"),
    ("severity IN (critical, high) AND state = open", "grave findings that are open"),
    ("engine = sglang AND ended > 2026-11-01", "runs since a day"),
)


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """What the query finds, by kind."""
    text, kind = request.GET.get("q", "")[:4000], request.GET.get("kind", "")
    kind = kind if kind in KINDS else ""
    found = matches(text, kind, request.GET.get("page", "1"))
    query = urlencode({"q": text, **({"kind": kind} if kind else {})})
    context = {
        "q": text,
        "kind": kind,
        "kinds": list(KINDS),
        "found": found,
        "runs": [(run, found.figures.get(run.pk)) for run in found.rows.get("run", ())],
        "query": query,
        "examples": EXAMPLES,
        "fields": [
            (name, [*known.fields, *(f"{prefix}.NAME" for prefix in known.prefixes)])
            for name, known in KINDS.items()
        ],
        "keep": kept(request, SavedView.Page.SEARCH, query),
    }
    return render(request, "search.html", context)
