"""The PDF against rules of PDF/UA-1 that a machine can check, as veraPDF's profile has them.

Each rule is a function over the file, and each is shown to find a file that breaks it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ContentStream, DictionaryObject, NameObject

from tests.reports.conftest import Printed

pytestmark = pytest.mark.django_db

STANDARD = {
    *("Document", "Part", "Art", "Sect", "Div", "BlockQuote", "Caption", "TOC", "TOCI", "Index"),
    *("NonStruct", "Private", "P", "H", "H1", "H2", "H3", "H4", "H5", "H6", "L", "LI", "Lbl"),
    *("LBody", "Table", "TR", "TH", "TD", "THead", "TBody", "TFoot", "Span", "Quote", "Note"),
    *("Reference", "BibEntry", "Code", "Link", "Annot", "Figure", "Formula", "Form"),
}
PAINTS = {
    *(b"Tj", b"TJ", b"'", b'"', b"f", b"F", b"f*", b"S", b"s", b"B", b"B*", b"b", b"b*", b"Do"),
    b"sh",
}


def elements(reader: Any) -> Iterator[Any]:
    """The structure tree in reading order."""
    waiting = [reader.root_object["/StructTreeRoot"]["/K"]]
    while waiting:
        node = waiting.pop(0)
        node = node.get_object() if hasattr(node, "get_object") else node
        if isinstance(node, list):
            waiting[:0] = list(node)
        elif hasattr(node, "get"):
            if "/S" in node:
                yield node
            if "/K" in node:
                waiting.insert(0, node["/K"])


def _attribute(element: Any, name: str) -> Any:
    told = element.get("/A")
    told = told.get_object() if hasattr(told, "get_object") else told
    for one in told if isinstance(told, list) else [told]:
        one = one.get_object() if hasattr(one, "get_object") else one
        if hasattr(one, "get") and name in one:
            return one[name]
    return None


def without_identifier(reader: Any) -> list[str]:
    """5-1: XMP says PDF/UA part 1; 7.1-9: and has the title."""
    xmp = reader.root_object["/Metadata"].get_data().decode()
    wanted = {r"pdfuaid:part(>|=\")1": "no PDF/UA part 1 in XMP", "dc:title": "no title in XMP"}
    return [words for pattern, words in wanted.items() if not re.search(pattern, xmp)]


def undeclared(reader: Any) -> list[str]:
    """7.1-10, 6.2-1, 7.2-29: shown by its title, marked, not suspect, in a language."""
    root = reader.root_object
    found = []
    if not root.get("/ViewerPreferences", {}).get("/DisplayDocTitle"):
        found.append("the window shows the file's name")
    if not root.get("/MarkInfo", {}).get("/Marked") or root["/MarkInfo"].get("/Suspects"):
        found.append("not marked, or suspect")
    if not root.get("/Lang"):
        found.append("no language")
    if not (reader.metadata and reader.metadata.title):
        found.append("no title")
    return found


def unknown_tags(reader: Any) -> list[str]:
    """7.1-5: every type is a standard one, or the role map leads to one."""
    roles = reader.root_object["/StructTreeRoot"].get("/RoleMap", {})
    kinds = {str(e["/S"])[1:] for e in elements(reader)}
    return sorted(
        k for k in kinds if k not in STANDARD and str(roles.get(f"/{k}", "/"))[1:] not in STANDARD
    )


def mute_figures(reader: Any) -> list[str]:
    """7.3-1: every figure has a text in its place."""
    figures = [e for e in elements(reader) if e["/S"] == "/Figure"]
    return [
        "a figure without words" for f in figures if not (f.get("/Alt") or f.get("/ActualText"))
    ]


def heads_without_scope(reader: Any) -> list[str]:
    """7.5-1: a head says whether it is a row's or a column's."""
    heads = [e for e in elements(reader) if e["/S"] == "/TH"]
    scopes = [str(_attribute(e, "/Scope")) for e in heads]
    return [s for s in scopes if s not in ("/Row", "/Column", "/Both")]


def skipped_headings(reader: Any) -> list[str]:
    """7.4.2-1: the first heading is H1, and none goes down by more than one."""
    levels = [int(e["/S"][2]) for e in elements(reader) if re.fullmatch(r"/H[1-6]", str(e["/S"]))]
    pairs = zip([0, *levels], levels, strict=False)
    return [f"H{after} follows H{before}" for before, after in pairs if after > before + 1]


def untagged(reader: Any) -> list[str]:
    """7.1-3: all that is painted is a tag's content or an artifact."""
    found = []
    for number, page in enumerate(reader.pages, start=1):
        depth = 0
        for _, operator in ContentStream(page.get_contents(), reader).operations:
            if operator in (b"BDC", b"BMC"):
                depth += 1
            elif operator == b"EMC":
                depth -= 1
            elif operator in PAINTS and not depth:
                found.append(f"page {number}: {operator.decode()} outside of any tag")
    return found


