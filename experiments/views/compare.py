"""Two to eight runs side by side against a pinned baseline; everything stands in the address."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Protocol
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.models import SavedView
from experiments.queries.comparison import FEWEST, MOST, Compared, compared, name_of
from experiments.reports.comparing import Comparing, comparing
from experiments.reports.plots import Plot
from experiments.views.kept import kept


def _read(request: HttpRequest) -> Compared:
    return compared(request.GET.getlist("run"), request.GET.get("base", ""))


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """What differs first, then figures with their intervals, then what is the same."""
    found = _read(request)
    told = comparing(found) if len(found.runs) >= FEWEST else None
    context = {
        "found": found,
        "told": told,
        "most": MOST,
        "full": len(found.runs) >= MOST,
        "chips": [_chip(found, i) for i in range(len(found.runs))],
        "offered": [(name_of(run), run) for run in found.offered],
        "query": _query(found),
        "keep": kept(request, SavedView.Page.COMPARE, _query(found)) if told else None,
    }
    return render(request, "compare.html", context)


def _query(found: Compared) -> str:
    """The comparison's own address, as asked or as it was completed."""
    return _address([name_of(f.run) for f in found.runs], found.baseline)


def _address(names: Iterable[str], baseline: object) -> str:
    pairs = [("run", name) for name in names]
    if baseline is not None:
        pairs.append(("base", name_of(baseline.run)))  # type: ignore[attr-defined]
    return urlencode(pairs, safe="/")


def _chip(found: Compared, index: int) -> dict[str, object]:
    """A run at the head of the page, with the addresses that unpick it or pin it."""
    facts = found.runs[index]
    names = [name_of(f.run) for f in found.runs]
    others = names[:index] + names[index + 1 :]
    kept = None if facts is found.baseline else found.baseline
    return {
        "facts": facts,
        "hue": facts.run.number % 8,
        "pinned": facts is found.baseline,
        "without": _address(others, kept),
        "pin": _address(names, facts),
    }


@require_safe
def plot(request: HttpRequest, name: str, form: str) -> HttpResponse:
    """One of the comparison's plots as a file."""
    found = _read(request)
    if len(found.runs) < FEWEST:
        raise Http404("The address names fewer than two runs.")
    told: Comparing = comparing(found)
    return plot_file(next((p for p in told.plots if p.name == name), None), form, "comparison")


def plot_file(plot: Plot | None, form: str, of: str) -> HttpResponse:
    """A plot as CSV, SVG or PNG to keep; 404 where there is no such plot."""
    if plot is None:
        raise Http404("There is no such drawing.")
    return drawing_file(plot.drawing, plot.head, plot.rows, form, f"{of}-{plot.name}")


class Drawn(Protocol):
    """What can be had as a file of its own and as a picture."""

    @property
    def file(self) -> str: ...
    @property
    def png(self) -> bytes: ...


def drawing_file(
    drawn: Drawn,
    head: Iterable[str],
    rows: Iterable[Iterable[object]],
    form: str,
    name: str,
) -> HttpResponse:
    """A drawing as CSV (its figures), SVG or PNG to keep; 404 for any other form."""
    if form == "csv":
        answer = HttpResponse(content_type="text/csv; charset=utf-8")
        writer = csv.writer(answer)
        writer.writerow(head)
        writer.writerows([_plain(cell) for cell in row] for row in rows)
    elif form == "svg":
        answer = HttpResponse(drawn.file, content_type="image/svg+xml")
    elif form == "png":
        answer = HttpResponse(drawn.png, content_type="image/png")
    else:
        raise Http404("There is no such drawing.")
    answer["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return answer


def _plain(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula."""
    if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{cell}"
    return "" if cell is None else cell
