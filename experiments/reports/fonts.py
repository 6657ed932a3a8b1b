"""Which characters of a text no font of this machine has; asks fontconfig, which the PDF uses too.

The PDF draws such a character as a box. Where fontconfig is missing, nothing is said.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import unicodedata
from functools import cache

# To draw them takes fonts beyond the Latin ones: Debian's names of packages that have them.
PACKAGES = "fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji"
_MOST = 24  # characters named, not counted


@cache
def _library() -> ctypes.CDLL | None:
    name = ctypes.util.find_library("fontconfig") or "libfontconfig.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None
    for function, result, arguments in (
        ("FcCharSetCreate", ctypes.c_void_p, []),
        ("FcCharSetAddChar", ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint32]),
        ("FcCharSetDestroy", None, [ctypes.c_void_p]),
        ("FcPatternCreate", ctypes.c_void_p, []),
        ("FcPatternAddCharSet", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]),
        ("FcPatternDestroy", None, [ctypes.c_void_p]),
        ("FcObjectSetCreate", ctypes.c_void_p, []),
        ("FcObjectSetAdd", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
        ("FcObjectSetDestroy", None, [ctypes.c_void_p]),
        ("FcFontList", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
        ("FcFontSetDestroy", None, [ctypes.c_void_p]),
    ):
        try:
            known = getattr(library, function)
        except AttributeError:
            return None
        known.restype, known.argtypes = result, arguments
    return library


@cache
def has(character: str) -> bool:
    """Whether some font of this machine has the character; True where it cannot be told."""
    library = _library()
    if library is None:
        return True
    charset = library.FcCharSetCreate()
    pattern = library.FcPatternCreate()
    objects = library.FcObjectSetCreate()
    try:
        library.FcCharSetAddChar(charset, ord(character))
        library.FcPatternAddCharSet(pattern, b"charset", charset)
        library.FcObjectSetAdd(objects, b"family")
        found = library.FcFontList(None, pattern, objects)
        if not found:
            return True
        # The set begins with the number of fonts in it.
        count = ctypes.cast(found, ctypes.POINTER(ctypes.c_int))[0]
        library.FcFontSetDestroy(found)
        return bool(count > 0)
    finally:
        library.FcObjectSetDestroy(objects)
        library.FcPatternDestroy(pattern)
        library.FcCharSetDestroy(charset)


def missing(text: str) -> list[str]:
    """The characters of `text` without a font here, each once, in the order of their numbers."""
    # Latin-1 is in every text font; controls, marks of direction and selectors draw nothing.
    others = sorted({c for c in text if ord(c) > 0xFF and unicodedata.category(c)[0] != "C"})
    drawn = (c for c in others if not 0xFE00 <= ord(c) <= 0xFE0F)
    return [c for c in drawn if not has(c)]


def in_words(characters: list[str]) -> str:
    """They, with their names, and what to install; empty where there are none."""
    if not characters:
        return ""
    named = [
        f"U+{ord(c):04X} {unicodedata.name(c, 'without a name').lower()}"
        for c in characters[:_MOST]
    ]
    more = len(characters) - len(named)
    tail = f" and {more} more" if more else ""
    return f"{', '.join(named)}{tail} (Debian's packages with them: {PACKAGES})"