def untabbed(reader: Any) -> list[str]:
    """7.18.3-1: pages with links go through them in the order of the structure."""
    return [
        f"page {number}"
        for number, page in enumerate(reader.pages, start=1)
        if page.get("/Annots") and page.get("/Tabs") != "/S"
    ]


def links_untagged(reader: Any) -> list[str]:
    """7.18.5-1 and -2: a link is in the structure tree and says in words where it leads."""
    notes = [n.get_object() for page in reader.pages for n in page.get("/Annots", [])]
    links = [n for n in notes if n["/Subtype"] == "/Link"]
    return ["a link without tag or words" for n in links if "/StructParent" not in n]


def unmapped_fonts(reader: Any) -> list[str]:
    """7.21.7-1: every glyph leads back to its character."""
    fonts = {
        str(f.get_object()["/BaseFont"]): f.get_object()
        for page in reader.pages
        for f in page["/Resources"].get("/Font", {}).values()
    }
    return [name for name, font in fonts.items() if "/ToUnicode" not in font]


RULES: tuple[Callable[[Any], list[str]], ...] = (
    *(without_identifier, undeclared, unknown_tags, mute_figures, heads_without_scope),
    *(skipped_headings, untagged, untabbed, links_untagged, unmapped_fonts),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_full_report_keeps_the_rule(
    kimi_pdf: Printed, rule: Callable[[Any], list[str]]
) -> None:
    assert rule(kimi_pdf.reader) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_short_report_keeps_the_rule(
    kimi_short: Printed, rule: Callable[[Any], list[str]]
) -> None:
    assert rule(kimi_short.reader) == []


def _spoil(root: Any, writer: PdfWriter) -> None:
    """Break every rule once."""
    root["/Metadata"].get_object().set_data(b"<x:xmpmeta/>")
    del root["/Lang"]
    seen = {"/Figure": 0, "/TH": 0, "/H2": 0, "/P": 0}
    for one in elements(writer):
        kind = str(one["/S"])
        if kind not in seen or seen[kind]:
            continue
        seen[kind] = 1
        if kind == "/Figure":
            del one["/Alt"]
        if kind == "/TH":
            one[NameObject("/A")] = DictionaryObject({NameObject("/O"): NameObject("/Table")})
        if kind == "/H2":
            one[NameObject("/S")] = NameObject("/H5")
        if kind == "/P":
            one[NameObject("/S")] = NameObject("/Paragraph")
    page: Any = writer.pages[0]
    page[NameObject("/Tabs")] = NameObject("/R")
    for note in page["/Annots"]:
        note.get_object().pop("/StructParent", None)
    for font in page["/Resources"]["/Font"].values():
        font.get_object().pop("/ToUnicode", None)
    stream = page["/Contents"].get_object()
    stream.set_data(stream.get_data() + b"\n0 0 9 9 re f\n")


def test_each_rule_finds_a_file_that_breaks_it(kimi_pdf: Printed) -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(kimi_pdf.pdf)))
    _spoil(writer.root_object, writer)
    out = io.BytesIO()
    writer.write(out)
    broken = PdfReader(io.BytesIO(out.getvalue()))
    assert [rule.__name__ for rule in RULES if not rule(broken)] == []
