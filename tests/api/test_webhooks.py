"""Webhooks: allowed hosts alone, signed, tried again, told once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from experiments import lifecycle, webhooks
from experiments.models import Investigation, Run, Webhook, WebhookDelivery
from experiments.refusal import Refused
from tests.api.conftest import Caller


class Receiver(HTTPServer):
    """Keeps what it is sent; answers with `status`."""

    got: list[tuple[dict[str, str], bytes]]
    status = 200


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    server = Receiver(("127.0.0.1", 0), Handler)
    server.got = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    settings.WEBHOOK_HOSTS = [f"http://127.0.0.1:{server.server_port}"]
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def hook(receiver: Receiver, db: None) -> Webhook:
    by = User.objects.create_user("root", is_superuser=True)
    return webhooks.add_webhook(url=f"http://127.0.0.1:{receiver.server_port}/x", by=by)


@pytest.mark.parametrize(
    ("allowed", "url", "good"),
    [
        ("hooks.example.com", "https://hooks.example.com/x", True),
        ("hooks.example.com", "http://hooks.example.com/x", False),
        ("hooks.example.com", "https://hooks.example.com:8443/x", False),
        ("hooks.example.com", "https://hooks.example.com.evil.org/x", False),
        ("hooks.example.com", "https://evil.org/hooks.example.com", False),
        ("hooks.example.com", "https://hooks.example.com@evil.org/", False),
        ("*.example.com", "https://a.example.com/", True),
        ("*.example.com", "https://example.com/", False),
        ("*.example.com", "https://evilexample.com/", False),
        ("http://ci:8080", "http://ci:8080/x", True),
        ("", "https://169.254.169.254/latest/meta-data", False),
        ("", "http://localhost/", False),
        ("hooks.example.com", "file:///etc/passwd", False),
        ("hooks.example.com", "https://[bad", False),
    ],
)
def test_only_hosts_that_the_operator_named_are_told(
    allowed: str, url: str, good: bool, settings: Any
) -> None:
    settings.WEBHOOK_HOSTS = [allowed] if allowed else []
    if good:
        webhooks.check_url(url)
        return
    with pytest.raises(Refused):
        webhooks.check_url(url)


def test_the_end_of_a_run_is_told_once_and_signed(
    hook: Webhook, receiver: Receiver, api: Caller, inv: Investigation
) -> None:
    slug = "investigations/slow-draft"
    api.post(f"{slug}/script-runs", {"title": "x"})
    api.post(f"{slug}/runs/0/repeats", {"first": 0, "repeats": [{"tok_s": 50.0}]})
    api.post(f"{slug}/runs/0/finish")
    api.post(f"{slug}/runs/0/finish")
    assert webhooks.deliver_due() == 1
    assert webhooks.deliver_due() == 0
    ((headers, body),) = receiver.got
    told = json.loads(body)
    assert (told["event"], headers["specdebug-event"]) == ("run.ended", "run.ended")
    assert (told["data"]["run"], told["data"]["tok_s"]) == ("R0", 50.0)
    moment = int(headers["specdebug-signature"].partition(",")[0].removeprefix("t="))
    expected = webhooks.signature(webhooks.secret_of(hook), moment, body.decode())
    assert headers["specdebug-signature"] == expected


def test_a_failure_is_tried_again_later_and_given_up_after_a_day(
    hook: Webhook, receiver: Receiver
) -> None:
    receiver.status = 500
    webhooks.announce("ping", {}, only=hook)
    now = timezone.now()
    for tries in range(1, len(webhooks.WAITS) + 2):
        assert webhooks.deliver_due(now=now) == 0
        row = WebhookDelivery.objects.get()
        assert (row.attempts, row.problem) == (tries, "answered 500")
        assert webhooks.deliver_due(now=now) == 0
        assert len(receiver.got) == tries
        now += timedelta(days=1)
    assert row.next_try_at is None
    assert webhooks.deliver_due(now=now) == 0


@pytest.mark.parametrize("taken", [False, True])
def test_a_sender_killed_on_the_way_leaves_the_delivery_to_the_next_under_the_same_number(
    hook: Webhook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    real = httpx.post

    def killed(*args: Any, **kwargs: Any) -> None:
        if taken:
            real(*args, **kwargs)
        raise SystemExit  # as by a signal: nothing after it runs

    webhooks.announce("ping", {}, only=hook)
    monkeypatch.setattr(httpx, "post", killed)
    with pytest.raises(SystemExit):
        webhooks.deliver_due()
    monkeypatch.setattr(httpx, "post", real)
    assert webhooks.deliver_due() == 0  # still the dead one's
    later = timezone.now() + timedelta(seconds=61)
    assert webhooks.deliver_due(now=later) == 1
    numbers = [headers["specdebug-delivery"] for headers, _ in receiver.got]
    assert numbers == [str(hook.deliveries.get().pk)] * (1 + taken)
    assert webhooks.deliver_due(now=later + timedelta(hours=1)) == 0


def test_a_redirect_is_no_delivery_and_is_not_followed(hook: Webhook, receiver: Receiver) -> None:
    receiver.status = 302
    webhooks.announce("ping", {}, only=hook)
    webhooks.deliver_due()
    assert WebhookDelivery.objects.get().problem == "answered 302"
    assert len(receiver.got) == 1


def test_a_host_taken_off_the_list_is_told_nothing_more(
    hook: Webhook, receiver: Receiver, settings: Any
) -> None:
    webhooks.announce("ping", {}, only=hook)
    settings.WEBHOOK_HOSTS = []
    webhooks.deliver_due()
    assert receiver.got == []
    assert "not allowed" in WebhookDelivery.objects.get().problem


def test_the_signing_key_is_shown_once_and_differs_for_each(
    receiver: Receiver, caller: Callable[..., Caller]
) -> None:
    admin = caller("admin")
    url = f"http://127.0.0.1:{receiver.server_port}/x"
    made = [admin.post("webhooks", {"url": url, "events": ["run.ended"]}) for _ in range(2)]
    assert made[0]["secret"] != made[1]["secret"]
    listed = admin.get("webhooks")["items"]
    assert "secret" not in json.dumps(listed)
    assert admin.call("POST", f"webhooks/{listed[0]['id']}/ping", {}).status_code == 202
    webhooks.deliver_due()
    assert admin.get(f"webhooks/{listed[0]['id']}/deliveries")["items"][0]["delivered_at"]
    assert admin.call("DELETE", f"webhooks/{listed[0]['id']}").status_code == 204
    told = admin.refused(409, "POST", "webhooks", {"url": "https://other.example.com/"})
    assert "SPECDEBUG_WEBHOOK_HOSTS" in told["detail"]


def test_who_asked_for_other_events_is_not_told(hook: Webhook, base: Run) -> None:
    Webhook.objects.update(events=["investigation.closed"])
    webhooks.announce_run(base)
    assert not WebhookDelivery.objects.exists()
    Webhook.objects.update(events=[])
    webhooks.announce_run(base)
    assert WebhookDelivery.objects.count() == 1


def test_closing_and_opening_again_are_told_with_the_exception(hook: Webhook) -> None:
    row = lifecycle.create_investigation(title="Slow", question="why")
    lifecycle.abandon(investigation=row, by="Ada", reason="the rig is gone")
    lifecycle.reopen(investigation=row)
    told = [(d.event, json.loads(d.body)["data"]) for d in WebhookDelivery.objects.order_by("pk")]
    assert [event for event, _ in told] == ["investigation.closed", "investigation.reopened"]
    assert (told[0][1]["exception_by"], told[0][1]["state"]) == ("Ada", "abandoned")
    assert (told[1][1]["exception_by"], told[1][1]["state"]) == ("", "open")


def test_a_refused_closing_tells_nothing(hook: Webhook) -> None:
    row = lifecycle.create_investigation(title="Slow", question="why")
    with pytest.raises(Refused):
        lifecycle.resolve(investigation=row)
    assert not WebhookDelivery.objects.exists()
