"""From a Case to a Diagnosis: runs every check once and sorts what they found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specdebug.diagnosis.checks.registry import CHECKS
from specdebug.diagnosis.facts import Case, InputSummary
from specdebug.diagnosis.findings import CONFIDENCES, Finding, is_fault, severity_rank
from specdebug.diagnosis.missing import Missing, most_valuable
from specdebug.diagnosis.values import values_of

__all__ = ["Diagnosis", "diagnose", "to_json"]


@dataclass(frozen=True)
class Diagnosis:
    """The answer: findings by severity, named figures, the most valuable missing input.

    untried: (code, what is missing) of checks that lacked an input; never read as "all is well".
    """

    findings: tuple[Finding, ...]
    values: Mapping[str, Any]
    missing: Missing | None
    inputs: tuple[InputSummary, ...]
    untried: tuple[tuple[str, str], ...]

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings above "info"."""
        return tuple(f for f in self.findings if is_fault(f))

    @property
    def unusable(self) -> tuple[InputSummary, ...]:
        """The inputs that could not be used."""
        return tuple(i for i in self.inputs if i.unusable is not None)


def diagnose(case: Case) -> Diagnosis:
    """Run all checks over a case. Pure: the same case gives the same diagnosis."""
    findings: list[Finding] = []
    untried: list[tuple[str, str]] = []
    for check in CHECKS:
        finding = check.run(case)
        if finding is not None:
            findings.append(finding)
            continue
        lacking = check.lacks(case)
        if lacking is not None:
            untried.append((check.code, lacking))
    findings.sort(key=lambda f: (severity_rank(f.severity), CONFIDENCES.index(f.confidence)))
    return Diagnosis(
        findings=tuple(findings),
        values=values_of(case),
        missing=most_valuable(case, findings),
        inputs=case.inputs,
        untried=tuple(untried),
    )


def to_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The answer as plain objects, in the form of docs/check-json.md."""
    return {
        "inputs": [
            {"name": i.name, "kind": i.kind, "summary": i.summary, "unusable": i.unusable}
            for i in diagnosis.inputs
        ],
        "values": {name: _finite(value) for name, value in diagnosis.values.items()},
        "findings": [f.as_dict() for f in diagnosis.findings],
        "missing": None
        if diagnosis.missing is None
        else {"input": diagnosis.missing.input, "why": diagnosis.missing.why},
        "untried": [{"code": code, "needs": needs} for code, needs in diagnosis.untried],
    }


def _finite(value: Any) -> Any:
    """The value for JSON, which has no nan and no infinity: those are asked for in words."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
