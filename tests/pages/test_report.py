"""The report's pages: the draft, its PDF by the worker, publishing, versions and what changed."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments import dispatch, lifecycle, queries
from experiments.lifecycle import renderings
from experiments.lifecycle import reports as kept
from experiments.models import Rendering, Report, ReportNote, Run
from experiments.queries import reports as reads
from experiments.reports import document, making, render
from experiments.reports.document import Document
from experiments.reports.sections import SECTIONS

SECRET = "hf_AbCdEfGhIjKlMnOpQrStUvWx"


@pytest.fixture
def report(story: Any) -> Document:
    return document.document(queries.investigation_page(story.investigation.slug))


@pytest.fixture
def at(story: Any) -> str:
    return f"/i/{story.investigation.slug}/report"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows whose message would have gone to a worker."""
    ids: list[int] = []
    monkeypatch.setattr(dispatch, "send_rendering", lambda row: ids.append(row.pk))
    return ids


@pytest.fixture
def publish(browser: Client, at: str, sent: list[int]) -> Callable[[], Report]:
    """Press the button that publishes what stands on the draft's page now."""

    def press() -> Report:
        page = browser.get(f"{at}/draft/").content.decode()
        digest = page.split('name="reviewed" value="')[1].split('"')[0]
        browser.post(f"{at}/publish/", {"reviewed": digest})
        return Report.objects.filter(state="published").latest("number")

    return press


def text_of(pdf: bytes) -> str:
    from pypdf import PdfReader

    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)


