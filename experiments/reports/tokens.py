"""The colours, sizes and faces of static/css/tokens.css, for what knows no CSS variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from django.conf import settings

FOLDER = Path(settings.BASE_DIR) / "static" / "css"
_TOKEN = re.compile(r"--([\w-]+):\s*([^;]+);")
_USE = re.compile(r"var\(--([\w-]+)\)")


@cache
def light() -> dict[str, str]:
    """The tokens of the light pages by name, without the dashes."""
    return dict(_TOKEN.findall((FOLDER / "tokens.css").read_text().partition("@media")[0]))


@cache
def on_paper() -> dict[str, str]:
    """The light tokens as they are when printed."""
    printed = (FOLDER / "tokens.css").read_text().partition("@media print")[2]
    return {**light(), **dict(_TOKEN.findall(printed))}


def filled(sheet: str, tokens: Mapping[str, str]) -> str:
    """The stylesheet of this file name with the tokens' values in their places; KeyError for one
    that there is none of."""
    return _USE.sub(lambda use: tokens[use[1]], (FOLDER / sheet).read_text())
