"""Investigations: opened with a goal, and closed by the rules or by a signed exception."""

from __future__ import annotations

import math
from typing import Any, TypedDict, Unpack

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from experiments import webhooks
from experiments.lifecycle.hypotheses import METRICS
from experiments.lifecycle.place import lock
from experiments.lifecycle.text import needed
from experiments.models import Investigation, Run
from experiments.queries import closing_obstacles
from experiments.refusal import Refused

LONGEST_TEXT = 20000


class InvestigationChanges(TypedDict, total=False):
    """What may be changed of an investigation."""

    title: str
    question: str
    context: str
    goal_metric: str
    goal_kind: str
    goal_value: float
    baseline: Run | None
    notes: dict[str, Any]


def create_investigation(
    *,
    title: str,
    question: str,
    context: str = "",
    goal_metric: str = "tok_s",
    goal_kind: str = Investigation.Goal.BEAT_BASELINE,
    goal_value: float = 1.0,
    notes: dict[str, Any] | None = None,
    source: str = "",
    created_by: User | None = None,
) -> Investigation:
    """Open an investigation. `goal_value` is a factor of the baseline for beat-baseline, else a
    figure in the metric's unit; `notes` has the form of the notes of `specdebug check`."""
    _check_goal(goal_metric, goal_kind, goal_value)
    title = needed(title, "title", 200)
    with transaction.atomic():
        return Investigation.objects.create(
            slug=_free_slug(title),
            title=title,
            question=needed(question, "question", LONGEST_TEXT),
            context=context,
            goal_metric=goal_metric,
            goal_kind=goal_kind,
            goal_value=goal_value,
            notes=notes or {},
            source=source,
            created_by=created_by,
        )


def _free_slug(title: str) -> str:
    base = slugify(title)[:70].strip("-") or "investigation"
    taken = set(Investigation.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    if base not in taken:
        return base
    return next(s for n in range(2, len(taken) + 3) if (s := f"{base}-{n}") not in taken)


def _check_goal(metric: str, kind: str, value: float) -> None:
    if metric not in METRICS:
        raise Refused(f"{metric!r} is no metric of a run; choose one of {', '.join(METRICS)}")
    if kind not in Investigation.Goal.values:
        known = ", ".join(Investigation.Goal.values)
        raise Refused(f"{kind!r} is no goal; choose one of {known}")
    if not (math.isfinite(value) and value > 0):
        raise Refused(f"the goal's value {value!r} must be above zero")


def edit_investigation(
    investigation: Investigation, **changes: Unpack[InvestigationChanges]
) -> Investigation:
    """Change what is given; the address (slug) stays."""
    values: dict[str, Any] = dict(changes)
    _check_goal(
        values.get("goal_metric", investigation.goal_metric),
        values.get("goal_kind", investigation.goal_kind),
        values.get("goal_value", investigation.goal_value),
    )
    if "title" in values:
        values["title"] = needed(values["title"], "title", 200)
    if "question" in values:
        values["question"] = needed(values["question"], "question", LONGEST_TEXT)
    baseline = values.get("baseline")
    if baseline is not None and baseline.investigation_id != investigation.pk:
        raise Refused(f"{baseline.label} belongs to another investigation")
    for name, value in values.items():
        setattr(investigation, name, value)
    investigation.save(update_fields=[*values, "updated_at"])
    return investigation


def obstacles(investigation: Investigation) -> tuple[str, ...]:
    """What stands in the way of calling the investigation resolved, a sentence each."""
    return closing_obstacles(investigation)


def resolve(
    *, investigation: Investigation, exception_by: str = "", exception_reason: str = ""
) -> Investigation:
    """Call it resolved: refused with the list of what is left, unless someone signs why not."""
    signed = bool(exception_by.strip() or exception_reason.strip())
    if signed:
        exception_by = needed(exception_by, "name under the exception", 150)
        exception_reason = needed(exception_reason, "reason of the exception", LONGEST_TEXT)
    with transaction.atomic():
        lock(investigation)
        left = closing_obstacles(investigation)
        if left and not signed:
            raise Refused(f"not resolved yet. {' '.join(left)}", left)
        _close(
            investigation,
            Investigation.State.RESOLVED,
            exception_by if left else "",
            exception_reason if left else "",
        )
    return investigation


def abandon(*, investigation: Investigation, by: str, reason: str) -> Investigation:
    """Stop without an answer; needs a name and a reason."""
    by, reason = needed(by, "name", 150), needed(reason, "reason", LONGEST_TEXT)
    with transaction.atomic():
        _close(investigation, Investigation.State.ABANDONED, by, reason)
    return investigation


def _close(investigation: Investigation, state: str, by: str, reason: str) -> None:
    open_ = Investigation.objects.filter(pk=investigation.pk, state=Investigation.State.OPEN)
    now = timezone.now()
    if not open_.update(
        state=state, exception_by=by, exception_reason=reason, closed_at=now, updated_at=now
    ):
        investigation.refresh_from_db()
        raise Refused(f"the investigation is {investigation.state} already; reopen it first")
    investigation.refresh_from_db()
    webhooks.announce_closing(investigation)


def reopen(*, investigation: Investigation) -> Investigation:
    """Open it again; an exception that was signed is taken back."""
    closed = Investigation.objects.filter(pk=investigation.pk).exclude(
        state=Investigation.State.OPEN
    )
    with transaction.atomic():
        if not closed.update(
            state=Investigation.State.OPEN,
            exception_by="",
            exception_reason="",
            closed_at=None,
            updated_at=timezone.now(),
        ):
            raise Refused("the investigation is open")
        investigation.refresh_from_db()
        webhooks.announce_closing(investigation)
    return investigation
