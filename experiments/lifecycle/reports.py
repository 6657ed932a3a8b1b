"""Reports: a draft with its choices and remarks, published once and for good; links that show one.

What a report says comes from the record and is built in `experiments.reports`; here it is kept.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Q
from django.utils import timezone
from django.utils.crypto import salted_hmac

from experiments.lifecycle.place import lock
from experiments.lifecycle.text import needed
from experiments.models import Investigation, Report, ReportNote, ShareLink
from experiments.refusal import Refused

LONGEST_REMARK = 20_000
MOST_REMARKS = 200
MOST_LINKS = 100
LONGEST_SHARE = 366  # days
REQUESTS_A_MINUTE = 120  # of one link


def draft_of(*, investigation: Investigation, by: str = "") -> Report:
    """The investigation's draft, made where there is none; it takes choices and remarks over from
    the version before."""
    known = Report.objects.filter(investigation=investigation, state=Report.State.DRAFT).first()
    if known is not None:
        return known
    try:
        with transaction.atomic():
            lock(investigation)
            return _new_draft(investigation, by)
    except IntegrityError:  # somebody else was quicker
        return Report.objects.get(investigation=investigation, state=Report.State.DRAFT)


def _new_draft(investigation: Investigation, by: str) -> Report:
    rows = Report.objects.filter(investigation=investigation)
    number = 1 + (rows.aggregate(last=Max("number"))["last"] or 0)
    draft = Report(investigation=investigation, number=number, created_by=by[:150])
    before = rows.order_by("-number").first()
    if before is not None:
        for name in ("template", "page", "left_out", "kept"):
            setattr(draft, name, getattr(before, name))
    draft.save(force_insert=True)
    if before is not None:
        ReportNote.objects.bulk_create(
            ReportNote(report=draft, section=r.section, text=r.text, author=r.author)
            for r in before.remarks.all()
        )
    return draft


def choose(
    *,
    draft: Report,
    template: str | None = None,
    page: str | None = None,
    left_out: Iterable[str] | None = None,
    kept: Iterable[str] | None = None,
) -> Report:
    """Change what a draft shows; refused once it is published."""
    values: dict[str, Any] = {}
    if template is not None:
        values["template"] = _one_of(template, Report.Template.values, "template")
    if page is not None:
        values["page"] = _one_of(page, Report.Page.values, "paper")
    if left_out is not None:
        values["left_out"] = sorted({str(key)[:40] for key in left_out})
    if kept is not None:
        values["kept"] = sorted({str(key)[:64] for key in kept})
    open_ = Report.objects.filter(pk=draft.pk, state=Report.State.DRAFT)
    if not (open_.update(**values) if values else open_.exists()):
        raise Refused(f"version {draft.number} is published; what it shows is fixed")
    draft.refresh_from_db()
    return draft


def _one_of(value: str, known: Iterable[str], what: str) -> str:
    if value not in known:
        raise Refused(f"{value!r} is no {what}; choose one of {', '.join(known)}")
    return value


def add_remark(*, draft: Report, section: str, text: str, author: str) -> ReportNote:
    """A person's words beside a section of a draft."""
    text, author = needed(text, "remark", LONGEST_REMARK), needed(author, "name", 150)
    with transaction.atomic():
        _hold_draft(draft)
        if ReportNote.objects.filter(report=draft).count() >= MOST_REMARKS:
            raise Refused(f"a report takes {MOST_REMARKS} remarks; remove one first")
        if ReportNote.objects.filter(report=draft, section=section, text=text, author=author):
            raise Refused("this remark stands there already")  # a button pressed twice
        return ReportNote.objects.create(
            report=draft, section=section[:40], text=text, author=author
        )


def remove_remark(*, draft: Report, remark: int) -> None:
    """Take a remark out of a draft; once it is out, doing it again changes nothing."""
    with transaction.atomic():
        _hold_draft(draft)
        ReportNote.objects.filter(report=draft, pk=remark).delete()


def _hold_draft(draft: Report) -> None:
    """Keep the row a draft until the transaction ends."""
    held = Report.objects.select_for_update().get(pk=draft.pk)
    if held.state != Report.State.DRAFT:
        raise Refused(f"version {held.number} is published; write the remark into a new draft")


