"""Notes in Markdown as HTML that is safe to show: no raw HTML in, only listed tags out."""

from __future__ import annotations

from functools import cache
from typing import Any

TAGS = frozenset(
    {"p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "a", "ul", "ol", "li"}
    | {"h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}
)


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    # html off keeps raw HTML as text, "js-default" would too, but without tables.
    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table")


def to_html(text: str) -> str:
    """`text` as HTML without scripts, styles, images or foreign link schemes."""
    import nh3

    html = _parser().render(text).replace("<h1>", "<h3>").replace("</h1>", "</h3>")
    html = html.replace("<h2>", "<h4>").replace("</h2>", "</h4>")
    return nh3.clean(
        html,
        tags=set(TAGS),
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
