"""The recorded story as a report, made once for all tests here, and a hostile one."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import pytest
from pypdf import PdfReader

from experiments import queries
from experiments.reports import document, render
from experiments.reports.document import Choices, Document
from experiments.story import recorded


@dataclass(frozen=True)
class Printed:
    """A document with its PDF. flat: the text of all pages without any white space."""

    document: Document
    pdf: bytes
    pages: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.pages)

    @property
    def flat(self) -> str:
        return "".join(self.text.split())

    @property
    def reader(self) -> Any:
        return PdfReader(io.BytesIO(self.pdf))

    def says(self, sentence: str) -> bool:
        """Whether the words stand in it, wherever lines break."""
        return "".join(sentence.split()) in self.flat


def printed(found: Document, page: str = "A4") -> Printed:
    pdf = render.pdf(found, page=page)
    pages = tuple(p.extract_text() for p in PdfReader(io.BytesIO(pdf)).pages)
    return Printed(found, pdf, pages)


_MADE: dict[str, Printed] = {}


@pytest.fixture
def kimi_document(db: Any, data_dir: Any) -> Document:
    row = recorded.load_story()
    return document.document(queries.investigation_page(row.slug))


@pytest.fixture
def kimi_pdf(request: Any) -> Printed:
    """Laying it out takes seconds: once for all tests that only look."""
    if "full" not in _MADE:
        found: Document = request.getfixturevalue("kimi_document")
        _MADE["full"] = printed(found)
    return _MADE["full"]


@pytest.fixture
def kimi_short(request: Any) -> Printed:
    if "short" not in _MADE:
        request.getfixturevalue("kimi_document")
        from experiments.models import Investigation

        page = queries.investigation_page(Investigation.objects.get().slug)
        _MADE["short"] = printed(document.document(page, Choices(template="short")), "Letter")
    return _MADE["short"]
