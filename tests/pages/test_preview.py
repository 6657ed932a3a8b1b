"""How a note will stand, as it is typed: only where Markdown makes a difference, and nothing of it
can act."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.views import preview
from tests.pages.routes import all_pages


def previewed(browser: Client, text: str) -> str:
    return browser.post("/preview/?of=note", {"note": text, "text": "# other"}).content.decode()


def test_a_formatted_text_is_shown_as_it_will_stand(browser: Client) -> None:
    shown = previewed(browser, "Seen on **two** ranks:\n\n- TP0\n- TP1")
    assert "As it will stand" in shown
    assert "<strong>two</strong>" in shown
    assert shown.count("<li>") == 2
    assert "other" not in shown


@pytest.mark.parametrize("text", ["", "  \n", "Slower than before.\nAnd a second line.\n\nMore."])
def test_what_stands_as_it_was_typed_is_not_shown_twice(browser: Client, text: str) -> None:
    assert previewed(browser, text).strip() == ""


def test_nothing_in_a_preview_can_act(browser: Client) -> None:
    shown = previewed(browser, "**x** <script>alert(1)</script> [y](javascript:alert(1))")
    assert "<script" not in shown
    assert "href" not in shown


def test_a_long_text_is_shown_in_part_and_says_so(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "LONGEST", 9)
    shown = previewed(browser, "**begin** and the rest")
    assert "the first 9 characters" in shown
    assert "rest" not in shown


def test_a_preview_is_asked_for_by_post_and_by_people_only(browser: Client) -> None:
    assert browser.get("/preview/").status_code == 405
    assert Client().post("/preview/?of=note", {"note": "**x**"}).status_code == 302


def test_every_page_with_a_preview_can_ask_for_it(browser: Client, story: Any, user: User) -> None:
    seen = 0
    for address in all_pages(story, user).values():
        html = browser.get(address).content.decode()
        asked = re.findall(r'class="preview" hx-post="[^"]+\?of=(\w+)"[^>]* from:#(\w+)"', html)
        for name, source in asked:
            (area,) = re.findall(rf"<textarea[^>]* id=.{source}.[^>]*>", html)
            assert f'name="{name}"' in area
        assert not asked or "htmx" in html
        seen += len(asked)
    assert seen > 4
