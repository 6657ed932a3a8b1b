"""No page of the address book is left out of what is tried on all pages."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.test import Client

from tests.pages.conftest import Story
from tests.pages.routes import NO_PAGE, all_pages, forgotten


def test_every_address_is_a_page_that_is_visited_or_known_to_be_none(
    story: Story, user: User, unsent: None, browser: Client
) -> None:
    addresses = all_pages(story, user)
    assert forgotten(addresses) == []
    # A page that is taken out of the list is missed.
    del addresses["people"]
    assert forgotten(addresses) == ["people"]
    for name, address in addresses.items():
        answer = browser.get(address)
        # Who is logged in already is led away from the login page.
        assert answer.status_code == (302 if name == "login" else 200), name
        assert name == "login" or b"<h1" in answer.content, name


def test_what_is_said_to_be_no_page_is_in_the_address_book() -> None:
    from experiments.views.urls import urlpatterns

    assert set(NO_PAGE) <= {pattern.name for pattern in urlpatterns}


def test_published_reports_are_listed_and_drafts_are_not(
    story: Story, user: User, unsent: None, browser: Client
) -> None:
    assert "Nothing has been published yet" in browser.get("/reports/").content.decode()
    all_pages(story, user)
    page = browser.get("/reports/").content.decode()
    assert page.index("/report/v2/") < page.index("/report/v1/")
    assert page.count('scope="row"') == 2
