"""Takes a picture of every page at 1440 and 390 px, light and dark, to be looked at.

    .venv/bin/python benchmarks/screens.py --out DIR [--data DIR] [--only compare,home]

Without --data a fresh folder with the recorded example is made; with --fill 10000 also that many
runs. Uses the Chromium of $SPECDEBUG_CHROMIUM or the system's own. Prints what the browser said
went wrong: scripts refused by the policy, failed requests, pages wider than the window.
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
ADDRESSES = """
from django.urls import reverse
from experiments.models import Evidence, Finding, Hypothesis, Investigation, Run
out = {"home": "/", "new": reverse("investigation-new")}
for name in ("compare", "check", "findings", "search", "settings", "people", "workers", "reports"):
    try:
        out[name] = reverse(name)
    except Exception:
        pass
for n, row in enumerate(Investigation.objects.exclude(source="").order_by("pk")[:3]):
    slug = row.slug
    out[f"i{n}"] = reverse("investigation", args=[slug])
    for run in Run.objects.filter(investigation=row):
        out[f"i{n}-r{run.number}"] = reverse("run", args=[slug, run.number])
    names = [f"{slug}/R{r.number}" for r in Run.objects.filter(investigation=row)][:8]
    out[f"i{n}-compare"] = reverse("compare") + "?" + "&".join(f"run={x}" for x in names)
    h = Hypothesis.objects.filter(investigation=row).first()
    if h: out[f"i{n}-hypothesis"] = h.get_absolute_url()
    f = Finding.objects.filter(investigation=row).first()
    if f: out[f"i{n}-finding"] = reverse("finding", args=[slug, f.pk])
    e = Evidence.objects.filter(investigation=row, kind="server-log").first()
    if e: out[f"i{n}-log"] = reverse("evidence", args=[slug, e.pk])
    for form in ("event-new", "hypothesis-new", "run-new", "run-record", "file-new",
                 "investigation-edit", "investigation-close"):
        try:
            out[f"i{n}-{form}"] = reverse(form, args=[slug])
        except Exception:
            pass
print("ADDRESSES", __import__("json").dumps(out))
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
    parser.add_argument("--only", default="", help="parts of page names, comma separated")
    parser.add_argument("--shapes", default=",".join(f"{w}-{t}" for w in WIDTHS for t in THEMES))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        data = options.data or Path(folder) / "data"
        manage(data, "migrate", "-v0")
        if options.data is None:
            manage(data, "load_story")
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
