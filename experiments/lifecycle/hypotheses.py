"""Hypotheses, their links, predictions and applied checks: registered before the run, then kept."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction

from experiments import checkup
from experiments.lifecycle.place import lock, next_number, place
from experiments.lifecycle.text import needed
from experiments.models import (
    AppliedCheck,
    Hypothesis,
    HypothesisLink,
    Investigation,
    Prediction,
    Run,
    Verdict,
)
from experiments.refusal import Refused

# Metrics that a repeat carries; definitions in docs/metrics.md.
METRICS = ("tok_s", "accept_len", "step_ms")
# What may be linked: (kind, the other hypothesis).
Link = tuple[str, Hypothesis]


def add_hypothesis(
    *,
    investigation: Investigation,
    claim: str,
    mechanism: str = "",
    author: str = "",
    links: Iterable[Link] = (),
    recorded: bool = False,
    at: datetime | None = None,
    after: float | None = None,
) -> Hypothesis:
    """State a hypothesis; `recorded` where it comes from a write-up and was not registered live."""
    with transaction.atomic():
        lock(investigation)
        hypothesis = Hypothesis.objects.create(
            investigation=investigation,
            number=next_number(investigation),
            claim=needed(claim, "claim", 400),
            mechanism=mechanism.strip(),
            author=author[:150],
            position=place(investigation, after),
            recorded=recorded,
            at=at,
        )
        for kind, other in links:
            link_hypotheses(origin=hypothesis, kind=kind, other=other)
    return hypothesis


def link_hypotheses(*, origin: Hypothesis, kind: str, other: Hypothesis) -> HypothesisLink:
    """Say that `origin` follows from, rules out or replaces `other`; twice changes nothing."""
    if kind not in HypothesisLink.Kind.values:
        known = ", ".join(HypothesisLink.Kind.values)
        raise Refused(f"{kind!r} is no kind of link; choose one of {known}")
    if origin.pk == other.pk:
        raise Refused(f"{origin.label} cannot be linked to itself")
    if origin.investigation_id != other.investigation_id:
        raise Refused(f"{other.label} belongs to another investigation")
    return HypothesisLink.objects.get_or_create(origin=origin, kind=kind, other=other)[0]


def edit_hypothesis(hypothesis: Hypothesis, *, claim: str, mechanism: str) -> Hypothesis:
    """Change the wording; refused once a run was claimed for it: the claim was then tested."""
    if _tested(hypothesis):
        raise Refused(
            f"{hypothesis.label} has been tested by a run and stays as it was stated; "
            "add a new hypothesis that replaces it"
        )
    hypothesis.claim, hypothesis.mechanism = needed(claim, "claim", 400), mechanism.strip()
    hypothesis.save(update_fields=["claim", "mechanism"])
    return hypothesis


def _tested(hypothesis: Hypothesis) -> bool:
    waiting = (Run.State.DRAFT, Run.State.QUEUED)
    return Run.objects.filter(hypothesis=hypothesis).exclude(state__in=waiting).exists()


def register_prediction(
    *,
    hypothesis: Hypothesis,
    metric: str = "tok_s",
    baseline: Run | None = None,
    direction: str = Prediction.Direction.UP,
    low: float | None = None,
    high: float | None = None,
    margin: float = 0.02,
) -> Prediction:
    """Register what the hypothesis predicts, or change it.

    `low` and `high` bound the ratio run / baseline for `within`; `margin` is the smallest ratio
    change that matters. Until the first run is claimed the prediction is changed in place; after
    that it is frozen and a change becomes a new version, which binds later runs only.
    """
    _check_prediction(hypothesis, metric, baseline, direction, low, high, margin)
    values: dict[str, Any] = {
        "metric": metric,
        "baseline": baseline,
        "direction": direction,
        "low": low,
        "high": high,
        "margin": margin,
    }
    with transaction.atomic():
        lock(hypothesis.investigation)
        newest = hypothesis.predictions.order_by("-version").first()
        if newest is not None and all(getattr(newest, k) == v for k, v in values.items()):
            return newest
        # The claim of a run may freeze it in this very moment: then it is not ours to change.
        if newest is not None and newest.frozen_at is None:
            unfrozen = Prediction.objects.filter(pk=newest.pk, frozen_at=None)
            if unfrozen.update(**values):
                newest.refresh_from_db()
                return newest
        version = newest.version + 1 if newest else 1
        return Prediction.objects.create(hypothesis=hypothesis, version=version, **values)


def _check_prediction(
    hypothesis: Hypothesis,
    metric: str,
    baseline: Run | None,
    direction: str,
    low: float | None,
    high: float | None,
    margin: float,
) -> None:
    if metric not in METRICS:
        raise Refused(f"{metric!r} is no metric of a run; choose one of {', '.join(METRICS)}")
    if baseline is None:
        raise Refused("a prediction needs the run it compares with; choose one")
    if baseline.investigation_id != hypothesis.investigation_id:
        raise Refused(f"{baseline.label} belongs to another investigation")
    if direction not in Prediction.Direction.values:
        known = ", ".join(Prediction.Direction.values)
        raise Refused(f"{direction!r} is no direction; choose one of {known}")
    if not (math.isfinite(margin) and 0 <= margin < 1):
        raise Refused(f"the margin {margin!r} must lie between 0 and 1 (0.02 is 2 %)")
    if direction == Prediction.Direction.WITHIN:
        if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
            raise Refused("an interval needs both bounds, as factors of the baseline")
        if not 0 < low < high:
            raise Refused(f"the interval {low} to {high} is empty or not above zero")


def add_applied_check(
    *, hypothesis: Hypothesis, kind: str, key: str = "", expected: Any = None
) -> AppliedCheck:
    """Say how one will know that the change was applied; binds runs that are claimed later."""
    if kind not in AppliedCheck.Kind.values:
        known = ", ".join(AppliedCheck.Kind.values)
        raise Refused(f"{kind!r} is no kind of check; choose one of {known}")
    if kind == AppliedCheck.Kind.CAPTURED_LAYERS:
        if not isinstance(expected, list) or not expected:
            raise Refused(
                'the captured layers must be a list like ["embed", 3, 31]: "embed" for the '
                "embedding's output, a number for that layer's input"
            )
    else:
        what = (
            "argument's name" if kind == AppliedCheck.Kind.EFFECTIVE_EQUALS else "text of the line"
        )
        key = needed(key, what, 200)
    return AppliedCheck.objects.create(hypothesis=hypothesis, kind=kind, key=key, expected=expected)


def overrule(
    *,
    verdict: Verdict,
    by: str,
    reason: str,
    applied: str | None = None,
    outcome: str | None = None,
) -> Verdict:
    """Put a person's verdict in place of the one in force; the old one stays in the history."""
    by, reason = needed(by, "name", 150), needed(reason, "reason", 500)
    applied = applied or verdict.applied
    outcome = outcome or verdict.outcome
    if applied not in Verdict.Applied.values or outcome not in Verdict.Outcome.values:
        raise Refused(f"{applied!r}, {outcome!r}: not a verdict")
    with transaction.atomic():
        if not Verdict.objects.filter(pk=verdict.pk, in_force=True).update(in_force=False):
            raise Refused("this verdict is no longer in force; look at the newer one first")
        said = f"{by}: {reason}"
        return Verdict.objects.create(
            hypothesis=verdict.hypothesis,
            run=verdict.run,
            prediction=verdict.prediction,
            applied=applied,
            applied_reason=said if applied != verdict.applied else verdict.applied_reason,
            outcome=outcome,
            outcome_reason=said if outcome != verdict.outcome else verdict.outcome_reason,
            decided_by=by,
        )


def hand_back(*, verdict: Verdict, by: str) -> Verdict | None:
    """Take a person's verdict out of force and let the rules decide again from the rows as they
    are; the person's stays in the history. None where the rules have nothing to say."""
    needed(by, "name", 150)
    if not verdict.decided_by:
        raise Refused("the verdict in force is the rules' own")
    with transaction.atomic():
        if not Verdict.objects.filter(pk=verdict.pk, in_force=True).update(in_force=False):
            raise Refused("this verdict is no longer in force; look at the newer one first")
    checkup.recheck(verdict.run)
    return Verdict.objects.filter(
        hypothesis_id=verdict.hypothesis_id, run_id=verdict.run_id, in_force=True
    ).first()
