"""Small inline drawings, so that a severity or a state never rests on colour alone."""

from __future__ import annotations

from functools import lru_cache

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

# 16 x 16, filled with the text's own colour. Same shapes in the page and in the PDF.
SHAPES = {
    "critical": "M8 0l8 8-8 8-8-8zM7 4v5h2V4zm0 6v2h2v-2z",
    "high": "M8 1l8 14H0zM7 6v4h2V6zm0 5v2h2v-2z",
    "medium": "M8 1a7 7 0 100 14A7 7 0 008 1zM7 4h2v5H7zm0 6h2v2H7z",
    "info": "M8 1a7 7 0 100 14A7 7 0 008 1zm0 1.6a5.4 5.4 0 110 10.8A5.4 5.4 0 018 2.6z"
    "M7.2 7h1.6v5H7.2zm0-2.6h1.6V6H7.2z",
    "yes": "M6 12.6L1.4 8 3 6.4l3 3 7-7L14.6 4z",
    "no": "M3.4 2L8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z",
    "undecided": "M2 7h12v2H2z",
    "hypothesis": "M8 1a5 5 0 00-2.5 9.3V12h5v-1.7A5 5 0 008 1zM5.5 13h5v1h-5zm1 1.6h3v1h-3z",
    "change": "M1 4h8V1l6 4-6 4V6H1zm14 6H7V7.6L1 11.6l6 4V13h8z",
    "run": "M3 1l11 7-11 7z",
    "verdict": "M7 1h2v2h5v1.4L15.6 9a2.6 2.6 0 01-5 0L12.2 5H9v8h3v2H4v-2h3V5H3.8l1.6 4a2.6 2.6"
    " 0 01-5 0L2 4.4V3h5z",
    "finding": "M7 1a6 6 0 104.2 10.2l3.4 3.4 1.4-1.4-3.5-3.5A6 6 0 007 1zm0 2a4 4 0 110 8 4 4 0"
    " 010-8z",
    "event": "M2 2h12v9H8l-4 4v-4H2z",
    "belief": "M8 2C4 2 1 4.4 1 7.4s3 5.2 7 5.2l3 2.4v-3c2.4-1 4-2.6 4-4.6C15 4.4 12 2 8 2z",
    "source": "M5 3l1.2 1.2L2.8 8l3.4 3.8L5 13 .5 8zm6 0l4.5 5-4.5 5-1.2-1.2L13.2 8 9.8 4.2z",
    "fix": "M14.5 3.5l-3 3-2-2 3-3A4 4 0 007 6.6L1.6 12 4 14.4 9.4 9a4 4 0 005.1-5.5z",
    "queued": "M3 1h10v2l-3.6 5L13 13v2H3v-2l3.6-5L3 3z",
    "running": "M8 1a7 7 0 107 7h-2a5 5 0 11-5-5z",
    "lost": "M8 1a7 7 0 100 14A7 7 0 008 1zm-3 6h6v2H5z",
}
NAMES = {
    **dict.fromkeys(("done", "fixed", "supported", "met", "resolved", "applied", "seen"), "yes"),
    **dict.fromkeys(("failed", "refuted", "unmet", "cancelled"), "no"),
    **dict.fromkeys(("unknown", "draft", "set-aside", "abandoned", "note"), "undecided"),
    **dict.fromkeys(("observation",), "event"),
    **dict.fromkeys(("open", "opened", "reopened"), "finding"),
}


@register.simple_tag
@lru_cache(maxsize=256)
def icon(name: str) -> SafeString:
    """The drawing for a severity, a state or a kind of step; empty for a name without one."""
    shape = SHAPES.get(NAMES.get(name, name))
    if shape is None:
        return mark_safe("")
    return format_html(
        '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">'
        '<path fill-rule="evenodd" d="{}"/></svg>',
        shape,
    )


@register.simple_tag
def badge(name: object, words: object = "") -> SafeString:
    """A severity or a state as its word with its drawing; `words`: what is said instead of it."""
    return _badge(str(name), str(words or name))


# A list of 50 rows shows hundreds of them, and there are few dozens of different ones.
@lru_cache(maxsize=1024)
def _badge(name: str, words: str) -> SafeString:
    return format_html('<span class="badge {}">{}{}</span>', name, icon(name), words)
