"""A report's document as HTML and as PDF, both from templates/reports/post_mortem.html.

The PDF sees only what stands in the page itself and our own stylesheets; every other address is
refused, whatever a note or a title may contain.
"""

from __future__ import annotations

import base64
import ctypes
import gc
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from experiments.reports import course, diagrams, fonts, paper
from experiments.reports.diagrams import Diagram
from experiments.reports.document import Document
from experiments.reports.sections import SECTIONS

MISSING = (
    "The PDF needs Pango, which this machine lacks; as root, once: "
    "apt-get install libpango-1.0-0 libpangoft2-1.0-0"
)
CHARTS = "data:image/svg+xml;base64,"
Mode = Literal["site", "shared", "print"]
OnStep = Callable[[str, float], None]

# It tells of every step, and warns about every CSS property that paper does not have.
_progress = logging.getLogger("weasyprint.progress")
logging.getLogger("weasyprint").addFilter(lambda entry: entry.levelno >= logging.ERROR)
_progress.propagate = False


class PdfUnavailable(RuntimeError):
    """This machine cannot make PDFs; the message says what to install."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link in the line above a report."""

    url: str
    words: str


@dataclass(frozen=True, slots=True)
class _Drawing:
    title: str
    says: str
    inline: str
    address: str
    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]


def _drawing(found: Diagram) -> _Drawing:
    return _Drawing(
        found.title,
        found.says,
        mark_safe(found.svg),  # noqa: S308 (every text in it is escaped where it is drawn)
        CHARTS + base64.b64encode(found.svg.encode("utf-8", "replace")).decode(),
        found.name,
        found.head,
        found.rows,
    )


def figure(document: Document, name: str) -> Diagram | None:
    """One drawing of the document by its name; None where its sections show none of that name."""
    drawn = _diagrams(document.told, document.body["sections"])
    return next((one for some in drawn.values() for one in some if one.name == name), None)


def _drawings(told: Mapping[str, Any], keys: Sequence[str]) -> dict[str, list[_Drawing]]:
    drawn = _diagrams(told, keys)
    return {name: [_drawing(one) for one in found] for name, found in drawn.items()}


def _diagrams(told: Mapping[str, Any], keys: Sequence[str]) -> dict[str, list[Diagram]]:
    """Only what the chosen sections show."""
    wanted: dict[str, list[Diagram]] = {}
    if {"summary", "runs"} & set(keys):
        wanted["throughput"] = diagrams.throughput(told)
    if "runs" in keys:
        wanted["reaches"] = diagrams.reaches(told)
    if "course" in keys:
        drawn = course.course(told)
        wanted["course"] = [drawn] if drawn else []
    if "gap" in keys:
        wanted["waterfalls"] = diagrams.waterfalls(told)
    return wanted


def html(
    document: Document,
    *,
    mode: Mode = "site",
    links: Sequence[Link] = (),
    page: str = "A4",
    unprintable: str = "",
) -> str:
    """The document as one HTML page. links: into the site; page: the paper, for mode "print"."""
    body, told = document.body, document.told
    keys = [key for key in body["sections"] if key in SECTIONS]
    sections = [
        {
            "key": key,
            "name": SECTIONS[key],
            "template": f"reports/_{key}.html",
            "remarks": [r for r in body["remarks"] if r["section"] == key],
        }
        for key in keys
    ]
    context = {
        "body": body,
        "told": told,
        "digest": document.digest,
        "sections": sections,
        "has_summary": "summary" in keys,
        "unreplicated": document.unreplicated,
        "diagrams": _drawings(told, keys),
        "gaps_left": len(diagrams.chosen_gaps(told)) < len(told["gaps"]),
        "mode": mode,
        "links": links,
        "stylesheets": paper.sheets(page),
        "pdf_problem": pdf_problem() if mode == "site" else "",
        "unprintable": unprintable,
    }
    return render_to_string("reports/post_mortem.html", context)


