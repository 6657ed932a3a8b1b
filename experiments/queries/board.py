"""Findings of all investigations, by severity and state; 3 queries however many there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.core.paginator import Page, Paginator
from django.db.models import Case, Count, IntegerField, Value, When

from experiments.models import Finding

PER_PAGE = 50


@dataclass(frozen=True)
class Board:
    """One page of findings, the gravest first. counts: (severity, state) -> how many in all."""

    page: Page[Finding]
    counts: Mapping[tuple[str, str], int]
    severity: str
    state: str
    code: str

    def count(self, severity: str, state: str) -> int:
        return self.counts.get((severity, state), 0)


def board(*, severity: str = "", state: str = "", code: str = "", page: str = "1") -> Board:
    """Findings of a severity, a state or a code; an empty word or an unknown one means any."""
    severity = severity if severity in Finding.Severity.values else ""
    state = state if state in Finding.State.values else ""
    rank = Case(
        *(When(severity=name, then=Value(i)) for i, name in enumerate(Finding.Severity.values)),
        output_field=IntegerField(),
    )
    rows = Finding.objects.select_related(
        "investigation", "opened_in", "seen_in", "fixed_in"
    ).order_by(rank, "-updated_at", "pk")
    counts = {
        (kind, held): number
        for kind, held, number in Finding.objects.values_list("severity", "state").annotate(
            Count("pk")
        )
    }
    if severity:
        rows = rows.filter(severity=severity)
    if state:
        rows = rows.filter(state=state)
    if code:
        rows = rows.filter(code=code)
    # Only what the page shows: a finding's evidence and a run's plan can be long.
    rows = rows.only(
        *("code", "severity", "state", "statement", "updated_at"),
        *("investigation__slug", "investigation__title"),
        *(f"{link}__number" for link in ("opened_in", "seen_in", "fixed_in")),
    )
    return Board(Paginator(rows, PER_PAGE).get_page(page), counts, severity, state, code)
