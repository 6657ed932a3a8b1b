"""What a finding is: a named fault with its evidence. Not how faults are found (see checks/)."""

from dataclasses import dataclass, field
from typing import Any, Literal

from specdebug.diagnosis.catalogue import CATALOGUE, CatalogueEntry, Family

__all__ = [
    "CATALOGUE",
    "CONFIDENCES",
    "SEVERITIES",
    "CatalogueEntry",
    "Confidence",
    "Evidence",
    "Family",
    "Finding",
    "Severity",
    "is_fault",
    "severity_rank",
]

Severity = Literal["critical", "high", "medium", "info"]
Confidence = Literal["certain", "likely", "possible"]

SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "info")
CONFIDENCES: tuple[Confidence, ...] = ("certain", "likely", "possible")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place a finding rests on.

    source: name of the input as the person gave it ("server.log", "notes", "run R1").
    line: 1-based line of that input, None where lines mean nothing (a JSON key, a table cell).
    text: the verbatim line, key or figures, shortened to a readable length.
    """

    source: str
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, or one fact worth knowing (severity "info").

    statement: one sentence with the numbers in it. fix: what to change. settled_by: the input or
    the experiment that would confirm or refute it. Raises ValueError on a code outside CATALOGUE.
    """

    code: str
    severity: Severity
    confidence: Confidence
    statement: str
    evidence: tuple[Evidence, ...] = field(default=())
    fix: str = ""
    settled_by: str = ""

    def __post_init__(self) -> None:
        if self.code not in CATALOGUE:
            raise ValueError(f"unknown finding code {self.code!r}; add it to catalogue.py")
        if self.severity not in SEVERITIES or self.confidence not in CONFIDENCES:
            raise ValueError(f"{self.code}: severity {self.severity}, confidence {self.confidence}")

    @property
    def title(self) -> str:
        """The catalogue's short title of this code."""
        return CATALOGUE[self.code].title

    @property
    def family(self) -> Family:
        """The catalogue's family of this code."""
        return CATALOGUE[self.code].family

    def as_dict(self) -> dict[str, Any]:
        """The finding in the form documented in docs/check-json.md."""
        return {
            "code": self.code,
            "severity": self.severity,
            "confidence": self.confidence,
            "statement": self.statement,
            "evidence": [
                {"source": e.source, "line": e.line, "text": e.text} for e in self.evidence
            ],
            "fix": self.fix,
            "settled_by": self.settled_by,
        }


def severity_rank(severity: Severity) -> int:
    """0 for critical up to 3 for info: the order findings are shown in."""
    return SEVERITIES.index(severity)


def is_fault(finding: Finding) -> bool:
    """True for everything above "info": what makes `specdebug check` exit with 1."""
    return finding.severity != "info"