def pdf(document: Document, *, page: str = "A4", on_step: OnStep | None = None) -> bytes:
    """The document as a tagged PDF (PDF/UA-1); the same bytes for the same document and paper.

    on_step: called with a few words and the fraction done, often. Raises PdfUnavailable where
    WeasyPrint's system library is missing.
    """
    weasyprint = _weasyprint()
    tell = on_step or (lambda words, fraction: None)
    with _few_collections():
        tell("drawing the charts", 0.02)
        text = html(document, mode="print", page=page)
        absent = fonts.missing(text)
        if absent:
            text = html(document, mode="print", page=page, unprintable=fonts.in_words(absent))
        tell("laying out", 0.08)
        with _told_of_pages(tell):
            made: bytes = weasyprint.HTML(
                string=text, base_url="specdebug:", url_fetcher=_fetcher()
            ).write_pdf(finisher=_scoped, pdf_variant="pdf/ua-1")
    return made


class _Pages(logging.Handler):
    """Turns the layout's own progress into ours: it is known only at the end how many pages there
    are, so the fraction nears its end without reaching it."""

    def __init__(self, tell: OnStep) -> None:
        super().__init__(logging.INFO)
        self.tell = tell
        self.thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        # Another thread's PDF has a handler of its own.
        if threading.get_ident() != self.thread:
            return
        if found := re.search(r"Page (\d+)", record.getMessage()):
            number = int(found[1])
            self.tell(f"laying out page {number}", 0.1 + 0.7 * number / (number + 12))
        elif "PDF" in record.getMessage():
            self.tell("writing the file", 0.9)


def _scoped(_: Any, pdf: Any) -> None:
    """Say of each table head whether it is a column's or a row's; WeasyPrint links cells to heads
    and leaves that out. A row of heads alone is the table's head."""
    for row in pdf.objects:
        if isinstance(row, dict) and row.get("S") == "/TR":
            cells = [pdf.objects[int(kid.split()[0])] for kid in row["K"]]
            scope = "/Column" if all(cell["S"] == "/TH" for cell in cells) else "/Row"
            for cell in cells:
                if cell["S"] == "/TH":
                    cell["A"]["Scope"] = scope


@contextmanager
def _few_collections() -> Iterator[None]:
    """Let the collector look seldom: a layout makes millions of objects that live to its end, and
    at Python's own thresholds a sixth of the time goes into looking through them again."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _told_of_pages(tell: OnStep) -> Iterator[None]:
    handler = _Pages(tell)
    _progress.addHandler(handler)
    _progress.setLevel(logging.INFO)
    try:
        yield
    finally:
        _progress.removeHandler(handler)


@cache
def pdf_problem() -> str:
    """Why `pdf` cannot work here, in one line; empty where it can.

    Asks for the system library first: loading WeasyPrint takes a second and much memory, which only
    the worker should spend.
    """
    try:
        ctypes.CDLL("libpango-1.0.so.0")
        ctypes.CDLL("libpangoft2-1.0.so.0")
    except OSError:
        try:
            _weasyprint()  # knows the library's other names
        except PdfUnavailable as missing:
            return str(missing)
    return ""


def _weasyprint() -> Any:
    try:
        import weasyprint
    except OSError as missing:
        raise PdfUnavailable(MISSING) from missing
    return weasyprint


def _fetcher() -> Any:
    """A fetcher that knows our stylesheets and charts, and refuses the rest of the world."""
    from weasyprint.urls import URLFetcher, URLFetcherResponse

    css = {"Content-Type": "text/css"}

    class OwnResources(URLFetcher):  # type: ignore[misc]
        def fetch(self, url: str, headers: Any = None) -> Any:
            found = paper.sheet(url)
            if found is not None:
                return URLFetcherResponse(url, found.encode(), css)
            if url.startswith(CHARTS):
                drawn = base64.b64decode(url.removeprefix(CHARTS))
                return URLFetcherResponse(url, drawn, {"Content-Type": "image/svg+xml"})
            raise ValueError(f"refused: {url[:200]}")

    return OwnResources(allowed_protocols=())
