"""A report as HTML and as PDF, both from templates/reports/post_mortem.html.

The PDF sees only what stands in the page itself and our one stylesheet; every other address is
refused, whatever a note or a title may contain.
"""

from __future__ import annotations

import base64
import logging
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string

from experiments.reports.build import Report

MISSING = (
    "The PDF needs Pango, which this machine lacks; as root, once: "
    "apt-get install libpango-1.0-0 libpangoft2-1.0-0"
)
STYLESHEET = "specdebug:css/report.css"
CHARTS = "data:image/svg+xml;base64,"


# It tells of every step, and warns about every CSS property that paper does not have.
for _name in ("weasyprint", "weasyprint.progress"):
    logging.getLogger(_name).addFilter(lambda entry: entry.levelno >= logging.ERROR)


class PdfUnavailable(RuntimeError):
    """This machine cannot make PDFs; the message says what to install."""


def html(report: Report, *, for_print: bool = False) -> str:
    """The report as one HTML document; `for_print` leaves out links into the site."""
    drawn = [
        (chart, CHARTS + base64.b64encode(chart.svg.encode()).decode()) for chart in report.charts
    ]
    context = {
        "report": report,
        "told": report.post_mortem,
        "charts": drawn,
        "for_print": for_print,
        "stylesheet": STYLESHEET,
        "pdf_problem": "" if for_print else pdf_problem(),
    }
    return render_to_string("reports/post_mortem.html", context)


def pdf(report: Report) -> bytes:
    """The report as a tagged PDF (PDF/UA-1); the same bytes for the same report.

    Raises PdfUnavailable where WeasyPrint's system library is missing.
    """
    document = _weasyprint().HTML(
        string=html(report, for_print=True), base_url="specdebug:", url_fetcher=_fetcher()
    )
    made: bytes = document.write_pdf(pdf_variant="pdf/ua-1")
    return made


@cache
def pdf_problem() -> str:
    """Why `pdf` cannot work here, in one line; empty where it can. Loads WeasyPrint."""
    try:
        _weasyprint()
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
    """A fetcher that knows our stylesheet and charts, and refuses the rest of the world."""
    from weasyprint.urls import URLFetcher, URLFetcherResponse

    class OwnResources(URLFetcher):  # type: ignore[misc]
        def fetch(self, url: str, headers: Any = None) -> Any:
            if url == STYLESHEET:
                css = Path(str(finders.find("css/report.css"))).read_bytes()
                return URLFetcherResponse(url, css, {"Content-Type": "text/css"})
            if url.startswith(CHARTS):
                drawn = base64.b64decode(url.removeprefix(CHARTS))
                return URLFetcherResponse(url, drawn, {"Content-Type": "image/svg+xml"})
            raise ValueError(f"refused: {url[:200]}")

    return OwnResources(allowed_protocols=())
