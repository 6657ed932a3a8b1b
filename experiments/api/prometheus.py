"""/metrics: what this installation does, in Prometheus' text form; asks for a token."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Q
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema

from experiments.api.endpoint import Endpoint
from experiments.models import Finding, Investigation, Run, WebhookDelivery, Worker
from specdebug import __version__

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics(Endpoint):
    @extend_schema(exclude=True)
    def get(self, request: Any) -> HttpResponse:
        """Gauges of the record; 6 queries however much there is."""
        return HttpResponse(text(), content_type=MEDIA_TYPE)


def text() -> str:
    """The exposition, each metric with its meaning."""
    lines: list[str] = []

    def gauge(name: str, meaning: str, values: dict[str, float]) -> None:
        lines.append(f"# HELP specdebug_{name} {meaning}")
        lines.append(f"# TYPE specdebug_{name} gauge")
        lines.extend(f"specdebug_{name}{labels} {value:g}" for labels, value in values.items())

    gauge("info", "1, with the version.", {f'{{version="{__version__}"}}': 1})
    gauge("runs", "Runs by state.", _by("state", Run.objects.all(), Run.State.values))
    gauge(
        "investigations",
        "Investigations by state.",
        _by("state", Investigation.objects.all(), Investigation.State.values),
    )
    gauge(
        "open_findings",
        "Open findings by severity.",
        _by(
            "severity",
            Finding.objects.filter(state=Finding.State.OPEN),
            Finding.Severity.values,
        ),
    )
    oldest = (
        Run.objects.filter(state=Run.State.QUEUED, queued_at__isnull=False)
        .order_by("queued_at")
        .values_list("queued_at", flat=True)
        .first()
    )
    waited = 0.0 if oldest is None else (timezone.now() - oldest).total_seconds()
    gauge("queue_oldest_seconds", "How long the longest waiting run has waited.", {"": waited})
    beats = Worker.objects.filter(stopped_at=None).values_list("name", "heartbeat_at")
    now = timezone.now()
    gauge(
        "worker_silence_seconds",
        "Seconds since a worker was heard of.",
        {f'{{worker="{_escaped(name)}"}}': (now - beat).total_seconds() for name, beat in beats},
    )
    sent = WebhookDelivery.objects.aggregate(
        waiting=Count("pk", filter=Q(delivered_at=None, next_try_at__isnull=False)),
        given_up=Count("pk", filter=Q(delivered_at=None, next_try_at=None)),
    )
    gauge(
        "webhook_deliveries",
        "Deliveries of the last 30 days that wait or were given up.",
        {f'{{state="{name}"}}': count for name, count in sent.items()},
    )
    return "\n".join(lines) + "\n"


def _by(column: str, rows: Any, known: list[Any]) -> dict[str, float]:
    found = dict(rows.order_by().values_list(column).annotate(Count("pk")))
    return {f'{{{column}="{value}"}}': float(found.get(value, 0)) for value in known}


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