def body_of(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def test_the_page_tells_goal_gap_and_origin(browser: Client, at: str) -> None:
    page = browser.get(f"{at}/").content.decode()
    said = page.split("<dt>Goal</dt><dd>")[1].split("</dd>")[0]
    assert said.startswith("Not met: the best run, R1, has 56.8 of 90.0 tok/s (63 %), 33.2 short")
    assert (
        "Reference engine, CPU, not a GPU&#x27;s figures" in page or "not a GPU's figures" in page
    )
    assert "Recorded, unreplicated" in page
    assert "draft-tokens-overridden" in page
    assert "Mean throughput in tok/s: R0 90.0 (n = 1), R1 56.8 ± 0.6 (n = 3)" in page


def test_the_pdf_is_made_by_the_worker_and_not_in_the_request(
    browser: Client, at: str, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as here:
        here.setattr(render, "pdf", lambda *a, **k: pytest.fail("laid out in the request"))
        first = browser.get(f"{at}.pdf")
        again = browser.get(f"{at}.pdf")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first["Retry-After"] == "2"
    assert b'http-equiv="refresh"' in first.content
    assert Rendering.objects.count() == 1
    assert set(sent) == {Rendering.objects.get().pk}
    assert making.make(sent[0])
    answer = browser.get(f"{at}.pdf")
    assert answer["Content-Type"] == "application/pdf"
    assert "page 1 of" in text_of(body_of(answer))


def test_a_pdf_that_failed_says_why_and_is_made_again_on_demand(
    browser: Client, at: str, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.get(f"{at}.pdf")
    with monkeypatch.context() as broken:
        broken.setattr(render, "pdf", lambda *a, **k: 1 / 0)
        assert not making.make(sent[0])
    answer = browser.get(f"{at}.pdf")
    assert answer.status_code == 500
    assert b"ZeroDivisionError" in answer.content
    assert browser.post(f"{at}.pdf").status_code == 202
    assert Rendering.objects.get().state == "queued"


def test_without_pango_the_pdf_says_what_to_install_and_the_page_still_opens(
    browser: Client, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "pdf_problem", lambda: render.MISSING)
    answer = browser.get(f"{at}.pdf")
    assert answer.status_code == 503
    assert b"apt-get install libpango" in answer.content
    page = browser.get(f"{at}/")
    assert page.status_code == 200
    assert b"apt-get install libpango" in page.content


def test_a_changed_row_changes_digest_and_etag(browser: Client, story: Any, at: str) -> None:
    etag = browser.get(f"{at}/")["ETag"]
    assert browser.get(f"{at}/", headers={"If-None-Match": etag}).status_code == 304
    lifecycle.set_finding_aside(finding=story.finding, by="ada", reason="known")
    answer = browser.get(f"{at}/", headers={"If-None-Match": etag})
    assert answer.status_code == 200
    assert answer["ETag"] != etag


def test_markdown_and_json_tell_the_same(browser: Client, at: str, report: Document) -> None:
    told = browser.get(f"{at}.md").content.decode()
    assert "- **Goal.** Not met: the best run, R1, has 56.8 of 90.0 tok/s" in told
    body = json.loads(browser.get(f"{at}.json").content)
    assert body["post_mortem"]["runs"][1]["n"] == 3
    assert document.read(body).digest == report.digest


def test_sections_are_chosen_and_the_summary_stays(browser: Client, at: str) -> None:
    boxes = {"template": "full", "page": "Letter", "section": ["next", "runs"]}
    assert browser.post(f"{at}/draft/", boxes).status_code == 302
    page = browser.get(f"{at}/").content.decode()
    for gone in ("Root causes", "Appendix", "Timeline"):
        assert f"<h2>{gone}" not in page
    for kept_ in ("Summary", "What to do next", "Runs"):
        assert f"<h2>{kept_}</h2>" in page
    assert Report.objects.get().page == "Letter"
    browser.post(f"{at}/draft/", {"template": "short", "page": "A4"})
    # Boxes of the other template are no choice in this one.
    assert "next" not in Report.objects.get().left_out


def test_a_remark_stands_beside_the_figures_as_its_author_s(
    browser: Client, at: str, story: Any
) -> None:
    sentence = "The client was **mine**. <script>alert(9)</script>"
    for _ in range(2):  # a double click
        browser.post(f"{at}/remark/", {"beside": "runs", "text": sentence})
    assert ReportNote.objects.count() == 1
    page = browser.get(f"{at}/").content.decode()
    assert "Added by ada, not measured" in page
    assert "The client was <strong>mine</strong>." in page
    assert "<script>alert(9)" not in page
    assert "16 asked, 2 in force" in page
    browser.post(f"{at}/remark/", {"beside": "no such", "text": "x"})
    browser.post(f"{at}/remark/{ReportNote.objects.get().pk}/remove/")
    assert "Added by ada" not in browser.get(f"{at}/").content.decode()


def test_what_must_not_leave_is_listed_and_let_through_only_by_hand(
    browser: Client, at: str, story: Any
) -> None:
    argv = ["python", "--api-key", SECRET, "--model-path", "/home/ada/models/x"]
    Run.objects.filter(pk=story.slow.pk).update(argv=argv)
    for address in (f"{at}/", f"{at}.md", f"{at}.json"):
        text = browser.get(address).content.decode()
        assert SECRET not in text, address
        assert "/home/ada" not in text, address
    page = browser.get(f"{at}/draft/").content.decode()
    assert "hf_A…Wx (27 characters)" in page
    assert "user name in a path" in page
    row = next(
        r
        for r in document.document(queries.investigation_page(story.investigation.slug)).redactions
        if r.kind == "user"
    )
    everything = list(document.SECTIONS)
    browser.post(
        f"{at}/draft/",
        {"template": "full", "page": "A4", "kept": [row.key], "section": everything},
    )
    text = browser.get(f"{at}/").content.decode()
    assert "/home/ada/models/x" in text
    assert SECRET not in text


def test_a_published_version_stays_as_it_was(
    browser: Client, at: str, story: Any, publish: Callable[[], Report], sent: list[int]
) -> None:
    version = publish()
    assert (version.number, version.published_by) == (1, "ada")
    text = browser.get(f"{at}/v1.json").content
    assert hashlib.sha256(text).hexdigest() == version.sha256
    page = browser.get(f"{at}/v1/").content
    assert b"version 1" in page
    assert version.sha256[:16].encode() in page
    making.make(sent[-1])
    pdf = body_of(browser.get(f"{at}/v1.pdf"))
    lifecycle.set_finding_aside(finding=story.finding, by="ada", reason="known")
    assert browser.get(f"{at}/v1/").content == page
    assert browser.get(f"{at}/v1.json").content == text
    assert body_of(browser.get(f"{at}/v1.pdf")) == pdf
    with pytest.raises(lifecycle.Refused, match="published"):
        kept.choose(draft=version, template="short")
    with pytest.raises(lifecycle.Refused, match="published"):
        kept.add_remark(draft=version, section="runs", text="late", author="ada")
    with pytest.raises(lifecycle.Refused, match="published already"):
        kept.publish(draft=version, body={}, sha256="", by="eve", now=version.published_at)  # type: ignore[arg-type]


def test_publishing_what_nobody_has_seen_is_refused(
    browser: Client, at: str, story: Any, sent: list[int]
) -> None:
    page = browser.get(f"{at}/draft/").content.decode()
    digest = page.split('name="reviewed" value="')[1].split('"')[0]
    lifecycle.add_event(investigation=story.investigation, title="in the meantime")
    answer = browser.post(f"{at}/publish/", {"reviewed": digest}, follow=True)
    assert b"have changed since that page was shown" in answer.content
    assert not Report.objects.filter(state="published").exists()


def test_a_second_click_publishes_no_second_version(
    browser: Client, at: str, publish: Callable[[], Report]
) -> None:
    page = browser.get(f"{at}/draft/").content.decode()
    digest = page.split('name="reviewed" value="')[1].split('"')[0]
    publish()
    browser.post(f"{at}/publish/", {"reviewed": digest})
    numbers = list(Report.objects.filter(state="published").values_list("number", flat=True))
    assert numbers == [1]


def test_what_has_not_changed_is_published_once_and_on_another_paper_again(
    browser: Client, at: str, publish: Callable[[], Report]
) -> None:
    assert publish().number == 1
    assert "Nothing has changed since" in browser.get(f"{at}/draft/").content.decode()
    assert publish().number == 1
    browser.post(f"{at}/draft/", {"template": "full", "page": "Letter", "section": list(SECTIONS)})
    assert publish().number == 2


def test_no_button_of_the_draft_loses_what_was_ticked_and_written(
    browser: Client, at: str, publish: Callable[[], Report]
) -> None:
    page = browser.get(f"{at}/draft/").content.decode()
    digest = page.split('name="reviewed" value="')[1].split('"')[0]
    form = {"template": "full", "page": "A4", "section": ["runs", "gap"], "reviewed": digest}
    written = {**form, "beside": "runs", "text": "mine"}
    # Published is what was seen: with other ticks it is another report, to be looked at first.
    answer = browser.post(f"{at}/publish/", written, follow=True)
    assert b"What you chose is kept, and not published yet" in answer.content
    assert not Report.objects.filter(state="published").exists()
    draft = Report.objects.get(state="draft")
    assert set(SECTIONS) - set(draft.left_out) == {"summary", "runs", "gap"}
    assert [note.text for note in draft.remarks.all()] == ["mine"]
    browser.post(f"{at}/remark/", {**form, "section": ["runs"], "beside": "gap", "text": "two"})
    remark = ReportNote.objects.get(text="mine")
    browser.post(f"{at}/remark/{remark.pk}/remove/", {**form, "section": ["gap"], "text": ""})
    draft.refresh_from_db()
    assert set(SECTIONS) - set(draft.left_out) == {"summary", "gap"}
    assert [note.text for note in draft.remarks.all()] == ["two"]
    assert publish().post_mortem["sections"] == ["summary", "gap"]


def test_a_reader_sees_what_changed_between_two_versions(
    browser: Client, at: str, story: Any, publish: Callable[[], Report]
) -> None:
    browser.post(f"{at}/remark/", {"beside": "runs", "text": "first words"})
    publish()
    lifecycle.set_finding_aside(finding=story.finding, by="ada", reason="known and harmless")
    lifecycle.add_event(investigation=story.investigation, title="Asked the vendor", kind="note")
    assert publish().number == 2
    page = browser.get(f"{at}/v2/since/v1/").content.decode()
    assert "draft-tokens-overridden" in page
    assert "high, open" in page
    assert "high, set-aside" in page
    assert "note: Asked the vendor" in page
    assert "first words" not in page  # carried over, and so no change
    assert "Nothing that a reader sees" in browser.get(f"{at}/v2/since/v2/").content.decode()
    assert browser.get(f"{at}/v3/since/v1/").status_code == 404


def test_the_next_draft_takes_choices_and_remarks_over(
    browser: Client, at: str, story: Any, publish: Callable[[], Report]
) -> None:
    browser.post(f"{at}/draft/", {"template": "short", "page": "Letter"})
    browser.post(f"{at}/remark/", {"beside": "runs", "text": "still true"})
    publish()
    draft = kept.draft_of(investigation=story.investigation)
    assert (draft.number, draft.template, draft.page) == (2, "short", "Letter")
    assert [r.text for r in draft.remarks.all()] == ["still true"]


def test_the_versions_are_read_with_as_many_queries_however_many_there_are(
    story: Any, publish: Callable[[], Report], django_assert_num_queries: Any
) -> None:
    for title in ("a", "b", "c"):
        lifecycle.add_event(investigation=story.investigation, title=title)
        kept.share(report=publish(), by="ada", days=3)
    with django_assert_num_queries(3):
        page = reads.reports_page(story.investigation.slug)
    assert [v.report.number for v in page.versions] == [3, 2, 1]


def test_a_worker_that_dies_over_a_pdf_loses_it_to_the_next_and_at_last_to_a_sentence(
    browser: Client, at: str, sent: list[int]
) -> None:
    from datetime import timedelta

    from django.utils import timezone

    browser.get(f"{at}.pdf")
    pk, now = sent[0], timezone.now()
    assert renderings.claim(pk, token="one", now=now) is not None
    assert renderings.claim(pk, token="two", now=now) is None
    for n in range(2, renderings.MOST_ATTEMPTS + 1):
        now += timedelta(seconds=renderings.LOST_AFTER_SECONDS + 1)
        assert pk in renderings.waiting(now=now)
        assert renderings.claim(pk, token=f"later {n}", now=now) is not None
        assert not renderings.finish(pk, token="one", pdf=b"%PDF late")
    now += timedelta(seconds=renderings.LOST_AFTER_SECONDS + 1)
    assert renderings.claim(pk, token="last", now=now) is None
    assert "died 3 times" in Rendering.objects.get().problem


def test_a_full_disk_ends_in_a_sentence(
    browser: Client, at: str, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.get(f"{at}.pdf")

    def full(*args: Any, **kwargs: Any) -> Any:
        raise lifecycle.Refused("no space left in the data folder; free some")

    monkeypatch.setattr(render, "pdf", lambda *a, **k: b"%PDF")
    monkeypatch.setattr(renderings.store, "put", full)
    assert not making.make(sent[0])
    assert Rendering.objects.get().problem.startswith("no space left")


def test_an_investigation_without_rows_has_a_report(browser: Client, db: Any, user: User) -> None:
    row = lifecycle.create_investigation(title="new", question="why?")
    told = document.document(queries.investigation_page(row.slug))
    page = render.html(told)
    assert "No run has been planned" in page
    assert "Nothing has been measured yet, and no rule names a cause." in page
    assert render.pdf(told).startswith(b"%PDF")


def test_only_single_figures_of_a_write_up_are_called_unreplicated(
    browser: Client, at: str, story: Any
) -> None:
    assert "Recorded, unreplicated" in browser.get(f"{at}/").content.decode()
    story.baseline.repeats.create(index=1, tok_s=91.0)
    for form in ("/", ".md"):
        page = browser.get(f"{at}{form}").content.decode()
        assert "Recorded: some figures come from a write-up" in page
        assert "nreplicated:" not in page
    run = browser.get(story.baseline.get_absolute_url()).content.decode()
    assert "recorded</span>" in run
    assert "recorded, unreplicated" not in run
