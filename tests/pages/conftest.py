"""Rows for the pages: an investigation with every kind of row, hostile texts included."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from experiments import dispatch, lifecycle, store
from experiments.lifecycle.runs import RecordedRepeat
from experiments.models import (
    ConfigChange,
    ConfigEntry,
    DecodeSample,
    Evidence,
    Finding,
    FindingEvent,
    Hypothesis,
    Investigation,
    Repeat,
    Run,
    Verdict,
)

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
LOG = "\n".join(
    [
        "launching",
        "Warning: speculative_num_draft_tokens is adjusted to speculative_num_steps + 1",
        f"a line that says {EVIL}",
        *(f"[2026-01-01 10:00:{i % 60:02d}] Decode batch {i}" for i in range(600)),
    ]
)


@dataclass
class Story:
    """The rows by name."""

    investigation: Investigation
    baseline: Run
    slow: Run
    draft: Run
    hypothesis: Hypothesis
    finding: Finding
    log: Evidence


def make_story(hostile: bool = False) -> Story:
    """An investigation in the middle of its life; `hostile` puts markup into every text."""
    evil = EVIL if hostile else ""
    row = lifecycle.create_investigation(
        title=f"Why is it slow {evil}",
        question=f"Does the draft make serving faster? {evil}",
        context=f"*Eight* GPUs. {evil} [a link](javascript:alert(3))",
    )
    base = lifecycle.record_run(
        investigation=row,
        title=f"plain {evil}",
        engine="reference",
        repeats=[RecordedRepeat(90.0)],
        note=f"no draft {evil}",
    )
    lifecycle.edit_investigation(row, baseline=base)
    claim = lifecycle.add_hypothesis(
        investigation=row, claim=f"More drafts help {evil}", mechanism=f"**Longer** chains {evil}"
    )
    lifecycle.register_prediction(hypothesis=claim, baseline=base)
    lifecycle.add_applied_check(
        hypothesis=claim, kind="effective-equals", key="speculative_num_draft_tokens", expected=16
    )
    slow = lifecycle.add_run(
        investigation=row,
        title=f"speculation on {evil}",
        server_args=["--speculative-num-steps", "1", "--served-model-name", f"m {evil}"],
        hypothesis=claim,
        baseline=base,
        follows=base,
    )
    log = measured(slow, [56.1, 57.2, 57.1], accept_len=1.6)
    ConfigEntry.objects.create(
        run=slow,
        key="speculative_num_draft_tokens",
        requested=16,
        was_requested=True,
        effective=2,
        effective_known=True,
        origin="override",
        why=f"num_steps + 1 {evil}",
        line=2,
    )
    ConfigChange.objects.create(
        run=slow, kind="patch", key=f"model.py {evil}", before=None, after=f"patched {evil}"
    )
    Verdict.objects.create(
        hypothesis=claim,
        run=slow,
        prediction=claim.predictions.get(),
        applied="no",
        applied_reason=f"2 in force, 16 expected {evil}",
        outcome="refuted",
        outcome_reason=f"−36.9 % {evil}",
    )
    finding = Finding.objects.create(
        investigation=row,
        code="draft-tokens-overridden",
        severity="high",
        confidence="certain",
        statement=f"16 asked, 2 in force {evil}",
        fix=f"raise steps {evil}",
        evidence=[{"source": "server.log", "line": 2, "text": f"is adjusted {evil}"}],
        opened_in=slow,
        seen_in=slow,
    )
    FindingEvent.objects.create(
        finding=finding, kind="opened", run=slow, statement=f"16 asked {evil}"
    )
    lifecycle.add_event(
        investigation=row, title=f"Read the source {evil}", kind="source", text=f"line 2443 {evil}"
    )
    draft = lifecycle.repeat_run(slow)
    row.refresh_from_db()
    return Story(row, base, slow, draft, claim, finding, log)


def measured(run: Run, tok_s: list[float], accept_len: float | None) -> Evidence:
    """Make `run` look as if a worker had measured it; returns its log."""
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(
        state="done",
        phase="finished",
        attempt=1,
        argv=["python", "-m", "engine", *run.plan["server_args"]],
        env={"A": "1"},
        versions={"python": "3.11"},
        host="box",
        worker="box:1",
        claimed_at=now - timedelta(seconds=70),
        ready_at=now - timedelta(seconds=60),
        ended_at=now,
        checked_at=now,
        exit_code=0,
    )
    for index, value in enumerate(tok_s):
        Repeat.objects.create(
            run=run,
            index=index,
            tok_s=value,
            accept_len=accept_len,
            step_ms=1000 * (accept_len or 1) / value,
            seconds=10.0,
            requests=8,
            tokens=768,
            verify_ct=480,
            output_sha256="ab" * 32,
        )
    DecodeSample.objects.bulk_create(
        DecodeSample(
            run=run, line=4 + i, t=1e9 + i, tok_s=56.0 + i % 3, accept_len=1.6, in_repeat=i > 5
        )
        for i in range(60)
    )
    blob = store.put(io.BytesIO(LOG.encode()))
    log = Evidence.objects.create(
        investigation=run.investigation, run=run, blob=blob, name="server.log", kind="server-log"
    )
    run.refresh_from_db()
    return log


def pages_of(story: Story) -> dict[str, str]:
    """The address of every page that is read with GET, by a name for messages."""
    slug, finding, log = story.investigation.slug, story.finding.pk, story.log.pk
    named = {
        "home": ("home",),
        "investigation": ("investigation", slug),
        "hypothesis": ("hypothesis", slug, 1),
        "baseline run": ("run", slug, 0),
        "measured run": ("run", slug, 1),
        "draft run": ("run", slug, 2),
        "log": ("run-log", slug, 1),
        "finding": ("finding", slug, finding),
        "evidence": ("evidence", slug, log),
        "open": ("investigation-new",),
        "edit": ("investigation-edit", slug),
        "close": ("investigation-close", slug),
        "event": ("event-new", slug),
        "state": ("hypothesis-new", slug),
        "plan": ("run-new", slug),
        "branch": ("run-branch", slug, 1),
        "file": ("file-new", slug),
        "file of a run": ("run-file-new", slug, 1),
        "findings": ("findings",),
        "check": ("check",),
        "record": ("run-record", slug),
        "note": ("run-note", slug, 1),
        "event edit": ("event-edit", slug, story.investigation.events.get().pk),
        "explore": ("explore", slug),
        "report": ("report-page", slug),
        "report draft": ("report-draft", slug),
        "report versions": ("report-versions", slug),
    }
    found = {name: reverse(where[0], args=where[1:]) for name, where in named.items()}
    pair = f"run={slug}/R0&run={slug}/R1"
    return found | {
        "compare": f"{reverse('compare')}?{pair}",
        "compare nothing": reverse("compare"),
        "search": f"{reverse('search')}?q=slow",
        "search runs": f"{reverse('search')}?kind=run",
        "search findings": f"{reverse('findings')}?state=&severity=high",
    }


class Markup(HTMLParser):
    """What a browser would take for script or style in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.inline: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.inline += [f"{tag} {name}" for name in found if name == "style" or name[:2] == "on"]
        if tag == "style" or (tag == "script" and not found.get("src")):
            self.inline.append(tag)
        for name in ("href", "src", "action"):
            if value := found.get(name):
                self.links.append(value)


