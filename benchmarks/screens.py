"""Takes a picture of every page at 1440 and 390 px, light and dark, to be looked at.

    .venv/bin/python benchmarks/screens.py --out DIR [--data DIR] [--only compare,home]

Without --data a fresh folder with the recorded example is made; with --fill 10000 also that many
runs, with --long an investigation of hostile long names. Uses the Chromium of $SPECDEBUG_CHROMIUM
or the system's own. Prints what the browser said went wrong: scripts refused by the policy, failed
requests, pages wider than the window.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = {"wide": 1440, "narrow": 390}
THEMES = ("light", "dark")
# Every page of the address book for one investigation, found by asking for it: a new page is
# pictured without being named here.
ADDRESSES = """
import json
from django.contrib.auth.models import User
from django.test import Client
from django.urls import NoReverseMatch, reverse
from experiments import models as m
from experiments.views.urls import urlpatterns
user, _ = User.objects.get_or_create(username="looker", defaults={"is_superuser": True})
client = Client(headers={"host": "localhost"}, raise_request_exception=False)
client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
out, seen = {}, set()
def look(name, address):
    if address in seen: return
    seen.add(address)
    answer = client.get(address)
    kind = answer.headers.get("Content-Type", "")
    if answer.status_code == 200 and "html" in kind and b"<html" in answer.content:
        out[name] = address
def first(rows): return rows.values_list("pk", flat=True).first() or 0
rows = list(m.Investigation.objects.exclude(source="").order_by("pk")[:1])
rows += list(m.Investigation.objects.filter(source="").order_by("pk")[:1])
for place, row in enumerate(rows):
    runs = m.Run.objects.filter(investigation=row)
    measured = runs.filter(state="done").order_by("-number").first()
    pks = {
        "event-edit": first(m.Event.objects.filter(investigation=row)),
        "finding": first(m.Finding.objects.filter(investigation=row)),
        "evidence": first(m.Evidence.objects.filter(investigation=row)),
        "run-bind": first(runs), "control": first(m.WatchedSeries.objects),
    }
    for pattern in urlpatterns:
        if "." in str(pattern.pattern): continue  # a file
        names = set(pattern.pattern.regex.groupindex)
        number = 1 if pattern.name[:3] in ("hyp", "pre", "app", "ove", "swe", "rep") else (
            measured.number if measured else 0)
        values = {"slug": row.slug, "number": number, "run": 1, "since": 1,
                  "pk": pks.get(pattern.name, 0)}
        if pattern.name in ("sweep-new", "turns-new") and measured:
            values["number"] = measured.number
        if not names <= set(values): continue
        try: address = reverse(pattern.name, kwargs={n: values[n] for n in names})
        except NoReverseMatch: continue
        look(f"i{place}-{pattern.name}" if names else pattern.name, address)
    for run in runs[:8]: look(f"i{place}-r{run.number}", run.get_absolute_url())
    named = [f"{row.slug}/R{run.number}" for run in runs[:8]]
    look(f"i{place}-compare", reverse("compare") + "?" + "&".join(f"run={x}" for x in named))
look("search-all", reverse("search") + "?q=draft")
look("search-runs", reverse("search") + "?kind=run&q=")
look("nothing", reverse("search") + "?q=nothing-like-this")
user.delete()
print("ADDRESSES", json.dumps(out))
"""
LONG = """
from experiments import lifecycle
from experiments.lifecycle.runs import RecordedRepeat
word = "a-very-long-name-without-any-space-that-nobody-would-want-" * 3
row = lifecycle.create_investigation(title=word[:180], question=word * 3, context=word * 3)
for n in range(3):
    run = lifecycle.record_run(investigation=row, title=word[:180], note=word * 2, host=word[:150],
        repeats=[RecordedRepeat(90.0 + n, 1.5)], engine_release="0.5.9",
        server_args=["--model-path", "/" + word * 2, "--speculative-num-steps", str(n + 1)])
lifecycle.edit_investigation(row, baseline=run)
claim = lifecycle.add_hypothesis(investigation=row, claim=word * 2, mechanism=word * 2)
lifecycle.register_prediction(hypothesis=claim, baseline=run)
lifecycle.add_event(investigation=row, title=word[:180], kind="source", text=word * 4)
"""


def manage(data: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "SPECDEBUG_DATA": str(data)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def addresses(data: Path) -> dict[str, str]:
    import json

    said = manage(data, "shell", "-v0", "-c", ADDRESSES)
    found: dict[str, str] = json.loads(said.split("ADDRESSES", 1)[1])
    return found


@contextmanager
def serving(data: Path) -> Iterator[str]:
    """The pages on a free port; gives their address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "gunicorn",
            "specdebug.wsgi",
            "-b",
            base[7:],
            "--threads",
            "4",
            "--log-level",
            "warning",
        ],
        cwd=ROOT,
        env={**os.environ, "SPECDEBUG_DATA": str(data), "SPECDEBUG_LOG_LEVEL": "ERROR"},
        stdout=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{base}/healthz", timeout=1).read()  # noqa: S310 (http, ours)
                break
            except OSError:
                assert process.poll() is None, "the server ended"
                time.sleep(0.1)
        yield base
    finally:
        process.terminate()
        process.wait(20)


def take(base: str, data: Path, pages: dict[str, str], out: Path, shapes: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("SPECDEBUG_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        first = browser.new_context()
        page = first.new_page()
        page.goto(manage(data, "login_link", "--base", base).strip())
        page.click("main button")
        cookies = first.storage_state()
        for shape in shapes:
            width, theme = shape.split("-")
            context = browser.new_context(
                viewport={"width": WIDTHS[width], "height": 900},
                color_scheme=theme,  # type: ignore[arg-type]
                storage_state=cookies,
            )
            page = context.new_page()
            said: list[str] = []
            page.on("console", lambda m, said=said: said.append(m.text) if m.type == "error" else 0)
            page.on("pageerror", lambda e, said=said: said.append(str(e)))
            for name, address in pages.items():
                said.clear()
                page.goto(base + address)
                page.wait_for_timeout(900 if page.query_selector("figure[data-chart]") else 60)
                page.screenshot(path=str(out / f"{name}.{shape}.png"), full_page=True)
                over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                if over > 0:
                    said.append(f"wider than the window by {over} px")
                for words in said:
                    print(f"{name} {shape}: {words}")
            context.close()
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fill", type=int, default=0)
    parser.add_argument("--long", action="store_true", help="with hostile long names")
    parser.add_argument("--only", default="", help="parts of page names, comma separated")
    parser.add_argument("--shapes", default=",".join(f"{w}-{t}" for w in WIDTHS for t in THEMES))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        data = options.data or Path(folder) / "data"
        manage(data, "migrate", "-v0")
        if options.data is None:
            manage(data, "load_story")
        if options.long:
            manage(data, "shell", "-v0", "-c", LONG)
        if options.fill:
            from fill import fill_folder

            fill_folder(data, options.fill)
        wanted = [part for part in options.only.split(",") if part]
        pages = {
            name: address
            for name, address in addresses(data).items()
            if not wanted or any(part in name for part in wanted)
        }
        with serving(data) as base:
            take(base, data, pages, options.out, options.shapes.split(","))
        print(f"{len(pages)} pages in {options.out}")


if __name__ == "__main__":
    main()
