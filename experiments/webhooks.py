"""Tells other programs what happened: an event is written as deliveries in the transaction of the
write itself, and sent afterwards, signed, until it was taken or a day has passed."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from experiments.models import Alert, Finding, Investigation, Run, Webhook, WebhookDelivery
from experiments.queries.figures import figures_of
from experiments.refusal import Refused

EVENTS = ("run.ended", "alert.opened", "investigation.closed", "investigation.reopened", "ping")
# Seconds before each further try; together about a day.
WAITS = (10, 60, 300, 1800, 7200, 21600, 43200)
TIMEOUT = 10.0
# A sender that dies keeps a delivery for no longer than this.
_LEASE = timedelta(seconds=60)
_KEEP = timedelta(days=30)
MOST_HOOKS = 50


def add_webhook(*, url: str, events: Sequence[str] = (), by: User) -> Webhook:
    """Add an address; refused unless the operator has allowed its host.

    The list keeps the server from being sent to addresses inside its network that only it reaches.
    """
    check_url(url)
    unknown = [event for event in events if event not in EVENTS]
    if unknown:
        raise Refused(f"{unknown[0]!r} is no event; choose of {', '.join(EVENTS)}")
    if Webhook.objects.count() >= MOST_HOOKS:
        raise Refused(f"there are {MOST_HOOKS} webhooks; remove some first")
    return Webhook.objects.create(
        url=url, events=list(dict.fromkeys(events)), nonce=secrets.token_hex(16), created_by=by
    )


def check_url(url: str) -> None:
    """Raises Refused unless the address is one that SPECDEBUG_WEBHOOK_HOSTS allows."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise Refused("the address cannot be read; it is like https://hooks.example.com/x") from (
            None
        )
    if parts.scheme not in ("https", "http") or not host or len(url) > 500 or not url.isprintable():
        raise Refused("the address must be like https://hooks.example.com/x, up to 500 characters")
    if parts.username or parts.password:
        raise Refused("the address must hold no user name and no password")
    allowed: Sequence[str] = settings.WEBHOOK_HOSTS
    usual = {"https": 443, "http": 80}[parts.scheme]
    origin = f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, usual) else "")
    if not any(_allows(entry, origin) for entry in allowed):
        listed = ", ".join(allowed) or "none"
        raise Refused(
            f"{origin} is not allowed; the operator adds it to SPECDEBUG_WEBHOOK_HOSTS ({listed})"
        )


def _allows(entry: str, origin: str) -> bool:
    """An entry is an origin, or a host for https at its usual port; "*." allows what is below."""
    wanted = entry if "://" in entry else f"https://{entry}"
    if "://*." in wanted:
        scheme, _, tail = wanted.partition("*")
        return origin.startswith(scheme) and origin.endswith(tail) and origin != scheme + tail[1:]
    return origin == wanted.rstrip("/")


def secret_of(hook: Webhook) -> str:
    """The signing key of a webhook, made from the server's own key and kept nowhere."""
    text = f"webhook {hook.pk} {hook.nonce}"
    digest = hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256)
    return f"whsec_{digest.hexdigest()}"


def signature(secret: str, moment: int, body: str) -> str:
    """What the header Specdebug-Signature holds; the receiver makes the same and compares."""
    digest = hmac.new(secret.encode(), f"{moment}.{body}".encode(), hashlib.sha256)
    return f"t={moment},v1={digest.hexdigest()}"


def announce(event: str, data: Mapping[str, Any], *, only: Webhook | None = None) -> int:
    """Write a delivery for every active webhook that wants the event; how many there are."""
    hooks = [only] if only is not None else list(Webhook.objects.filter(active=True))
    now = timezone.now()
    rows = []
    for hook in hooks:
        if only is None and hook.events and event not in hook.events:
            continue
        body = json.dumps(
            {"event": event, "at": now.isoformat(), "data": data}, sort_keys=True, default=str
        )
        rows.append(WebhookDelivery(webhook=hook, event=event, body=body, next_try_at=now))
    WebhookDelivery.objects.bulk_create(rows)
    return len(rows)


