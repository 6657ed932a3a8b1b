"""Share links: that report alone, no account, no session; hashed, expiring, revocable, limited."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from experiments import dispatch, lifecycle, queries
from experiments.lifecycle import reports as kept
from experiments.models import Report, ShareLink
from experiments.reports import document, making
from experiments.views import shared


@pytest.fixture(autouse=True)
def nobody_has_guessed() -> None:
    shared.guesses.clear()


@pytest.fixture
def version(story: Any) -> Report:
    page = queries.investigation_page(story.investigation.slug)
    draft = kept.draft_of(investigation=story.investigation, by="ada")
    now = timezone.now()
    stamp = {"number": 1, "published_by": "ada", "published_at": now.isoformat()}
    found = document.document(page, stamp=stamp)
    return kept.publish(draft=draft, body=found.body, sha256=found.digest, by="ada", now=now)


@pytest.fixture
def token(version: Report) -> str:
    return kept.share(report=version, by="ada", days=7, label="the vendor")[1]


def test_the_holder_sees_the_report_without_an_account_or_a_session(token: str) -> None:
    stranger = Client()
    answer = stranger.get(f"/s/{token}/")
    assert answer.status_code == 200
    assert b"Why is it slow" in answer.content
    assert not answer.cookies
    assert not stranger.cookies
    assert answer["Referrer-Policy"] == "no-referrer"
    assert "noindex" in answer["X-Robots-Tag"]
    assert "no-store" in answer["Cache-Control"]
    assert "script-src 'self'" in answer["Content-Security-Policy"]


def test_the_shared_page_leads_nowhere_else(token: str, parsed: Any) -> None:
    page = parsed(Client().get(f"/s/{token}/"))
    links = {link for link in page.links if not link.startswith(("#", "/static/"))}
    figures = {link for link in links if link.startswith("figure/")}
    assert links - figures == {f"/s/{token}/report.pdf", f"/s/{token}/report.md"}
    assert figures  # beside the page's own address, and so under the link
    assert Client().get(f"/s/{token}/{min(figures)}").status_code == 200
    assert Client().get(f"/s/{'x' * 43}/{min(figures)}").status_code == 404
    assert page.inline == []


def test_a_link_opens_no_other_page(token: str, story: Any) -> None:
    holder = Client()
    holder.get(f"/s/{token}/")
    for address in (
        "/",
        f"/i/{story.investigation.slug}/",
        f"/i/{story.investigation.slug}/report/",
    ):
        assert holder.get(address).status_code == 302, address


def test_the_holder_gets_the_pdf_that_the_worker_made(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(dispatch, "send_rendering", lambda row: sent.append(row.pk))
    waiting = Client().get(f"/s/{token}/report.pdf")
    assert waiting.status_code == 202
    assert not waiting.cookies
    making.make(sent[0])
    answer = Client().get(f"/s/{token}/report.pdf")
    assert answer["Content-Type"] == "application/pdf"
    assert b"".join(answer.streaming_content).startswith(b"%PDF")  # type: ignore[attr-defined]
    told = Client().get(f"/s/{token}/report.md")
    assert told["Content-Type"].startswith("text/plain")


def test_only_the_token_s_hash_is_kept(token: str) -> None:
    row = ShareLink.objects.get()
    assert token not in str(vars(row))
    assert len(row.token_sha256) == 64


def test_a_revoked_link_shows_nothing_and_says_so(token: str) -> None:
    row = kept.revoke(link=ShareLink.objects.get(), by="ada")
    assert kept.revoke(link=row, by="eve").revoked_by == "ada"
    for tail in ("", "report.pdf", "report.md"):
        answer = Client().get(f"/s/{token}/{tail}")
        assert answer.status_code == 410
        assert b"expired or was withdrawn" in answer.content
        assert b"Why is it slow" not in answer.content


def test_an_expired_link_shows_nothing(token: str) -> None:
    ShareLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Client().get(f"/s/{token}/").status_code == 410
    ShareLink.objects.update(expires_at=timezone.now() + timedelta(seconds=60))
    assert Client().get(f"/s/{token}/").status_code == 200


def test_openings_are_counted_and_limited(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "REQUESTS_A_MINUTE", 3)
    codes = [Client().get(f"/s/{token}/").status_code for _ in range(4)]
    assert codes == [200, 200, 200, 429]
    assert ShareLink.objects.get().opened == 3
    later = timezone.now() + timedelta(seconds=61)
    assert kept.open_shared(token=token, now=later).outcome == "ok"


def test_guessing_is_limited_and_harms_no_holder(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "GUESSES_A_MINUTE", 3)
    codes = [Client().get(f"/s/{'x' * 43}/").status_code for _ in range(4)]
    assert codes == [404, 404, 404, 429]
    assert Client().get(f"/s/{token}/").status_code == 200


@pytest.mark.parametrize("days", ["0", "-1", "367", "", "1e3", "９"])
def test_a_link_lasts_a_known_time(browser: Any, version: Report, story: Any, days: str) -> None:
    address = reverse("report-share", args=[story.investigation.slug, 1])
    browser.post(address, {"days": days})
    assert not ShareLink.objects.exists()


def test_the_address_is_shown_once_and_works(browser: Any, version: Report, story: Any) -> None:
    address = reverse("report-share", args=[story.investigation.slug, 1])
    answer = browser.post(address, {"days": "3", "label": "the <b>vendor</b>"})
    assert answer.status_code == 201
    page = answer.content.decode()
    link = page.split('readonly value="')[1].split('"')[0]
    assert Client().get(link.removeprefix("http://testserver")).status_code == 200
    assert "the <b>vendor" not in page
    versions = browser.get(reverse("report-versions", args=[story.investigation.slug]))
    assert link.encode() not in versions.content
    assert b"Revoke" in versions.content


def test_a_form_that_is_sent_again_makes_no_second_link(
    browser: Any, version: Report, story: Any
) -> None:
    versions = reverse("report-versions", args=[story.investigation.slug])
    once = browser.get(versions).content.decode().split('name="once" value="')[1].split('"')[0]
    address = reverse("report-share", args=[story.investigation.slug, 1])

    def sent(word: str) -> str:
        answer = browser.post(address, {"days": "3", "once": word}, follow=True)
        page: str = answer.content.decode()
        return (
            page.split('readonly value="')[1].split('"')[0] if answer.status_code == 201 else page
        )

    first = sent(once)
    assert sent(once) == first
    assert once not in first
    (link,) = ShareLink.objects.all()
    assert sent("another") != first
    assert ShareLink.objects.count() == 2
    kept.revoke(link=link, by="ada")
    assert "works no more; make a new one" in sent(once)
    assert ShareLink.objects.count() == 2


def test_a_form_s_word_makes_another_person_another_token(version: Report) -> None:
    made = [kept.share(report=version, by=by, days=3, once="w")[1] for by in ("ada", "ada", "eve")]
    assert made[0] == made[1] != made[2]
    assert all(len(token) == 43 for token in made)


def test_a_draft_cannot_be_shared(story: Any) -> None:
    draft = kept.draft_of(investigation=story.investigation)
    with pytest.raises(lifecycle.Refused, match="publish the draft first"):
        kept.share(report=draft, by="ada", days=3)


def test_a_link_of_another_investigation_cannot_be_revoked(
    browser: Any, token: str, story: Any
) -> None:
    other = lifecycle.create_investigation(title="other", question="?")
    pk = ShareLink.objects.get().pk
    assert browser.post(reverse("report-link-revoke", args=[other.slug, pk])).status_code == 404
    assert ShareLink.objects.get().revoked_at is None
