"""Rows of the record, a file per noun. Writes: `lifecycle` and `intake`; reads: `queries`."""

from .config import ConfigChange, ConfigEntry
from .event import Event
from .evidence import Blob, Evidence
from .finding import Finding, FindingEvent
from .group import RunGroup
from .hypothesis import AppliedCheck, Hypothesis, HypothesisLink, Prediction, Verdict
from .investigation import Investigation
from .login import LoginLink
from .report import Report
from .run import DecodeSample, Repeat, Run

__all__ = [
    "AppliedCheck",
    "Blob",
    "ConfigChange",
    "ConfigEntry",
    "DecodeSample",
    "Event",
    "Evidence",
    "Finding",
    "FindingEvent",
    "Hypothesis",
    "HypothesisLink",
    "Investigation",
    "LoginLink",
    "Prediction",
    "Repeat",
    "Report",
    "Run",
    "RunGroup",
    "Verdict",
]
