"""The kinds of objects that can be searched, with the fields each is asked by; how a query is read
stands in `language`, what it leaves of the rows in `search`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from experiments.models import (
    ConfigEntry,
    Event,
    Evidence,
    Finding,
    Hypothesis,
    Investigation,
    MetricSummary,
    Run,
)
from experiments.queries.conditions import (
    Condition,
    any_of,
    as_text,
    flag,
    labelled,
    moment,
    number,
    numbers,
    text,
)
from experiments.queries.json_values import JsonNumber, JsonText
from experiments.queries.language import Operator, Term


@dataclass(frozen=True)
class Kind:
    """One kind of object: its table, its fields, and the columns in which free text is looked for.

    prefixes: fields of a family, as metrics.NAME; orders: what rows can be ordered by; left:
    wide columns that a list does not show; of other rows only what names them is read.
    """

    name: str
    model: type[Model]
    words: tuple[str, ...]
    fields: Mapping[str, Condition]
    related: tuple[str, ...] = ()
    prefixes: Mapping[str, Callable[[Term, str], Q]] = field(default_factory=dict)
    orders: Mapping[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()

    @property
    def rows(self) -> QuerySet[Any]:
        return self.model._default_manager.select_related(*self.related).defer(*self.left)


def _metric(term: Term, name: str) -> Q:
    """Runs by one of their metrics; != and NOT also hold for a run that lacks it."""
    # Asked of one run at a time, by the index of run and name, so that a list in the order of a
    # metric can stop at its first piece.
    rows = MetricSummary.objects.filter(name=name, run=OuterRef("pk"))
    if term.operator in ("known", "unknown"):
        has = Q(Exists(rows))
        return has if term.operator == "known" else ~has
    if term.operator == "!=":
        return ~_metric(Term(term.field, "in", term.values, term.place), name)
    return Q(Exists(rows.filter(numbers("value", term))))


def _parameter(term: Term, name: str) -> Q:
    """Runs by one of their arguments: the value in force, else the one that was asked for."""
    rows = ConfigEntry.objects.filter(key=name)
    if term.operator in ("known", "unknown"):
        has = Q(pk__in=rows.values("run_id"))
        return has if term.operator == "known" else ~has
    if term.operator in ("!=", "!~"):
        opposite: Operator = "in" if term.operator == "!=" else "~"
        return ~_parameter(Term(term.field, opposite, term.values, term.place), name)
    rows = rows.annotate(
        now_number=JsonNumber("effective"),
        asked_number=JsonNumber("requested"),
        now_text=JsonText("effective"),
        asked_text=JsonText("requested"),
    )
    now, asked = (_json_value(column, term) for column in ("now", "asked"))
    held = (Q(effective_known=True) & now) | Q(effective_known=False, was_requested=True) & asked
    return Q(pk__in=rows.filter(held).values("run_id"))


def _json_value(column: str, term: Term) -> Q:
    figures = [v for v in term.values if isinstance(v, int | float) and not isinstance(v, bool)]
    if term.operator in ("in", "="):
        texts = any_of(Q(**{f"{column}_text__iexact": as_text(value)}) for value in term.values)
        return texts | Q(**{f"{column}_number__in": figures})
    if term.operator == "~":
        return Q(**{f"{column}_text__icontains": as_text(term.values[0])})
    if len(figures) == len(term.values):
        return numbers(f"{column}_number", term)
    return text(f"{column}_text")(term)


def _shown_finding(term: Term) -> Q:
    """Runs that opened, last showed, or fixed a finding of this code."""
    matching = text("code")(
        Term(term.field, "in" if term.operator == "!=" else term.operator, term.values, term.place)
    )
    events = Finding.objects.filter(matching, events__run__isnull=False)
    held = Q(pk__in=events.values("events__run_id"))
    return ~held if term.operator == "!=" else held


def _unnamed(link: str, model: type[Model]) -> tuple[str, ...]:
    """The columns of a linked row that neither name it nor lead to its page."""
    named = {"id", "slug", "number", "title", "state", "investigation"}
    return tuple(f"{link}__{f.name}" for f in model._meta.concrete_fields if f.name not in named)


OF_INVESTIGATION = _unnamed("investigation", Investigation)


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "investigation",
            Investigation,
            ("title", "question", "context", "slug"),
            {
                "title": text("title"),
                "question": text("question"),
                "slug": text("slug"),
                "state": text("state"),
                "goal_metric": text("goal_metric"),
                "by": text("created_by__username"),
                "created": moment("created_at"),
                "updated": moment("updated_at"),
                "closed": moment("closed_at"),
            },
            related=("baseline", "created_by"),
            orders={"created": "pk", "updated": "updated_at", "title": "title"},
        ),
        Kind(
            "run",
            Run,
            ("title", "note", "host", "reason"),
            {
                "title": text("title"),
                "note": text("note"),
                "state": text("state"),
                "engine": text("engine"),
                "release": text("engine_release"),
                "host": text("host"),
                "worker": text("worker"),
                "reason": text("reason"),
                "investigation": text("investigation__slug"),
                "label": labelled("R", "number"),
                "hypothesis": labelled("H", "hypothesis__number"),
                "baseline": labelled("R", "baseline__number"),
                "recorded": flag("recorded"),
                "by_script": flag("by_script"),
                "finding": _shown_finding,
                "created": moment("created_at"),
                "ended": moment("ended_at"),
            },
            related=("investigation", "hypothesis"),
            prefixes={"metrics": _metric, "params": _parameter},
            orders={"created": "pk", "label": "number", "title": "title"},
            left=(
                *("plan", "server_info", "argv", "env", "versions", "shown", "untried"),
                *("preflight", "provenance", "gpus", "accept_lengths"),
                *OF_INVESTIGATION,
                *_unnamed("hypothesis", Hypothesis),
            ),
        ),
        Kind(
            "hypothesis",
            Hypothesis,
            ("claim", "mechanism"),
            {
                "claim": text("claim"),
                "mechanism": text("mechanism"),
                "by": text("author"),
                "label": labelled("H", "number"),
                "investigation": text("investigation__slug"),
                "created": moment("created_at"),
            },
            related=("investigation",),
            orders={"created": "pk", "label": "number"},
            left=OF_INVESTIGATION,
        ),
        Kind(
            "finding",
            Finding,
            ("code", "statement", "fix"),
            {
                "code": text("code"),
                "severity": text("severity"),
                "confidence": text("confidence"),
                "state": text("state"),
                "statement": text("statement"),
                "investigation": text("investigation__slug"),
                "opened_in": labelled("R", "opened_in__number"),
                "fixed_in": labelled("R", "fixed_in__number"),
                "created": moment("created_at"),
                "updated": moment("updated_at"),
            },
            related=("investigation", "opened_in", "seen_in", "fixed_in"),
            orders={"created": "pk", "updated": "updated_at", "code": "code"},
            left=(
                *OF_INVESTIGATION,
                *(c for link in ("opened_in", "seen_in", "fixed_in") for c in _unnamed(link, Run)),
            ),
        ),
        Kind(
            "event",
            Event,
            ("title", "text"),
            {
                "title": text("title"),
                "text": text("text"),
                "kind": text("kind"),
                "by": text("author"),
                "investigation": text("investigation__slug"),
                "created": moment("created_at"),
            },
            related=("investigation",),
            orders={"created": "pk"},
            left=OF_INVESTIGATION,
        ),
        Kind(
            "evidence",
            Evidence,
            ("name", "kind"),
            {
                "name": text("name"),
                "kind": text("kind"),
                "sha256": text("blob_id"),
                "size": number("blob__size"),
                "by": text("added_by"),
                "investigation": text("investigation__slug"),
                "run": labelled("R", "run__number"),
                "added": moment("added_at"),
            },
            related=("investigation", "run", "blob"),
            orders={"created": "pk", "name": "name"},
            left=(*OF_INVESTIGATION, *_unnamed("run", Run)),
        ),
    )
}
