"""Drawings for reports as standing SVG: one text for the PDF and, inline, for the page.

Marks carry a class, which the page's stylesheet colours for light and dark, and the same colour as
a plain attribute, which is all that the PDF sees. It places no figures: see `diagrams`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from django.utils.html import escape

from experiments.reports import tokens

FACE = "Liberation Sans, DejaVu Sans, sans-serif"
# Mean width of a character in parts of the size, of the faces above; good for cutting labels.
PER_CHARACTER = 0.53
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


@cache
def colours() -> dict[str, str]:
    """The light colours by the names of their tokens."""
    return {name: value for name, value in tokens.light().items() if _COLOUR.fullmatch(value)}


def cut(text: str, width: float, size: float) -> str:
    """`text` shortened to about `width` pixels at this size."""
    most = max(4, int(width / (size * PER_CHARACTER)))
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


@dataclass
class Svg:
    """Marks in the order they are drawn, in pixels; a tint is a name in tokens.css."""

    width: float
    height: float
    _marks: list[str] = field(default_factory=list)

    def rect(
        self, x: float, y: float, width: float, height: float, tint: str, opacity: float = 1.0
    ) -> None:
        faded = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
        self._marks.append(
            f'<rect class="f-{tint}" x="{_number(x)}" y="{_number(y)}" '
            f'width="{_number(max(width, 0.0))}" height="{_number(height)}" '
            f'fill="{colours()[tint]}"{faded}/>'
        )

    def line(
        self,
        points: list[tuple[float, float]],
        tint: str,
        width: float = 1.0,
        dash: str = "",
    ) -> None:
        path = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self._marks.append(
            f'<polyline class="s-{tint}" points="{path}" fill="none" '
            f'stroke="{colours()[tint]}" stroke-width="{width:g}"{dashed}/>'
        )

    def dot(self, x: float, y: float, r: float, tint: str, hollow: bool = False) -> None:
        look = (
            f'class="s-{tint} f-sheet" fill="{colours()["sheet"]}" stroke="{colours()[tint]}" '
            'stroke-width="1.5"'
            if hollow
            else f'class="f-{tint}" fill="{colours()[tint]}"'
        )
        self._marks.append(f'<circle {look} cx="{_number(x)}" cy="{_number(y)}" r="{r:g}"/>')

    def shape(self, points: list[tuple[float, float]], tint: str) -> None:
        path = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self._marks.append(f'<polygon class="f-{tint}" points="{path}" fill="{colours()[tint]}"/>')

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 10,
        tint: str = "ink",
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        weight = ' font-weight="bold"' if bold else ""
        self._marks.append(
            f'<text class="f-{tint}" x="{_number(x)}" y="{_number(y)}" font-size="{size:g}" '
            f'text-anchor="{anchor}" fill="{colours()[tint]}"{weight}>{escape(words)}</text>'
        )

    def drawn(self, says: str) -> str:
        """The whole drawing; `says` is its content in words."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram" role="img" '
            f'viewBox="0 0 {_number(self.width)} {_number(self.height)}" '
            f'width="{_number(self.width)}" height="{_number(self.height)}" '
            f'font-family="{FACE}"><title>{escape(says)}</title>{"".join(self._marks)}</svg>'
        )
