"""Lists over everything: the first page, the findings board, search, and kept views."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from experiments import lifecycle, queries
from experiments.models import Finding, Run, SavedView, Worker
from experiments.queries.board import board
from experiments.queries.matches import matches
from tests.pages.conftest import Story


def test_the_first_page_lists_open_investigations_and_counts_the_others(
    story: Story, browser: Client
) -> None:
    other = lifecycle.create_investigation(title="Given up", question="?")
    lifecycle.abandon(investigation=other, by="ada", reason="no machine")
    page = browser.get("/").content.decode()
    assert "Why is it slow" in page
    assert "Given up" not in page
    assert "Given up" in browser.get("/?state=abandoned").content.decode()
    assert queries.home().states == {"open": 1, "abandoned": 1}


def test_the_first_page_goes_on_page_by_page(db: None) -> None:
    for i in range(12):
        lifecycle.create_investigation(title=f"n{i}", question="?")
    first, second = queries.home(), queries.home(page="2")
    assert [len(first.rows), len(second.rows)] == [10, 2]
    assert not {r.investigation.pk for r in first.rows} & {r.investigation.pk for r in second.rows}
    # A page beyond the last is the last, and a word is the first.
    assert queries.home(page="99").page.number == 2
    assert queries.home(page="x").page.number == 1


def test_what_got_worse_is_a_fault_of_cost_that_is_new_and_open(story: Story) -> None:
    assert queries.home().worse == ()  # the story's finding is none of cost
    finding = Finding.objects.create(
        investigation=story.investigation,
        code="slower-than-baseline",
        severity="high",
        confidence="likely",
        statement="slower",
        opened_in=story.slow,
    )
    turn = finding.events.create(kind="opened", run=story.slow)
    assert [t.finding for t in queries.home().worse] == [finding]
    type(turn).objects.filter(pk=turn.pk).update(at=timezone.now() - timedelta(days=30))
    assert queries.home().worse == ()


def test_hosts_are_alive_silent_or_gone(db: None, browser: Client) -> None:
    now = timezone.now()
    common = {"pid": 1, "started_at": now}
    Worker.objects.create(name="a", host="box-a", heartbeat_at=now, gpu_count=8, **common)
    Worker.objects.create(name="b", host="box-b", heartbeat_at=now - timedelta(hours=1), **common)
    Worker.objects.create(name="c", host="box-c", heartbeat_at=now, stopped_at=now, **common)
    lifecycle.create_investigation(title="one", question="?")
    assert {h.worker.host: h.alive for h in queries.home().hosts} == {"box-a": True, "box-b": False}
    page = browser.get("/").content.decode()
    assert "8 GPUs" in page
    assert "silent" in page


def test_running_work_is_followed_and_its_end_reloads_the_page(
    story: Story, browser: Client
) -> None:
    assert "hx-get" not in browser.get("/").content.decode()
    ended = browser.get("/running/")
    assert (ended.status_code, ended["HX-Refresh"]) == (204, "true")
    Run.objects.filter(pk=story.draft.pk).update(
        state="running", phase="measuring", fraction=0.4, heartbeat_at=timezone.now()
    )
    assert 'hx-trigger="every 2s"' in browser.get("/").content.decode()
    piece = browser.get("/running/").content.decode()
    assert "measuring" in piece
    assert 'value="0.4"' in piece


def test_the_board_filters_by_severity_state_and_code(story: Story) -> None:
    assert [f.code for f in board(state="open").page] == ["draft-tokens-overridden"]
    assert list(board(state="fixed").page) == []
    assert list(board(severity="critical").page) == []
    assert len(board(code="draft-tokens-overridden").page) == 1
    assert len(board(severity="no-such", state="no-such").page) == 1
    assert board().count("high", "open") == 1


def test_the_gravest_stand_first(story: Story) -> None:
    for code, severity in (("a", "info"), ("b", "critical"), ("c", "medium")):
        Finding.objects.create(
            investigation=story.investigation,
            code=code,
            severity=severity,
            confidence="likely",
            statement=code,
        )
    assert [f.severity for f in board().page] == ["critical", "high", "medium", "info"]


def test_search_finds_by_words_and_by_fields(story: Story, browser: Client) -> None:
    assert "16 asked, 2 in force" in browser.get("/search/?q=in+force").content.decode()
    assert matches("state:failed").total == 0
    assert [r.pk for r in matches("state = done AND label = R1").rows["run"]] == [story.slow.pk]
    assert matches("state = done AND engine = reference").total == 2
    assert matches("", "run").page is not None
    assert matches("").total == 0


def test_a_query_that_is_none_says_where_it_fails(story: Story, browser: Client) -> None:
    page = browser.get("/search/?q=state+%3D").content.decode()
    assert 'role="alert"' in page
    assert "(character " in page
    assert 'value="state ="' in page


def test_a_view_is_kept_by_name_opened_and_let_go(story: Story, browser: Client) -> None:
    asked = {"page": "search", "name": "mine", "query": "q=state%3Afailed"}
    assert browser.post("/search/keep/", asked)["Location"] == "/search/?q=state%3Afailed"
    browser.post("/search/keep/", asked | {"query": "q=other"})
    view = SavedView.objects.get()
    assert view.query == "q=other"
    assert "mine" in browser.get("/search/").content.decode()
    browser.post(f"/search/{view.pk}/forget/")
    assert not SavedView.objects.exists()


@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("home", "/?state=all"),
        ("findings", "/findings/?severity=high&state="),
        ("search", "/search/?q=slow"),
        ("compare", "/compare/?run=why-is-it-slow/R0&run=why-is-it-slow/R1"),
    ],
)
def test_every_list_with_filters_can_be_kept_as_it_stands(
    story: Story, browser: Client, page: str, address: str
) -> None:
    shown = browser.get(address)
    assert shown.context["keep"]["page"] == page
    query = shown.context["keep"]["query"]
    assert f'name="query" value="{escape(query)}"' in shown.content.decode()
    asked = {"page": page, "name": "mine", "query": query}
    kept = browser.post("/search/keep/", asked, follow=True).content.decode()
    assert "Kept as “mine”" in kept
    assert ">mine</a>" in kept
    assert browser.get(SavedView.objects.get().get_absolute_url()).status_code == 200
    # It stands on the list it was of and on no other.
    others = {"/", "/findings/", "/search/"} - {reverse(page)}
    assert not any(">mine</a>" in browser.get(other).content.decode() for other in others)


def test_a_view_that_is_not_kept_leaves_the_page_as_it_was(story: Story, browser: Client) -> None:
    asked = {"page": "findings", "name": " ", "query": "severity=high&state="}
    answer = browser.post("/search/keep/", asked)
    assert answer["Location"] == "/findings/?severity=high&state="
    assert "Not kept" in browser.get(answer["Location"]).content.decode()


@pytest.mark.parametrize(
    ("page", "name", "query"),
    [("nowhere", "x", ""), ("search", " ", ""), ("search", "x", "q" * 4000)],
)
def test_what_cannot_be_kept_is_refused(browser: Client, page: str, name: str, query: str) -> None:
    browser.post("/search/keep/", {"page": page, "name": name, "query": query})
    assert not SavedView.objects.exists()


def test_nobody_lets_go_of_another_s_view(browser: Client) -> None:
    other = User.objects.create_user("bob", password=None)
    view = SavedView.objects.create(user=other, page="search", name="his-own", query="q=1")
    browser.post(f"/search/{view.pk}/forget/")
    assert SavedView.objects.filter(pk=view.pk).exists()
    assert b"his-own" not in browser.get("/search/").content
