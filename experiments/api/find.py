"""From an address to a row; what is not there raises DoesNotExist, which is answered as 404."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import Any, cast

from rest_framework import exceptions

from experiments.models import Finding, Hypothesis, Investigation, Run
from experiments.queries.prepared import Prepared

_LARGEST = 1 << 31
_OPENED = Prepared(lambda slug: Investigation.objects.only("slug").filter(slug=slug))
_MEASURED = Prepared(
    lambda slug, number: Run.objects.only(
        "number", "state", "by_script", "plan", "investigation"
    ).filter(investigation__slug=slug, number=number),
)


def investigation(slug: str) -> Investigation:
    return Investigation.objects.select_related("baseline", "created_by").get(slug=slug)


def opened(slug: str) -> Investigation:
    """An investigation that is only a place for runs: no more than its name, since programs ask
    often."""
    return _OPENED.get(slug)


def run(slug: str, number: int) -> Run:
    """A run with what its representation follows."""
    return Run.objects.select_related("investigation", "hypothesis").get(
        investigation__slug=slug, number=_bounded(number)
    )


def measured(slug: str, number: int) -> Run:
    """A run that a program sends to many times a minute: only what taking needs, since a query of
    all columns with its joins costs more than a thousand points do."""
    return _MEASURED.get(slug, _bounded(number))


def hypothesis(slug: str, number: int) -> Hypothesis:
    return Hypothesis.objects.select_related("investigation").get(
        investigation__slug=slug, number=_bounded(number)
    )


def finding(slug: str, code: str) -> Finding:
    return Finding.objects.select_related("investigation", "opened_in", "seen_in", "fixed_in").get(
        investigation__slug=slug, code=code
    )


def _bounded(number: int) -> int:
    """A number that every database can look for."""
    return min(number, _LARGEST - 1)


def run_in(row: Investigation, field: str, label: str | None) -> Run | None:
    """The run that a field of a request names, R3; a complaint about that field where there is
    none."""
    if not label:
        return None
    found = Run.objects.filter(investigation=row, number=_bounded(int(label[1:]))).first()
    if found is None:
        raise exceptions.ValidationError({field: [f"there is no run {label} in {row.slug}"]})
    found.investigation = row
    return found


def hypothesis_in(row: Investigation, field: str, label: str | None) -> Hypothesis | None:
    """The same for H2."""
    if not label:
        return None
    found = Hypothesis.objects.filter(investigation=row, number=_bounded(int(label[1:]))).first()
    if found is None:
        raise exceptions.ValidationError({field: [f"there is no hypothesis {label} in {row.slug}"]})
    found.investigation = row
    return found


@cache
def _reader(shape: Any, partial: bool) -> Any:
    """Bound once: to copy a shape's fields for each request costs more than to read the body, and
    reading leaves nothing in it."""
    return shape(partial=partial)


def checked(shape: type[Any], data: Any, *, partial: bool = False) -> dict[str, Any]:
    """A request's body as the shape takes it; raises ValidationError with every complaint."""
    if data is None:
        raise exceptions.ValidationError({"non_field_errors": ["No data provided"]})
    return dict(_reader(cast(Hashable, shape), partial).run_validation(data))
