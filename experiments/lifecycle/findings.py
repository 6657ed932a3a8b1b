"""What a person decides about a finding; its life by runs is written by `checkup`."""

from __future__ import annotations

from django.db import transaction

from experiments.lifecycle.text import needed
from experiments.models import Finding, FindingEvent
from experiments.refusal import Refused


def set_finding_aside(*, finding: Finding, by: str, reason: str) -> Finding:
    """Take an open finding out of the way, with a name and a reason that every report shows."""
    by, reason = needed(by, "name", 150), needed(reason, "reason", 2000)
    open_ = Finding.objects.filter(pk=finding.pk, state=Finding.State.OPEN)
    with transaction.atomic():
        if not open_.update(
            state=Finding.State.SET_ASIDE, set_aside_by=by, set_aside_reason=reason
        ):
            finding.refresh_from_db()
            raise Refused(f"{finding.code} is {finding.get_state_display()}, not open")
        FindingEvent.objects.create(
            finding=finding, kind=FindingEvent.Kind.SET_ASIDE, statement=reason, by=by
        )
    finding.refresh_from_db()
    return finding


def reopen_finding(*, finding: Finding, by: str, reason: str = "") -> Finding:
    """Bring back a finding that was set aside or called fixed."""
    by = needed(by, "name", 150)
    closed = Finding.objects.filter(pk=finding.pk).exclude(state=Finding.State.OPEN)
    with transaction.atomic():
        # The run whose fix is not believed: it does not fix the finding when looked at again.
        fixed_in = closed.values_list("fixed_in", flat=True).first()
        if not closed.update(
            state=Finding.State.OPEN, set_aside_by="", set_aside_reason="", fixed_in=None
        ):
            raise Refused(f"{finding.code} is open already")
        FindingEvent.objects.create(
            finding=finding,
            kind=FindingEvent.Kind.REOPENED,
            run_id=fixed_in,
            statement=reason,
            by=by,
        )
    finding.refresh_from_db()
    return finding
