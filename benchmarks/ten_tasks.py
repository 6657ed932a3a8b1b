"""Ten things a new user does, done in a real Chromium by what the pages say; counts the clicks.

    .venv/bin/python benchmarks/ten_tasks.py [--json FILE] [--screens DIR]

Starts a specdebug of its own on a fresh folder. Every step is found by the words on the page, never
by an address: where a word is missing, the task fails and says which one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
READY = re.compile(r"Ready after .* (http://\S+)")


class Person:
    """Somebody at the browser: what they click and fill in is counted."""

    def __init__(self, page: Any) -> None:
        self.page, self.clicks, self.fields = page, 0, 0

    def click(self, words: str, role: str = "link", within: str = "main") -> None:
        found = self.page.locator(within).get_by_role(role, name=words).first
        found.click()
        self.page.wait_for_load_state()
        self.clicks += 1

    def press(self, words: str) -> None:
        self.click(words, "button")

    def fill(self, label: str, text: str) -> None:
        self.page.locator("main").get_by_label(label).first.fill(text)
        self.fields += 1

    def choose(self, label: str, option: str) -> None:
        box = self.page.locator("main").get_by_label(label).first
        value = box.locator("option", has_text=option).first.get_attribute("value")
        box.select_option(value)
        self.fields += 1

    def sees(self, words: str, within: str = "main", seconds: float = 30) -> None:
        self.page.locator(within).get_by_text(words).first.wait_for(timeout=1000 * seconds)


def sign_in(me: Person, link: str) -> None:
    me.page.goto(link)
    me.press("Log in")
    me.sees("Investigations")


def create(me: Person, _: str) -> None:
    me.click("Open an investigation")
    me.fill("Title", "Is the draft worth it?")
    me.fill("Question", "Does the draft make this machine faster?")
    me.press("Save")
    me.sees("Nothing has happened yet")


def baseline_by_hand(me: Person, _: str) -> None:
    me.click("Record a run")
    me.fill("Title", "no speculation, by hand")
    me.fill("Throughput, tok/s", "90.1 89.8 90.4")
    me.press("Save")
    me.press("Make it the baseline")
    me.sees("The goal compares with R0")


def hypothesis(me: Person, _: str) -> None:
    me.click("Is the draft worth it?", within="body")
    me.click("State a hypothesis")
    me.fill("Claim", "Sixteen draft tokens make it faster")
    me.choose("compared with", "R0")
    me.press("Save")
    me.sees("Sixteen draft tokens make it faster")


def queue_a_run(me: Person, _: str) -> None:
    from specdebug.reference import variants

    me.click("Is the draft worth it?", within="body")
    me.click("Plan a run")
    me.fill("Title", "one step, sixteen draft tokens")
    arguments = [
        *("--model-path", str(variants.TARGET), "--decode-log-interval", "10"),
        *("--speculative-algorithm", "EAGLE3"),
        *("--speculative-draft-model-path", str(variants.DRAFT)),
        *("--speculative-num-steps", "1", "--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", "16"),
    ]
    me.fill("Server arguments", shlex.join(arguments))
    me.sees("draft-tokens-overridden", "#foreseen")
    me.choose("Hypothesis", "H1")
    me.press("Queue the run")
    me.page.locator(".head .badge.done").wait_for(timeout=240_000)


def paste_a_log(me: Person, _: str) -> None:
    me.click("Check", within="header")
    me.page.locator("#id_text").fill(
        "python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path d --speculative-num-steps 1 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 16"
    )
    me.fields += 1
    me.press("Check")
    me.sees("draft-tokens-overridden")


def compare(me: Person, _: str) -> None:
    me.click("Investigations", within="header")
    me.click("Is the draft worth it?")
    for label in ("R0", "R1"):
        me.page.get_by_role("checkbox", name=re.compile(label)).first.check()
        me.clicks += 1
    me.press("Compare the ticked")
    me.sees("2 runs beside R0")


def why_slow(me: Person, _: str) -> None:
    me.click("R1")
    me.sees("draft-tokens-overridden")
    me.sees("speculative_num_draft_tokens is 2, not 16 as asked")


def resolve_refused(me: Person, _: str) -> None:
    me.click("Is the draft worth it?", within="body")
    me.click("Close")
    me.press("Close it")
    me.sees("Not resolved: see what is left.")


def export(me: Person, _: str) -> None:
    me.click("Is the draft worth it?", within="body")
    address = me.page.locator("main").get_by_role("link", name="PDF").first.get_attribute("href")
    me.clicks += 1
    for _again in range(60):
        answer = me.page.request.get(address)
        if answer.headers["content-type"].startswith("application/pdf"):
            assert answer.body()[:5] == b"%PDF-"
            return
        time.sleep(1)
    raise AssertionError("the PDF was not made within a minute")


TASKS: tuple[tuple[str, Callable[[Person, str], None]], ...] = (
    ("sign in by the printed link", sign_in),
    ("open an investigation", create),
    ("enter a baseline by hand and make it the goal's", baseline_by_hand),
    ("state a hypothesis with its prediction", hypothesis),
    ("queue a run, warned by the preflight, and watch it end", queue_a_run),
    ("paste a command and find the bug", paste_a_log),
    ("compare two runs", compare),
    ("see why a run is slow", why_slow),
    ("be refused to resolve, with what is left", resolve_refused),
    ("export the PDF", export),
)


@contextmanager
def started(data: Path) -> Iterator[str]:
    """A whole specdebug on a free port; gives the login link that it prints."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "specdebug.up", "--data", str(data), "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--no-replay"],
        cwd=ROOT,
        env={**os.environ, "SPECDEBUG_DATA": str(data)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := READY.search(line):
                yield found.group(1)
                return
        raise AssertionError("it ended before it was ready")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def attempt(page: Any, link: str, screens: Path | None) -> list[dict[str, Any]]:
    """One row a task; what went wrong stands in `problem`, and the next one is tried."""
    rows = []
    for number, (name, task) in enumerate(TASKS, start=1):
        me, began = Person(page), time.monotonic()
        problem = ""
        try:
            task(me, link)
        except Exception as no:  # whatever a browser can say
            problem = str(no).split("\n\n")[0].replace("\n", " ")[:300]
        if screens:
            page.screenshot(path=str(screens / f"task-{number}.png"))
        rows.append(
            {
                "task": name,
                "clicks": me.clicks,
                "fields": me.fields,
                "seconds": round(time.monotonic() - began, 1),
                "problem": problem,
            }
        )
        print(
            f"{number:2} {name:58}{me.clicks:3} clicks {me.fields:3} fields  {problem}", flush=True
        )
    return rows


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--screens", type=Path)
    options = parser.parse_args()
    chromium = os.environ.get("SPECDEBUG_CHROMIUM") or shutil.which("chromium")
    if options.screens:
        options.screens.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        started(Path(folder) / "data") as link,
        sync_playwright() as play,
    ):
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(base_url=link.split("/login")[0])
        page.set_default_timeout(20_000)
        rows = attempt(page, link, options.screens)
        browser.close()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    sys.exit(1 if any(row["problem"] for row in rows) else 0)


if __name__ == "__main__":
    main()