@pytest.fixture
def addresses(story: Story) -> dict[str, str]:
    """Every page of the plain story."""
    return pages_of(story)


@pytest.fixture
def hostile_addresses(hostile: Story) -> dict[str, str]:
    """Every page of the story whose texts are markup."""
    return pages_of(hostile)


@pytest.fixture
def parsed() -> Callable[[HttpResponse], Markup]:
    """A page as a browser would take it apart."""

    def parse(response: HttpResponse) -> Markup:
        parser = Markup()
        parser.feed(response.content.decode())
        return parser

    return parse


@pytest.fixture
def story(db: Any, data_dir: Any) -> Story:
    return make_story()


@pytest.fixture
def hostile(db: Any, data_dir: Any) -> Story:
    return make_story(hostile=True)


@pytest.fixture
def unsent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queued runs stay in the record: there is no broker to hand them to."""
    monkeypatch.setattr(dispatch, "_send", lambda *_, **__: True)


@pytest.fixture
def user(db: Any) -> User:
    # Nobody logs in by password here, and hashing one takes half a second.
    return User.objects.create_user("ada", password=None)


@pytest.fixture
def browser(user: User) -> Client:
    """A logged-in client that reports errors as pages, as a browser would see them."""
    client = Client(raise_request_exception=False)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client
