"""The report: one template, page and PDF, no address but our own."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.test import Client

from experiments import lifecycle, queries
from experiments.reports import build, render


@pytest.fixture
def report(story: Any) -> build.Report:
    return build.report(queries.investigation_page(story.investigation.slug))


def text_of(pdf: bytes) -> str:
    from pypdf import PdfReader

    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)


def test_the_page_tells_goal_gap_and_origin(browser: Client, story: Any) -> None:
    page = browser.get(f"{story.investigation.get_absolute_url()}report/").content.decode()
    assert "Goal not met: tok_s 56.8 against the baseline of 90 (0.63 of it)" in page
    assert "Reference engine, CPU, not a GPU's figures" in page
    assert "Recorded, unreplicated" in page
    assert "draft-tokens-overridden" in page
    assert 'alt="Means in tok/s: R0 90.0, R1 56.8; goal 90."' in page


def test_the_pdf_says_what_the_page_says_and_is_tagged(
    browser: Client, story: Any, report: build.Report
) -> None:
    from pypdf import PdfReader

    answer = browser.get(f"/i/{story.investigation.slug}/report.pdf")
    assert answer["Content-Type"] == "application/pdf"
    text = text_of(answer.content)
    for sentence in report.post_mortem.summary:
        assert sentence.split(".")[0].replace(" ", "") in text.replace(" ", "").replace("\n", "")
    assert "page 1 of" in text
    reader = PdfReader(io.BytesIO(answer.content))
    catalog: Any = reader.trailer["/Root"]
    assert catalog["/MarkInfo"]["/Marked"]
    assert catalog["/Lang"] == "en"
    assert reader.metadata is not None
    assert reader.metadata.title == "Why is it slow: post-mortem"
    outline = str(reader.outline)
    for heading in ("Summary", "Runs", "Timeline", "Root causes", "Open bugs"):
        assert heading in outline
    assert b"pdfuaid" in catalog["/Metadata"].get_data()


def test_a_long_table_repeats_its_head_on_every_page(story: Any) -> None:
    for _ in range(35):
        lifecycle.repeat_run(story.slow)
    pages = text_of(
        render.pdf(build.report(queries.investigation_page(story.investigation.slug)))
    ).split("page ")
    heads = [page for page in pages if "draws level at" in page.replace("\n", " ")]
    assert len(heads) >= 2


def test_rendered_twice_it_is_the_same_to_the_byte(story: Any, report: build.Report) -> None:
    again = build.report(queries.investigation_page(story.investigation.slug))
    assert again.digest == report.digest
    assert render.html(again) == render.html(report)
    assert render.pdf(again) == render.pdf(report)


def test_a_changed_row_changes_digest_and_etag(browser: Client, story: Any) -> None:
    address = f"/i/{story.investigation.slug}/report/"
    etag = browser.get(address)["ETag"]
    assert browser.get(address, headers={"If-None-Match": etag}).status_code == 304
    lifecycle.set_finding_aside(finding=story.finding, by="ada", reason="known")
    answer = browser.get(address, headers={"If-None-Match": etag})
    assert answer.status_code == 200
    assert answer["ETag"] != etag


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/hostname",
        "http://127.0.0.1:9/x.css",
        "https://example.org/x.png",
        "ftp://x/y",
        "data:text/html,x",
        "specdebug:css/../settings.py",
        "specdebug:css/base.css",
    ],
)
def test_the_pdf_fetches_nothing_but_its_own(address: str) -> None:
    with pytest.raises(ValueError, match="refused"):
        render._fetcher().fetch(address)


def test_the_pdf_s_own_stylesheet_is_found() -> None:
    assert b"@page" in render._fetcher().fetch(render.STYLESHEET).read()


def test_hostile_texts_stay_text_in_the_pdf(hostile: Any) -> None:
    text = text_of(render.pdf(build.report(queries.investigation_page(hostile.investigation.slug))))
    assert "<script>alert(1)</script>" in text.replace("\n", "")


def test_without_pango_the_pdf_says_what_to_install_and_the_page_still_opens(
    browser: Client, story: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Any:
        raise render.PdfUnavailable(render.MISSING)

    monkeypatch.setattr(render, "_weasyprint", missing)
    render.pdf_problem.cache_clear()
    try:
        answer = browser.get(f"/i/{story.investigation.slug}/report.pdf")
        assert answer.status_code == 503
        assert b"apt-get install libpango" in answer.content
        page = browser.get(f"/i/{story.investigation.slug}/report/")
        assert page.status_code == 200
        assert b"apt-get install libpango" in page.content
    finally:
        render.pdf_problem.cache_clear()


def test_an_import_that_fails_in_the_system_library_is_understood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import builtins

    plain = builtins.__import__

    def failing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "weasyprint":
            raise OSError("cannot load library 'libpango-1.0-0'")
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", failing)
    with pytest.raises(render.PdfUnavailable, match="apt-get install"):
        render._weasyprint()


def test_an_investigation_without_rows_has_a_report(db: Any) -> None:
    row = lifecycle.create_investigation(title="new", question="why?")
    told = build.report(queries.investigation_page(row.slug))
    assert "No run has been planned" in render.html(told)
    assert render.pdf(told).startswith(b"%PDF")
