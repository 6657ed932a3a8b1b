"""Every page in a real Chromium: no accessibility fault in either theme, nothing refused by the
policy, nothing wider than a phone, and a first page that is light."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from experiments.models import DecodeSample
from tests.pages.conftest import make_story
from tests.pages.routes import all_pages

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(600),
    pytest.mark.django_db(transaction=True),
]
FIRST_PAGE_BYTES = 250_000
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}


@pytest.fixture
def chromium(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A running browser; skipped with the reason where the machine has none."""
    path = os.environ.get("SPECDEBUG_CHROMIUM") or shutil.which("chromium")
    if not path:
        pytest.skip("no Chromium: bin/find-chromium says how to get one")
    from playwright.sync_api import sync_playwright

    # Playwright runs an event loop in this thread, which Django takes for its own.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(
    chromium: Any, live_server: Any, data_dir: Any, user: Any
) -> Iterator[Callable[..., Any]]:
    """A page of a person who is logged in, by theme and size."""
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    cookie = client.cookies["specdebug_session"].value
    contexts = []

    def page(theme: str = "light", size: dict[str, int] = DESK) -> Any:
        context = chromium.new_context(viewport=size, color_scheme=theme, base_url=live_server.url)
        context.add_cookies(
            [{"name": "specdebug_session", "value": cookie, "url": live_server.url}]
        )
        contexts.append(context)
        return context.new_page()

    yield page
    for context in contexts:
        context.close()


def _said(page: Any) -> list[str]:
    said: list[str] = []
    page.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: said.append(str(e)))
    return said


def _faults(page: Any, rules: list[str] | None = None) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    options = {"runOnly": {"type": "rule", "values": rules}} if rules else None
    found = Axe().run(page, options=options).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['target']} {v['nodes'][0]['html'][:120]}" for v in found]


def test_no_page_has_an_accessibility_fault_in_the_light_theme(
    opened: Any, user: Any, unsent: None
) -> None:
    page, faults = opened(), {}
    said = _said(page)
    for name, address in all_pages(make_story(), user).items():
        assert page.goto(address).status == 200, name
        if found := _faults(page):
            faults[name] = found
    assert faults == {}
    assert said == []


def test_colours_are_told_apart_in_the_dark_theme_and_pages_fit_a_phone(
    opened: Any, user: Any, unsent: None
) -> None:
    page, faults = opened("dark", PHONE), {}
    for name, address in all_pages(make_story(), user).items():
        page.goto(address)
        found = _faults(page, ["color-contrast", "link-in-text-block"])
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if found or over > 0:
            faults[name] = [*found, f"{over} px too wide"] if over > 0 else found
    assert faults == {}


def test_the_first_page_is_light_and_asks_nobody_else(opened: Any, live_server: Any) -> None:
    make_story()
    page, sizes, elsewhere = opened(), [], []

    def seen(response: Any) -> None:
        sizes.append(len(response.body()))
        if not response.url.startswith(live_server.url):
            elsewhere.append(response.url)

    page.on("response", seen)
    page.goto("/")
    page.wait_for_load_state("networkidle")
    assert len(sizes) > 3
    assert sum(sizes) < FIRST_PAGE_BYTES
    assert elsewhere == []


def test_an_idle_page_asks_for_nothing(opened: Any) -> None:
    make_story()
    page, asked = opened(), []
    page.goto("/", wait_until="networkidle")
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(3000)
    assert asked == []


def test_the_chart_to_zoom_into_is_drawn_under_the_policy(opened: Any) -> None:
    story = make_story()
    DecodeSample.objects.bulk_create(
        DecodeSample(run=story.draft, line=i + 1, t=float(i), tok_s=50.0 + i) for i in range(5)
    )
    page, said = opened(), []
    page.on("console", lambda message: said.append(message.text))
    page.goto(reverse("explore", args=[story.investigation.slug]))
    page.wait_for_selector(".explore canvas", timeout=60_000)
    assert said == []


def test_keys_lead_to_the_search_and_to_pages(opened: Any) -> None:
    page = opened()
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type("aux layer")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=aux+layer")
    assert page.locator("#q").input_value() == "aux layer"
    page.locator("body").click(position={"x": 5, "y": 500})
    page.keyboard.press("g")
    page.keyboard.press("f")
    page.wait_for_url("**/findings/")
    assert "finding" in page.locator("h1").inner_text().lower()


def test_the_first_tab_shows_the_way_past_the_head(opened: Any) -> None:
    page = opened()
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_paper_has_the_tables_and_nothing_to_press(opened: Any) -> None:
    story = make_story()
    page = opened()
    page.emulate_media(media="print")
    page.goto(reverse("investigation", args=[story.investigation.slug]))
    shown = page.locator(":is(nav, button, .button, input, .get):visible")
    assert shown.count() == 0
    # The table of runs stands in the form that compares them.
    assert page.locator("form table:visible").count() == 1
    page.goto(reverse("run", args=[story.investigation.slug, 1]))
    assert page.locator("figure svg:visible").count() > 2
    page.emulate_media(media="screen")
    assert page.locator("nav:visible").count() > 0


def test_full_times_come_by_key_tap_and_button_and_stay(opened: Any) -> None:
    story = make_story()
    page = opened()
    address = reverse("investigation", args=[story.investigation.slug])

    def full() -> bool:
        told = "getComputedStyle(document.querySelector('main time'), '::after').content"
        return "UTC" in str(page.evaluate(told))

    page.goto(address)
    assert not full()
    page.keyboard.press("t")
    assert full()
    page.goto(address)
    assert full()
    page.click("main time >> nth=0")
    assert not full()
    page.focus("text=Times in full")
    page.keyboard.press("Enter")
    assert full()
    page.goto("/search/")
    page.focus("#q")
    page.keyboard.type("t")  # a letter, where one is writing
    assert page.locator(".times-in-full").count() == 1


def test_a_file_dropped_on_the_form_is_in_its_field(opened: Any) -> None:
    story = make_story()
    page = opened()
    page.goto(reverse("file-new", args=[story.investigation.slug]))
    page.evaluate(
        """() => {
          const files = new DataTransfer();
          files.items.add(new File(["{}"], "config.json"));
          for (const kind of ["dragover", "drop"])
            document.querySelector("form[data-drop] textarea").dispatchEvent(
              new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
        }"""
    )
    assert page.evaluate("document.querySelector('#id_file').files[0].name") == "config.json"
    page.click("main form button[type=submit]")
    page.wait_for_selector(".notice")
    assert "config.json" in page.inner_text(".notice")


def test_a_note_is_shown_as_it_will_stand_while_it_is_typed(opened: Any) -> None:
    story = make_story()
    page = opened()
    page.goto(reverse("event-new", args=[story.investigation.slug]))
    page.fill("#id_text", "plain")
    page.wait_for_timeout(800)
    assert page.locator(".preview .note").count() == 0
    page.fill("#id_text", "two **ranks**")
    page.wait_for_selector(".preview strong")
    assert page.inner_text(".preview strong") == "ranks"
