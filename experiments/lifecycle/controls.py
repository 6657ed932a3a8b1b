"""Series that people watch: begun from a run, ended, and their alerts closed with a reason."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from experiments.checkup import identity
from experiments.checkup.alarm import look_at
from experiments.lifecycle.text import needed
from experiments.models import Alert, Run, WatchedSeries
from experiments.queries import dossier
from experiments.refusal import Refused

MOST_SERIES = 200


def watch(*, run: Run, title: str, by: User | None = None) -> WatchedSeries:
    """Watch the configuration of a measured run on its host; the series that is there, if any.

    Refused for a run without figures or without a known host: such runs belong to no series.
    """
    title = needed(title, "title", 200)
    with transaction.atomic():
        key = run.series_key or _key_of(run)
        if not key:
            raise Refused(
                f"{run.label} cannot start a series: it has no figures, or its host is not known"
            )
        known = WatchedSeries.objects.filter(key=key).first()
        if known is not None:
            return known
        if WatchedSeries.objects.count() >= MOST_SERIES:
            raise Refused(f"{MOST_SERIES} series are watched; end some first")
        row = WatchedSeries.objects.create(key=key, title=title, started_from=run, created_by=by)
        # What is to be seen from the runs so far is told on the page, not as an alarm of today.
        for alert in look_at(row):
            close_alert(alert=alert, by="the record", reason="before the series was watched")
    return row


def _key_of(run: Run) -> str:
    """The key of a run that ended before keys were kept; its neighbours get theirs as well."""
    found = dossier(run.investigation)
    key = ""
    for facts in found.runs:
        own = identity.series_key(found, facts)
        if own and own != facts.run.series_key:
            Run.objects.filter(pk=facts.run.pk).update(series_key=own)
        if facts.run.pk == run.pk:
            key = own
    return key


def unwatch(row: WatchedSeries) -> None:
    """Stop watching; the runs stay, the alerts go."""
    row.delete()


def close_alert(*, alert: Alert, by: str, reason: str) -> Alert:
    """Say what became of an alert; it stays in the series' history."""
    by, reason = needed(by, "name", 150), needed(reason, "reason", 400)
    if not Alert.objects.filter(pk=alert.pk, closed_at=None).update(
        closed_at=timezone.now(), closed_by=by, reason=reason
    ):
        raise Refused("this alert is closed already")
    alert.refresh_from_db()
    return alert
