"""A person's triage of a finding has a name and a reason."""

from __future__ import annotations

import pytest

from experiments import lifecycle
from experiments.models import Finding, Investigation


@pytest.fixture
def finding(investigation: Investigation) -> Finding:
    return Finding.objects.create(
        investigation=investigation,
        code="dead-draft",
        severity="critical",
        confidence="certain",
        statement="nothing is accepted",
    )


def test_setting_aside_keeps_name_and_reason_and_can_be_taken_back(finding: Finding) -> None:
    lifecycle.set_finding_aside(finding=finding, by="Ada", reason="known rig")
    assert (finding.state, finding.set_aside_by) == ("set-aside", "Ada")
    with pytest.raises(lifecycle.Refused, match="not open"):
        lifecycle.set_finding_aside(finding=finding, by="Bob", reason="me too")
    lifecycle.reopen_finding(finding=finding, by="Bob", reason="not known at all")
    assert (finding.state, finding.set_aside_by, finding.set_aside_reason) == ("open", "", "")
    kinds = [(e.kind, e.by) for e in finding.events.all()]
    assert kinds == [("set-aside", "Ada"), ("reopened", "Bob")]


@pytest.mark.parametrize(("by", "reason"), [("", "why"), ("Ada", " ")])
def test_setting_aside_needs_name_and_reason(finding: Finding, by: str, reason: str) -> None:
    with pytest.raises(lifecycle.Refused):
        lifecycle.set_finding_aside(finding=finding, by=by, reason=reason)
    finding.refresh_from_db()
    assert finding.state == "open"


def test_an_open_finding_cannot_be_reopened(finding: Finding) -> None:
    with pytest.raises(lifecycle.Refused, match="open already"):
        lifecycle.reopen_finding(finding=finding, by="Ada")
