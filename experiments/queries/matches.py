"""What the search page shows: matches of every kind, or one kind page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator

from experiments.models import Repeat, Run
from experiments.queries.dossier import grouped
from experiments.queries.figures import Figures, figures_of
from experiments.queries.search import KINDS, BadQuery, narrowed, search

PER_PAGE = 50
FIRST = 8  # of each kind, where all kinds are shown


@dataclass(frozen=True)
class Matches:
    """Rows by kind, newest first. more: kinds with more rows than shown; page: of a single kind.

    problem: why the text is no query, "" where it is one; place: the character where it fails.
    """

    rows: Mapping[str, Sequence[Any]]
    figures: Mapping[int, Figures]
    more: frozenset[str] = frozenset()
    page: Page[Any] | None = None
    problem: str = ""
    place: int = 0

    @property
    def total(self) -> int:
        return sum(len(rows) for rows in self.rows.values())


def matches(text: str, kind: str = "", page: str = "1") -> Matches:
    """What a query finds; an empty one finds nothing. One query a kind, and one for the figures."""
    if not text.strip() and kind not in KINDS:
        return Matches({}, {})
    try:
        if kind in KINDS:
            rows = narrowed(KINDS[kind], text).order_by("-pk")
            shown = Paginator(rows, PER_PAGE).get_page(page)
            found: Mapping[str, Sequence[Any]] = {kind: list(shown)}
            return Matches(found, _figures(found), page=shown)
        both = search(text, limit=FIRST)
    except BadQuery as no:
        return Matches({}, {}, problem=str(no), place=no.place)
    kept = {name: rows for name, rows in both.rows.items() if rows}
    return Matches(kept, _figures(kept), both.more)


def _figures(rows: Mapping[str, Sequence[Any]]) -> dict[int, Figures]:
    runs: Sequence[Run] = rows.get("run", ())
    if not runs:
        return {}
    repeats = grouped(Repeat.objects.filter(run__in=[r.pk for r in runs]), lambda r: r.run_id)
    return {run.pk: figures_of(repeats.get(run.pk, [])) for run in runs}
