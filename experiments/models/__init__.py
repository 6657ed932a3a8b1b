"""Rows of the record, a file per noun. Writes: `lifecycle` and `intake`; reads: `queries`."""

from .config import ConfigChange, ConfigEntry
from .event import Event
from .evidence import Blob, Evidence
from .finding import Finding, FindingEvent
from .group import RunGroup
from .hypothesis import AppliedCheck, Hypothesis, HypothesisLink, Prediction, Verdict
from .idempotency import IdempotencyKey
from .investigation import Investigation
from .login import LoginLink
from .report import Rendering, Report, ReportNote, ShareLink
from .role import Role
from .run import DecodeSample, Repeat, Run
from .saved import SavedView
from .series import MetricSummary, PointChunk, PointStream
from .token import ApiToken
from .watch import AcceptanceCurve, Alert, WatchedSeries
from .webhook import Webhook, WebhookDelivery
from .worker import Worker

__all__ = [
    "AcceptanceCurve",
    "Alert",
    "ApiToken",
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
    "IdempotencyKey",
    "Investigation",
    "LoginLink",
    "MetricSummary",
    "PointChunk",
    "PointStream",
    "Prediction",
    "Rendering",
    "Repeat",
    "Report",
    "ReportNote",
    "Role",
    "Run",
    "RunGroup",
    "SavedView",
    "ShareLink",
    "Verdict",
    "WatchedSeries",
    "Webhook",
    "WebhookDelivery",
    "Worker",
]
