"""How ranges, expectations and depths look on a page. Formatting only."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from specdebug.eagle.account import Range

register = template.Library()

EXPECTED = {
    "training": "training accuracy",
    "positions": "positions at another depth",
    "reference": "reference curve",
}


def _digits(value: float) -> int:
    return 0 if abs(value) >= 200 else 1 if abs(value) >= 5 else 2


@register.filter
def ranged(found: Range | None, unit: str = "") -> SafeString | str:
    """A figure with its range and unit, a dash where it is not known."""
    if found is None:
        return "–"
    digits = _digits(found.value)
    low, high = (f"{v:.{digits}f}".replace("-", "−") for v in (found.low, found.high))
    return format_html(
        '<span class="figure">{}{} <span class="quiet small">{} to {}</span></span>',
        f"{found.value:.{digits}f}".replace("-", "−"),
        f" {unit}" if unit else "",
        low,
        high,
    )


@register.filter
def ranged_signed(found: Range) -> SafeString:
    """A change with its sign; a part without a width has no range."""
    value, low, high = (f"{v:+.1f}".replace("-", "−") for v in (found.value, found.low, found.high))
    if low == high:
        return format_html('<span class="figure">{}</span>', value)
    return format_html(
        '<span class="figure">{} <span class="quiet small">{} to {}</span></span>',
        value,
        low,
        high,
    )


@register.filter
def width(bar: Any) -> float:
    """Length of a range on the page's drawing."""
    return float(bar.high - bar.low)


@register.filter
def expected_from(source: str) -> str:
    """Where an expectation comes from, in words."""
    return EXPECTED.get(source, source)
