"""How figures, times, arguments and notes look on a page. Formatting only; it computes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeGuard

from django import template
from django.contrib.messages.storage.base import Message
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timezone import now

from experiments.models import Prediction
from experiments.reports import markdown, plots
from experiments.reports.terms import predicted as prediction_in_words
from experiments.reports.terms import term

register = template.Library()

DASH = "–"
# A value longer than this is cut in tables; the whole of it stands in the title.
LONGEST_VALUE = 160
# Seconds of each unit of time, the longest first.
SPANS = (
    (365.25 * 86400, "years"),
    (365.25 / 12 * 86400, "months"),
    (7 * 86400, "weeks"),
    (86400, "days"),
    (3600, "hours"),
    (60, "minutes"),
)


def _known(value: float | None) -> TypeGuard[float]:
    """Not None, and not the empty text that a template makes of an attribute of None."""
    return isinstance(value, int | float)


@register.filter
def number(value: float | None, digits: int = 1) -> str:
    """A figure with a fixed number of digits, a dash where it is not known."""
    return f"{value:.{digits}f}" if _known(value) else DASH


@register.filter
def toward_goal(ratio: float | None, met: bool) -> str:
    """Best over goal; near misses get the digits that keep them from reading as a goal met."""
    short = number(ratio, 2)
    return number(ratio, 4) if not met and short == "1.00" else short


@register.filter
def figure(value: float | None, metric: str) -> SafeString:
    """A figure of a metric with its unit."""
    if not _known(value):
        return format_html('<span class="quiet" title="not known">{}</span>', DASH)
    known = term(metric)
    digits = f"{value:.{known.digits}f}"
    if not known.unit:
        return format_html('<span class="figure">{}</span>', digits)
    return format_html(
        '<span class="figure">{} <span class="unit">{}</span></span>', digits, known.unit
    )


@register.filter
def signed(value: float | None, digits: int = 1) -> str:
    """A figure with its sign; a true minus, so that columns align."""
    return f"{value:+.{digits}f}".replace("-", "−") if _known(value) else DASH


@register.filter
def percent(value: float | None) -> str:
    """A fraction as per cent: 0.5 is "50 %"."""
    return f"{100 * value:.0f} %" if _known(value) else DASH


@register.filter
def change(ratio: float | None) -> str:
    """A ratio as a change in per cent: 0.631 is "−36.9 %"."""
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "−") if _known(ratio) else DASH


@register.simple_tag
def defined(metric: str) -> SafeString:
    """A metric's name with its definition on hover."""
    known = term(metric)
    return format_html('<abbr title="{}">{}</abbr>', known.definition, known.name.lower())


@register.filter
def unit(metric: str) -> str:
    """A metric's unit."""
    return term(metric).unit


@register.filter
def as_value(value: Any) -> SafeString:
    """An argument's value as code, the way it would be written in JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > LONGEST_VALUE:
        return format_html('<code title="{}">{}…</code>', text, text[:LONGEST_VALUE])
    return format_html("<code>{}</code>", text)


@register.filter
def ago(value: datetime | None) -> SafeString:
    """How long ago, with the full time on hover; a dash where the time is not known."""
    if value is None:
        return format_html('<span class="quiet" title="time not known">{}</span>', DASH)
    return format_html(
        '<time datetime="{}" title="{}">{} ago</time>',
        value.isoformat(),
        value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        _since(value),
    )


def _since(value: datetime) -> str:
    """In the largest unit of which there are two."""
    seconds = max(0.0, (now() - value).total_seconds())
    if seconds < 120:
        return f"{seconds:.0f} s"
    size, unit = next((s, u) for s, u in SPANS if seconds >= 2 * s)
    return f"{seconds // size:.0f} {unit}"


@register.filter
def at(value: datetime | None) -> SafeString:
    """A time of day with its date on hover; a dash where it is not known."""
    if value is None:
        return format_html('<span class="quiet" title="time not known">{}</span>', DASH)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        value.isoformat(),
        value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        value.astimezone(UTC).strftime("%d %b %H:%M"),
    )


@register.filter
def between(start: datetime | None, end: datetime | None) -> str:
    """The time between two moments in seconds, minutes or hours."""
    if start is None or end is None:
        return DASH
    seconds = (end - start).total_seconds()
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@register.filter
def note(text: str) -> SafeString:
    """Markdown as safe HTML."""
    return mark_safe(markdown.to_html(text))  # noqa: S308 (cleaned by nh3 in markdown.py)


@register.filter
def plain(value: float) -> str:
    """A figure as SVG and HTML attributes want it."""
    return f"{value:.6g}"


@register.filter
def larger(value: float, other: float) -> float:
    """The larger of two figures: how far an axis must reach."""
    return max(value, other)


@register.filter
def axis(value: float) -> str:
    """The end of an axis that shows `value` with some room."""
    return plain(value * 1.02)


@register.filter
def words(text: str) -> list[str]:
    """A list written out in a template."""
    return text.split()


@register.filter
def of(mapping: Mapping[str, Any], key: str) -> Any:
    """One entry of a mapping, None where there is none."""
    return mapping.get(key)


@register.filter
def beside(cells: Sequence[Any], rows: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each cell of a line with the row that it belongs to."""
    return list(zip(cells, rows, strict=True))


@register.filter
def predicted(prediction: Prediction | None) -> str:
    """A prediction in words, empty where there is none."""
    return prediction_in_words(prediction)


@register.filter
def three(values: Sequence[Any]) -> str:
    """Draft steps, top-k and draft tokens as "15, 1, 16"; a dash where none is known."""
    if all(value is None for value in values):
        return DASH
    return ", ".join("?" if value is None else str(value) for value in values)


@register.filter
def hue(number: int) -> int:
    """The colour of a run by its number, the same in every list, chart and comparison."""
    return plots.hue(number)


@register.filter
def undo(message: Message) -> str:
    """The address that takes back what a message says was done, "" where nothing does."""
    tags = message.extra_tags or ""
    return tags.removeprefix("undo:") if tags.startswith("undo:") else ""
