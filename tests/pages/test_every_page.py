"""What must hold on every page: login, policy, no inline code, bounded queries."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

# Session, user, and what the page itself needs; the report reads no more than the investigation.
MOST_QUERIES = {"home": 15, "log": 15, "finding": 6, "evidence": 5, "open": 2, "compare": 9}
# A run with a draft reads its whole investigation for the account of where its time goes.
MOST_QUERIES_ELSEWHERE = 18 + 14


def test_an_anonymous_reader_is_sent_to_the_login_page(addresses: dict[str, str]) -> None:
    for name, address in addresses.items():
        answer = Client().get(address)
        assert answer.status_code == 302, name
        assert answer["Location"].startswith("/login/?next=/"), name


def test_every_page_opens_with_a_policy_and_without_inline_code(
    browser: Client, addresses: dict[str, str], parsed: Any
) -> None:
    for name, address in addresses.items():
        answer = browser.get(address)
        assert answer.status_code == 200, name
        assert "script-src 'self'" in answer["Content-Security-Policy"], name
        assert "unsafe" not in answer["Content-Security-Policy"], name
        assert parsed(answer).inline == [], name


def test_markup_in_any_text_stays_text(
    browser: Client, hostile_addresses: dict[str, str], parsed: Any
) -> None:
    seen = 0
    for name, address in hostile_addresses.items():
        answer = browser.get(address)
        page = parsed(answer)
        assert answer.status_code == 200, name
        assert page.inline == [], name
        assert b"<script>alert" not in answer.content, name
        assert b"<img src=x" not in answer.content, name
        assert not [link for link in page.links if link.lower().startswith("javascript")], name
        seen += answer.content.count(b"alert(1)")
    # Shown as text, so that this test cannot pass by the texts being absent.
    assert seen > 40


def test_the_number_of_queries_does_not_grow_with_the_rows(
    browser: Client, story: Any, addresses: dict[str, str]
) -> None:
    from experiments import lifecycle

    def counted() -> dict[str, int]:
        counts = {}
        for name, address in addresses.items():
            with CaptureQueriesContext(
                connection,
            ) as queries:
                browser.get(address)
            counts[name] = len(queries)
        return counts

    before = counted()
    for name, count in before.items():
        assert count <= MOST_QUERIES.get(name, MOST_QUERIES_ELSEWHERE), name
    for _ in range(3):
        lifecycle.repeat_run(story.slow)
        claim = lifecycle.add_hypothesis(investigation=story.investigation, claim="another")
        lifecycle.register_prediction(hypothesis=claim, baseline=story.baseline)
        lifecycle.add_event(investigation=story.investigation, title="an event")
    assert counted() == before


@pytest.mark.parametrize(
    "address",
    [
        "/i/no-such/",
        "/i/no-such/report/",
        "/i/why-is-it-slow/r/99/",
        "/i/why-is-it-slow/h/9/",
        "/i/why-is-it-slow/f/999999/",
        "/i/why-is-it-slow/evidence/999999/",
        "/i/why-is-it-slow/r/1/x.json",
        "/i/why-is-it-slow/r/0/log/",
        "/i/%3Cscript%3E/",
        "/nowhere",
    ],
)
def test_what_is_not_there_is_a_404_that_helps(
    browser: Client, story: Any, address: str, parsed: Any
) -> None:
    answer = browser.get(address)
    assert answer.status_code == 404
    assert b"All investigations" in answer.content
    assert parsed(answer).inline == []


def test_rows_of_one_investigation_do_not_open_under_another(browser: Client, story: Any) -> None:
    from experiments import lifecycle

    other = lifecycle.create_investigation(title="other", question="?")
    assert browser.get(f"/i/{other.slug}/f/{story.finding.pk}/").status_code == 404
    assert browser.get(f"/i/{other.slug}/evidence/{story.log.pk}/file/").status_code == 404


def test_an_empty_record_says_what_to_do_next(browser: Client) -> None:
    assert b"load_story" in browser.get("/").content


def test_an_empty_investigation_says_what_to_do_next(browser: Client) -> None:
    from experiments import lifecycle

    row = lifecycle.create_investigation(title="new", question="why?")
    page = browser.get(row.get_absolute_url()).content.decode()
    assert "plan a run without speculation" in page
    assert "the baseline is not measured" in page


def test_the_goal_bar_shows_the_ratio_and_the_gap(browser: Client, story: Any) -> None:
    page = browser.get(story.investigation.get_absolute_url()).content.decode()
    assert ">0.63<" in page
    assert "33.2" in page
    assert "missing" in page


def test_origin_badges_stand_beside_the_figures(browser: Client, story: Any) -> None:
    for address in ("/", story.investigation.get_absolute_url(), story.slow.get_absolute_url()):
        assert b"reference engine, CPU, not a GPU" in browser.get(address).content, address
    assert b"recorded, unreplicated" in browser.get(story.baseline.get_absolute_url()).content


def test_a_finding_links_to_the_line_it_rests_on(browser: Client, story: Any) -> None:
    link = f"/i/{story.investigation.slug}/evidence/{story.log.pk}/?line=2#L2"
    address = f"/i/{story.investigation.slug}/f/{story.finding.pk}/"
    assert link in browser.get(address).content.decode()
    page = browser.get(link).content.decode()
    assert '<li id="L2" class="asked">' in page
    assert "is adjusted" in page


def test_a_download_is_never_shown_by_the_browser(browser: Client, story: Any) -> None:
    answer = browser.get(f"/i/{story.investigation.slug}/evidence/{story.log.pk}/file/")
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"].startswith("attachment")
    assert b"is adjusted" in b"".join(answer.streaming_content)  # type: ignore[attr-defined]