def publish(
    *, draft: Report, body: Mapping[str, Any], sha256: str, by: str, now: datetime
) -> Report:
    """Freeze a draft as its version: document and hash never change again.

    Refused where it is published already, so that a second click changes nothing.
    """
    by = needed(by, "name", 150)
    with transaction.atomic():
        lock(draft.investigation)
        won = Report.objects.filter(pk=draft.pk, state=Report.State.DRAFT).update(
            state=Report.State.PUBLISHED,
            post_mortem=body,
            sha256=sha256,
            published_by=by,
            published_at=now,
        )
        if not won:
            raise Refused(f"version {draft.number} is published already")
        _new_draft(draft.investigation, by)  # choices and remarks go on in the next one
    draft.refresh_from_db()
    return draft


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def share(
    *, report: Report, by: str, days: int, label: str = "", once: str = ""
) -> tuple[ShareLink, str]:
    """A link to a published report and its token, which is not kept.

    once: a random word of the form that asks. Sent again, it gives the same link and token instead
    of a second one; without it nothing can show the token again.
    """
    if report.state != Report.State.PUBLISHED:
        raise Refused("only a published version can be shared; publish the draft first")
    if not 1 <= days <= LONGEST_SHARE:
        raise Refused(f"a link lasts between 1 and {LONGEST_SHARE} days, not {days}")
    now = timezone.now()
    alive = Q(revoked_at=None, expires_at__gt=now)
    token = _token_of(report, by, once) if once else secrets.token_urlsafe(32)
    known = ShareLink.objects.filter(token_sha256=_hash(token))
    if not known and ShareLink.objects.filter(alive, report=report).count() >= MOST_LINKS:
        raise Refused(f"a version has at most {MOST_LINKS} links; revoke one first")
    link, fresh = ShareLink.objects.get_or_create(
        token_sha256=_hash(token),
        defaults={
            "report": report,
            "label": label.strip()[:150],
            "created_by": needed(by, "name", 150),
            "expires_at": now + timedelta(days=days),
        },
    )
    if not fresh and not known.filter(alive):
        raise Refused("that link was made before and works no more; make a new one")
    return link, token


def _token_of(report: Report, by: str, once: str) -> str:
    """The token that this form makes; to know it takes the server's own key and the form's word,
    which is kept nowhere."""
    made = salted_hmac("share link", f"{report.pk} {once} {by}", algorithm="sha256")
    return base64.urlsafe_b64encode(made.digest()).decode().rstrip("=")


def revoke(*, link: ShareLink, by: str) -> ShareLink:
    """Make a link show nothing any more; once revoked, doing it again changes nothing."""
    ShareLink.objects.filter(pk=link.pk, revoked_at=None).update(
        revoked_at=timezone.now(), revoked_by=needed(by, "name", 150)
    )
    link.refresh_from_db()
    return link


@dataclass(frozen=True, slots=True)
class Opened:
    """What a token opens. over: the link has expired or was revoked; busy: too many requests."""

    outcome: Literal["ok", "unknown", "over", "busy"]
    link: ShareLink | None = None


def open_shared(*, token: str, now: datetime, counts: bool = True) -> Opened:
    """The link of a token, counted as opened; no more than so many requests a minute.

    counts: False for what belongs to a page that was counted already.
    """
    if not 20 <= len(token) <= 100:
        return Opened("unknown")
    link = (
        ShareLink.objects.select_related("report__investigation")
        .filter(token_sha256=_hash(token), report__state=Report.State.PUBLISHED)
        .first()
    )
    if link is None:
        return Opened("unknown")
    if link.revoked_at is not None or link.expires_at <= now:
        return Opened("over")
    if not _within_limit(link, now):
        return Opened("busy")
    if counts:
        ShareLink.objects.filter(pk=link.pk).update(opened=F("opened") + 1, opened_at=now)
    return Opened("ok", link)


def _within_limit(link: ShareLink, now: datetime) -> bool:
    """Count one request in the current minute, across all processes."""
    mine = ShareLink.objects.filter(pk=link.pk)
    minute = now - timedelta(seconds=60)
    if mine.filter(Q(window_at=None) | Q(window_at__lte=minute)).update(
        window_at=now, window_count=1
    ):
        return True
    within = mine.filter(window_count__lt=REQUESTS_A_MINUTE)
    return bool(within.update(window_count=F("window_count") + 1))
