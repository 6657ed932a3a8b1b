"""Every chart of every page has its figures as a table, and CSV, SVG and PNG to take away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import resolve

from experiments.models import Investigation
from tests.pages.conftest import Story
from tests.pages.routes import all_pages

FORMS = ("csv", "svg", "png")
# A bar beside its own figure, in a row of a table or on a card, is that figure once more.
BESIDE_ITS_FIGURE = {"goal", "measure", "bar"}


@dataclass
class Chart:
    """A drawing on a page: what it says, and what stands in its figure or section."""

    says: str
    tables: int = 0
    files: set[str] = field(default_factory=set)


class Charts(HTMLParser):
    """The charts of a page, each with the tables and files of the nearest figure or section."""

    VOID = frozenset({"meta", "link", "input", "br", "img", "hr"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[Chart] = []
        self._open: list[tuple[str, str]] = []
        self._boxes: list[tuple[int, list[Chart], list[str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag not in self.VOID:
            self._open.append((tag, values.get("class", "")))
        if tag in ("figure", "section"):
            self._boxes.append((len(self._open), [], []))
        if self._boxes and tag == "table":
            self._boxes[-1][2].append("table")
        if self._boxes and tag == "a" and "download" in values:
            self._boxes[-1][2].append(values.get("href", ""))
        drawn = tag == "svg" and values.get("role") in ("img", "group")
        if (drawn or "data-chart" in values) and not self._beside_its_figure():
            chart = Chart(values.get("aria-label") or "explore")
            self.found.append(chart)
            if self._boxes:
                self._boxes[-1][1].append(chart)

    def _beside_its_figure(self) -> bool:
        return any(BESIDE_ITS_FIGURE & set(names.split()) for _, names in self._open)

    def handle_endtag(self, tag: str) -> None:
        if not any(tag == name for name, _ in self._open):
            return
        while self._open:
            depth = len(self._open)
            name, _ = self._open.pop()
            if self._boxes and self._boxes[-1][0] == depth:
                self._leave()
            if name == tag:
                return

    def _leave(self) -> None:
        _, charts, found = self._boxes.pop()
        for chart in charts:
            chart.tables += found.count("table")
            chart.files |= {item for item in found if item != "table"}
        if self._boxes:  # a chart may have them in the section around it, but not another chart's
            self._boxes[-1][2].extend(() if charts else found)
            self._boxes[-1][1].extend(c for c in charts if not (c.tables and c.files))


def lacks(charts: list[Chart]) -> Iterator[str]:
    """What each chart of a page is without."""
    for chart in charts:
        forms = {re.split(r"[.?]", file)[1] for file in chart.files if "." in file}
        missing = [form for form in FORMS if form not in forms]
        if not chart.tables:
            missing.insert(0, "table")
        if missing:
            yield f"{chart.says[:60]}: no {', '.join(missing)}"


FIGURE = """<main><section><figure><svg role="img" aria-label="Throughput"></svg>{}</figure>
<table></table></section></main>"""
LINKS = "".join(f'<a href="plot/tok_s.{form}?run=R1" download>x</a>' for form in FORMS)


def _bare() -> str:
    return '<figure><svg role="img" aria-label="Bare"></svg></figure>'


def _lacks(page: str) -> list[str]:
    return list(lacks(Charts(page).found))


def test_a_chart_without_its_table_or_files_is_told() -> None:
    whole = f"{LINKS}<details><table></table></details>"
    assert _lacks(FIGURE.format(whole)) == []
    assert _lacks(FIGURE.format(LINKS).replace("<table>", "<p>")) == ["Throughput: no table"]
    assert _lacks(FIGURE.format(whole.replace("s.svg", "s.pdf"))) == ["Throughput: no svg"]
    assert _lacks(FIGURE.format("")) == ["Throughput: no csv, svg, png"]
    two = FIGURE.format(whole) + "<section>" + FIGURE.format(whole) + "</section>"
    assert _lacks(two) == []
    one = (
        FIGURE.format(whole).replace("</figure>", f"</figure>{_bare()}").replace("\n<table>", "<p>")
    )
    assert _lacks(one) == ["Bare: no table, csv, svg, png"]
    beside = '<td class="bar"><svg role="img" aria-label="9 to 10 tok/s"></svg></td>'
    assert _lacks(f"<table><tr>{beside}</tr></table>") == []


def _walk(browser: Client, addresses: dict[str, str]) -> tuple[set[str], dict[str, str], int]:
    """What charts lack, the files they offer, and how many charts there are."""
    faults: set[str] = set()
    files: dict[str, str] = {}
    count = 0
    for name, address in addresses.items():
        charts = Charts(browser.get(address).content.decode()).found
        faults |= {f"{name}: {fault}" for fault in lacks(charts)}
        count += len(charts)
        for chart in charts:
            files |= {urljoin(address, file): name for file in chart.files}
    return faults, files, count


def _broken(browser: Client, files: dict[str, str]) -> dict[str, Any]:
    """Files that are not what their name says; one of each kind and form is asked for."""
    broken: dict[str, Any] = {}
    seen: set[tuple[str | None, str]] = set()
    begins = {"csv": b"", "svg": b"<svg", "png": b"\x89PNG"}
    for address in files:
        path = address.split("?")[0]
        form = path.rsplit(".", 1)[1]
        kind = (resolve(path).url_name, form)
        if kind in seen or (form == "png" and "explore" in path):  # a second for each
            continue
        seen.add(kind)
        answer = browser.get(address)
        if answer.status_code != 200 or not answer.content.startswith(begins[form]):
            broken[address] = answer.status_code
    return broken


def test_every_chart_of_every_page_has_its_table_and_files(
    browser: Client, user: User, story: Story, unsent: None
) -> None:
    faults, files, count = _walk(browser, all_pages(story, user))
    assert faults == set()
    assert count > 15
    assert _broken(browser, files) == {}


@pytest.mark.django_db
def test_every_chart_of_the_recorded_story_has_its_table_and_files(
    browser: Client, data_dir: Any
) -> None:
    call_command("load_story", verbosity=0)
    row = Investigation.objects.get()
    at = row.get_absolute_url()
    runs = [run.get_absolute_url() for run in row.runs.all()]
    pages = [at, f"{at}account/", f"{at}report/", f"{at}explore/", *runs]
    both = f"/compare/?run={row.slug}/R0&run={row.slug}/R2"
    faults, files, count = _walk(browser, {page: page for page in [*pages, both]})
    assert faults == set()
    assert count > 8
    account = browser.get(f"{at}account/").content.decode()
    for form in FORMS:  # the bars of its table, as one drawing
        assert f'href="{at}account/depths-1.{form}" download' in account
        assert browser.get(f"{at}account/depths-1.{form}").status_code == 200
    assert "predicted, tok/s" in browser.get(f"{at}account/depths-1.csv").content.decode()
    for absent in ("depths-0.csv", "depths-9.svg", "depths-1.pdf"):
        assert browser.get(f"{at}account/{absent}").status_code == 404
    assert browser.get(f"{at}report/figure/nothing.csv").status_code == 404
    assert any("/report/figure/course.csv" in file for file in files)
