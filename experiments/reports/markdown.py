"""Notes in Markdown as HTML that is safe to show: no raw HTML in, only listed tags out."""

from __future__ import annotations

from functools import cache
from typing import Any

TAGS = frozenset(
    {"p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "a", "ul", "ol", "li"}
    | {"h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}
)


_PLAIN = frozenset({"paragraph_open", "paragraph_close", "inline", "text", "softbreak"})


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


def is_formatted(text: str) -> bool:
    """Whether the HTML of `text` holds more than its paragraphs."""
    return any(
        token.type not in _PLAIN for block in _parser().parse(text) for token in _flat(block)
    )


def _flat(block: Any) -> list[Any]:
    return [block, *(block.children or [])]
