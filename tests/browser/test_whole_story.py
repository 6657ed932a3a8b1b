"""A person's whole way in a real Chromium: from the login link to the PDF, on the real workers."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specdebug.reference import variants
from tests.stories.conftest import Running, start

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SMALL = {"prompts_per_repeat": "4", "max_new_tokens": "32", "concurrency": "1", "repeats": "3"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    here = start(tmp_path / "data", "--no-replay")
    try:
        yield here
    finally:
        here.stop()


@pytest.fixture
def page(running: Running) -> Iterator[Any]:
    """A window of somebody who opened the printed link; fails on any error the browser reports."""
    path = os.environ.get("SPECDEBUG_CHROMIUM") or shutil.which("chromium")
    if not path:
        pytest.skip("no Chromium: bin/find-chromium says how to get one")
    from playwright.sync_api import sync_playwright

    said: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        window = browser.new_page(base_url=running.base)
        window.set_default_timeout(60_000)
        window.on("pageerror", lambda e: said.append(str(e)))
        # A refused form answers with a status that Chromium reports like a missing file.
        window.on(
            "console",
            lambda m: (
                said.append(m.text)
                if m.type == "error" and not m.text.startswith("Failed to load resource")
                else None
            ),
        )
        window.goto(running.link)
        window.click("main button")
        yield window
        browser.close()
    assert said == []


def _plan(page: Any, title: str, arguments: list[str], then: str = "queue") -> None:
    page.fill("#id_title", title)
    page.fill("#id_server_args", " ".join(arguments))
    for name, value in SMALL.items():
        page.fill(f"#id_{name}", value)
    if then:
        page.click(f"button[value={then}]")
        page.wait_for_url(re.compile(r"/r/\d+/$"))


def _watch(page: Any) -> None:
    """Wait as a person does: the page itself must come to say that the run is done."""
    page.wait_for_selector(".head .badge.done", timeout=240_000)


def test_from_a_question_to_the_pdf(running: Running, page: Any) -> None:
    # Create, in one form.
    page.goto("/new/")
    page.fill("#id_title", "Is the small draft worth it?")
    page.fill("#id_question", "Does the draft make this machine faster?")
    page.click("main button[type=submit]")
    page.wait_for_url(re.compile(r"/i/[\w-]+/$"))
    home = page.url

    # The baseline, queued and watched.
    plain, drafted = _arguments(running)
    page.click("main >> text=plan a run without speculation")
    _plan(page, "no speculation", plain)
    _watch(page)
    assert "tok/s" in page.inner_text("main")
    page.click("text=Make it the baseline")
    assert "The goal compares with R0" in page.inner_text(".notice")

    # A hypothesis with its prediction, before the run.
    page.goto(f"{home}hypothesis/")
    page.fill("#id_claim", "Sixteen draft tokens make it faster")
    page.select_option("#id_direction", "up")
    page.select_option("#id_baseline", label="R0: no speculation")
    page.select_option("#id_check_kind", "effective-equals")
    page.fill("#id_check_key", "speculative_num_draft_tokens")
    page.fill("#id_check_expected", "16")
    page.click("main button[type=submit]")

    # The form says beforehand what the release will make of it.
    page.goto(f"{home}run/")
    _plan(page, "one step, sixteen draft tokens", drafted, then="")
    page.wait_for_selector("#foreseen >> text=will not run as asked")
    assert "draft-tokens-overridden" in page.inner_text("#foreseen")
    page.select_option("#id_hypothesis", label="H1: Sixteen draft tokens make it faster")
    page.click("button[value=queue]")
    page.wait_for_url(re.compile(r"/r/1/$"))
    _watch(page)

    # The verdict stands first: the change was not applied.
    assert "Not applied" in page.inner_text(".verdicts")
    assert "draft-tokens-overridden" in page.inner_text("main")
    assert page.locator("figure.plot-box svg").count() >= 3

    # Both runs side by side.
    page.goto(home)
    page.check("input[name=run][value$='/R0']")
    page.check("input[name=run][value$='/R1']")
    page.click("text=Compare the ticked")
    page.wait_for_url("**/compare/**")
    assert "2 runs beside R0" in page.inner_text("h1")
    assert page.locator("td >> text=equal").count() == 1  # greedy outputs are the same
    with page.expect_download() as download:
        page.click("a[aria-label='Throughput as CSV']")
    assert Path(download.value.path()).read_text().startswith("run,")

    # Resolving is refused, with the list of what is left.
    page.goto(f"{home}close/")
    page.click("main button[type=submit]")
    assert "Not resolved: see what is left." in page.inner_text(".errorlist")
    assert "draft-tokens-overridden" in page.inner_text("main")

    # A note on the timeline, and taken back.
    page.goto(f"{home}event/")
    page.fill("#id_title", "Read the source")
    page.click("main button[type=submit]")
    assert page.locator("text=Read the source").count() >= 1
    page.click(".notice >> text=Undo")
    assert page.locator("h3 >> text=Read the source").count() == 0

    # Paste a log, find the bug.
    page.goto("/check/")
    page.fill("#id_text", "python -m sglang.launch_server " + " ".join(drafted))
    page.click("main button[type=submit]")
    assert "found" in page.inner_text("h1")
    assert "draft-tokens-overridden" in page.inner_text("main")

    # And the report as PDF, by the button on the investigation's page.
    page.goto(home)
    assert page.locator("main a[href$='/report/']").count() >= 1
    _pdf(page, f"{home}report.pdf")


def _arguments(running: Running) -> tuple[list[str], list[str]]:
    """Plain, and with one step and sixteen draft tokens, for the shipped models."""
    target = ["--model-path", str(variants.TARGET), "--decode-log-interval", "10"]
    draft = ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path"]
    sizes = ["--speculative-num-steps", "1", "--speculative-eagle-topk", "1"]
    more = ["--speculative-num-draft-tokens", "16"]
    return target, [*target, *draft, str(variants.DRAFT), *sizes, *more]


def _pdf(page: Any, address: str) -> None:
    """Ask until it is made: the page says meanwhile that it is being made."""
    for _ in range(60):
        answer = page.request.get(address)
        if answer.headers["content-type"].startswith("application/pdf"):
            assert answer.body()[:5] == b"%PDF-"
            return
        assert answer.status in (200, 202), answer.status
        page.wait_for_timeout(1000)
    pytest.fail("the PDF was not made within a minute")