def announce_run(run: Run) -> None:
    """Tell that a run has ended, with its figures and what it opened and fixed."""
    if not Webhook.objects.filter(active=True).exists():
        return
    figures = figures_of(list(run.repeats.all()))
    opened = Finding.objects.filter(opened_in=run).values_list("code", flat=True)
    fixed = Finding.objects.filter(fixed_in=run).values_list("code", flat=True)
    announce(
        "run.ended",
        {
            "investigation": run.investigation.slug,
            "run": run.label,
            "title": run.title,
            "state": run.state,
            "reason": run.reason,
            "tok_s": None if figures.tok_s is None else figures.tok_s.mean,
            "accept_len": figures.accept_len,
            "repeats": figures.n,
            "findings_opened": sorted(opened),
            "findings_fixed": sorted(fixed),
        },
    )


def announce_closing(investigation: Investigation) -> None:
    """Tell that an investigation was closed or opened again, with the exception that was signed."""
    opened = investigation.state == Investigation.State.OPEN
    announce(
        "investigation.reopened" if opened else "investigation.closed",
        {
            "investigation": investigation.slug,
            "title": investigation.title,
            "state": investigation.state,
            "exception_by": investigation.exception_by,
            "exception_reason": investigation.exception_reason,
        },
    )


def announce_alert(alert: Alert) -> None:
    """Tell that a watched series changed; once for a cause, since an alert is opened once."""
    run = alert.run
    announce(
        "alert.opened",
        {
            "series": alert.series.title,
            "kind": alert.kind,
            "since_run": run.label,
            "investigation": run.investigation.slug,
            "sentence": alert.sentence,
        },
    )


def deliver_due(*, now: datetime | None = None, most: int = 50) -> int:
    """Send what is due; how many were taken. Two senders never send the same try twice."""
    now = now or timezone.now()
    WebhookDelivery.objects.filter(created_at__lt=now - _KEEP).delete()
    due = WebhookDelivery.objects.filter(next_try_at__lte=now, delivered_at=None)
    taken = 0
    for row in due.select_related("webhook").order_by("next_try_at")[:most]:
        mine = WebhookDelivery.objects.filter(pk=row.pk, next_try_at=row.next_try_at)
        if mine.update(next_try_at=now + _LEASE, attempts=F("attempts") + 1):
            row.attempts += 1
            taken += _send(row, now)
    return taken


def _send(row: WebhookDelivery, now: datetime) -> bool:
    import httpx

    moment = int(timezone.now().timestamp())
    values: dict[str, Any] = {"status_code": None, "problem": ""}
    try:
        # The list may have become shorter since the webhook was added.
        check_url(row.webhook.url)
        answer = httpx.post(
            row.webhook.url,
            content=row.body.encode(),
            headers={
                "Content-Type": "application/json",
                "User-Agent": "specdebug-webhook",
                "Specdebug-Event": row.event,
                "Specdebug-Delivery": str(row.pk),
                "Specdebug-Signature": signature(secret_of(row.webhook), moment, row.body),
            },
            timeout=TIMEOUT,
            follow_redirects=False,
            trust_env=False,
        )
        values["status_code"] = answer.status_code
        if not 200 <= answer.status_code < 300:
            values["problem"] = f"answered {answer.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL, Refused) as error:
        values["problem"] = f"{type(error).__name__}: {error}"[:300]
    if not values["problem"]:
        values |= {"delivered_at": now, "next_try_at": None}
    elif row.attempts > len(WAITS):
        values["next_try_at"] = None
    else:
        values["next_try_at"] = now + timedelta(seconds=WAITS[row.attempts - 1])
    WebhookDelivery.objects.filter(pk=row.pk).update(**values)
    return not values["problem"]


def remove_webhook(hook: Webhook) -> None:
    """Remove an address with what it was told."""
    with transaction.atomic():
        hook.delete()
