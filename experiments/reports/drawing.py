"""Small drawings as SVG: inline in a page in the page's own colours, or standing alone as a file.

Across, places are per cent of the width, so that text keeps its size on a narrow screen; down, they
are pixels. It places no figures: see `plots`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache

# Not Django's, which asks of each text whether it is one to be translated later: a page of drawings
# escapes some thousand.
from html import escape

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from experiments.reports import tokens

FILE_WIDTH = 720  # pixels of a drawing that stands alone
MARGIN = 16


def _attributes(values: dict[str, object]) -> str:
    return "".join(
        f' {_name(name)}="{escape(str(v))}"' for name, v in values.items() if v not in (None, "")
    )


@cache
def _name(name: str) -> str:
    """An attribute's name, of which there are few, from that of a parameter."""
    return name.rstrip("_").replace("_", "-")


@dataclass
class Drawing:
    """Marks in the order they are drawn. says: the content in words, for those who do not see it.

    height in pixels; `class_` of a mark names its colours in static/css/plot.css.
    """

    height: float
    says: str
    links: bool = False  # whether its marks lead somewhere: then it is no single picture
    _marks: list[str] = field(default_factory=list)

    def mark(self, tag: str, /, title: str = "", **values: object) -> None:
        inner = f"<title>{escape(title)}</title>" if title else ""
        self._marks.append(f"<{tag}{_attributes(values)}>{inner}</{tag}>")

    def rect(
        self, x: float, y: float, width: float, height: float, class_: str, title: str = ""
    ) -> None:
        """x and width in per cent, y and height in pixels."""
        self.mark(
            "rect",
            title,
            x=f"{x:.3f}%",
            y=f"{y:g}",
            width=f"{max(width, 0.0):.3f}%",
            height=f"{height:g}",
            class_=class_,
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        self.mark(
            "line", x1=f"{x1:.3f}%", y1=f"{y1:g}", x2=f"{x2:.3f}%", y2=f"{y2:g}", class_=class_
        )

    def dot(self, x: float, y: float, r: float, class_: str, title: str = "") -> None:
        self.mark("circle", title, cx=f"{x:.3f}%", cy=f"{y:g}", r=f"{r:g}", class_=class_)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        class_: str = "",
        anchor: str = "",
        dx: float = 0,
        more: str = "",
    ) -> None:
        """`more` follows the words where there is room for it: not on a narrow screen."""
        values = _attributes(
            {
                "x": f"{x:.3f}%",
                "y": f"{y:g}",
                "dx": f"{dx:g}" if dx else None,
                "class": class_,
                "text-anchor": anchor,
            }
        )
        rest = f'<tspan class="more">\u00a0{escape(more)}</tspan>' if more else ""
        self._marks.append(f"<text{values}>{escape(words)}{rest}</text>")

    def curve(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        """From one place to another, leaving and arriving upright."""
        middle = (y1 + y2) / 2
        self._stretched(
            f"M{x1:.3f} {y1:g} C{x1:.3f} {middle:g} {x2:.3f} {middle:g} {x2:.3f} {y2:g}", class_
        )

    def arc(self, x1: float, x2: float, y: float, up: float, class_: str) -> None:
        """From one place to another at the same height, `up` pixels above it."""
        self._stretched(
            f"M{x1:.3f} {y:g} C{x1:.3f} {y - up:g} {x2:.3f} {y - up:g} {x2:.3f} {y:g}", class_
        )

    def begin_link(self, address: str, says: str) -> None:
        """What is drawn until `end_link` leads to an address."""
        self._marks.append(f'<a href="{escape(address)}" aria-label="{escape(says)}">')

    def end_link(self) -> None:
        self._marks.append("</a>")

    def path(self, points: list[tuple[float, float]], class_: str) -> None:
        """A line through points whose x is in per cent and y in pixels; it stretches with x."""
        way = " ".join(f"{'L' if i else 'M'}{x:.3f} {y:.2f}" for i, (x, y) in enumerate(points))
        self._stretched(way, class_)

    def _stretched(self, way: str, class_: str) -> None:
        self._marks.append(
            f'<svg x="0" y="0" width="100%" height="{self.height:g}" '
            f'viewBox="0 0 100 {self.height:g}" preserveAspectRatio="none">'
            f'<path d="{way}" class="{escape(class_)}" fill="none" '
            'vector-effect="non-scaling-stroke"/></svg>'
        )

    @property
    def inline(self) -> SafeString:
        """For a page: colours by class, so that it follows light and dark."""
        return format_html(
            '<svg class="plot" width="100%" height="{}" role="{}" aria-label="{}">{}</svg>',
            f"{self.height:g}",
            "group" if self.links else "img",
            self.says,
            mark_safe("".join(self._marks)),  # noqa: S308 (each mark is escaped when it is made)
        )

    @property
    def file(self) -> str:
        """As a file of its own, in the light colours, on white."""
        inner = FILE_WIDTH - 2 * MARGIN
        whole = self.height + 2 * MARGIN
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{FILE_WIDTH}" height="{whole:g}">'
            f"<title>{escape(self.says)}</title><style>{_styles()}</style>"
            f'<rect width="{FILE_WIDTH}" height="{whole:g}" fill="#ffffff"/>'
            f'<svg class="plot" x="{MARGIN}" y="{MARGIN}" width="{inner}" height="{self.height:g}">'
            f"{''.join(self._marks)}</svg></svg>\n"
        )

    @property
    def png(self) -> bytes:
        """The file as a picture, twice as fine."""
        import vl_convert

        picture: bytes = vl_convert.svg_to_png(self.file, scale=2.0)
        return picture


@lru_cache(maxsize=1)
def _styles() -> str:
    """The drawings' own style sheet with the light tokens filled in: files know no variables."""
    sheet = tokens.filled("plot.css", tokens.light() | {"face": "'DejaVu Sans', sans-serif"})
    return re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL).replace("rem", "em")
