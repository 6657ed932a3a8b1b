"""Reference curves of accept lengths that people add beside the shipped ones."""

from __future__ import annotations

from django.db import transaction

from experiments.lifecycle.text import needed
from experiments.models import AcceptanceCurve
from experiments.refusal import Refused
from specdebug.eagle.curves import parse_points

METHODS = ("", "eagle3", "mtp", "dspark")
MOST_CURVES = 500


def add_curve(
    *, target: str, points: str, source: str, method: str = "", about: str = "", by: str = ""
) -> AcceptanceCurve:
    """Add a curve, or return the equal one that is there; refused with the part that is no point.

    points: "1: 1.83, 2: 2.43". target: a part of the target's path or served name.
    """
    target, source = needed(target, "target", 100).lower(), needed(source, "source", 300)
    if len(target) < 3:
        raise Refused(f"the target {target!r} would match almost any model; name more of it")
    if method not in METHODS:
        raise Refused(f"{method!r} is no way of drafting; choose one of {', '.join(METHODS[1:])}")
    try:
        known = parse_points(points[:10000])
    except ValueError as no:
        raise Refused(str(no)) from None
    lengths = {str(n): value for n, value in known.items()}
    # In one transaction, so that a form sent twice at once finds the curve of the first.
    with transaction.atomic():
        for row in AcceptanceCurve.objects.filter(target=target, method=method, source=source):
            if row.accept_len == lengths:
                return row
        if AcceptanceCurve.objects.count() >= MOST_CURVES:
            raise Refused(f"there are {MOST_CURVES} curves; remove some first")
        return AcceptanceCurve.objects.create(
            target=target,
            method=method,
            accept_len=lengths,
            about=about.strip()[:200],
            source=source,
            added_by=by[:150],
        )


def remove_curve(row: AcceptanceCurve) -> None:
    """Take a curve away; verdicts never rest on one."""
    row.delete()
