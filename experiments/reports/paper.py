"""The stylesheets of a report on paper: the page's own, and what only paper has."""

from __future__ import annotations

from functools import cache

from experiments.reports import tokens
from experiments.reports.svg import colours

SHEET = "specdebug:css/report.css"
PAPER = {"A4": "A4", "Letter": "letter"}
PAGE = "specdebug:page/"
# No emoji face here: it has digits of its own, and Pango takes them from any face that is named.
# What no face of these has comes from the machine's other fonts, emoji too.
FACES = (
    '"Liberation Sans", "DejaVu Sans", "Noto Sans", "Noto Sans CJK SC", "Droid Sans Fallback", '
    "sans-serif"
)


def sheets(page: str) -> list[str]:
    """Addresses of a report's stylesheets on this paper, a key of PAPER."""
    return [SHEET, f"{PAGE}{PAPER[page]}.css"]


def sheet(url: str) -> str | None:
    """The stylesheet of an address that `sheets` gives, None for any other address."""
    size = url.removeprefix(PAGE).removesuffix(".css")
    if url == f"{PAGE}{size}.css" and size in PAPER.values():
        return page_rules(size)
    return _resolved() if url == SHEET else None


@cache
def _resolved() -> str:
    """report.css with every token's value in its place: WeasyPrint would look each up again for
    each element, a twentieth of the time of a long report."""
    faces = {"face": FACES, "face-mono": f'"Liberation Mono", "DejaVu Sans Mono", {FACES}'}
    return tokens.filled("report.css", tokens.on_paper() | faces)


def page_rules(size: str) -> str:
    """What only paper has: its size, the running title, the page numbers, and in which face."""
    small = f"font: 8pt {FACES}; color: {colours()['ink-soft']}"
    return (
        f"@page {{ size: {size}; margin: 19mm 17mm 18mm;"
        f" @top-left {{ content: string(title); {small}; width: 80% }}"
        f" @bottom-left {{ content: string(stamp); {small}; width: 70% }}"
        f' @bottom-right {{ content: "page " counter(page) " of " counter(pages); {small} }} }}\n'
        '@page :first { @top-left { content: "" } }\n'
    )
