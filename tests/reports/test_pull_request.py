"""The report as Markdown: it tells the story, and what others wrote stays text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiments.reports import document, pull_request
from experiments.reports.document import Document


def test_it_tells_the_five_sentences_the_runs_and_what_is_next(kimi_document: Document) -> None:
    told = pull_request.markdown(kimi_document)
    assert told.startswith("## Kimi-K2.5 with an EAGLE-3 draft is slower than without\n")
    for lead in ("Asked", "Found", "Fixed", "Open", "Goal"):
        assert f"- **{lead}.** " in told
    assert "| **R1** Speculation on: 1 step, top-k 1, 16 draft tokens | 56.8 | 1 | 1.60 |" in told
    assert "1. **Record the accept length of R3** (one request)" in told
    assert "28.2 ms, R2 40.7 ms" in told
    assert f"Document `{kimi_document.digest[:16]}`" in told


def test_every_row_of_a_table_has_as_many_cells_as_its_head(kimi_document: Document) -> None:
    body: Any = json.loads(document.canonical(kimi_document.body))
    for run in body["post_mortem"]["runs"]:
        run["title"] = "a | b \\| c\nd"
    lines = pull_request.markdown(document.read(body)).splitlines()
    cells = 0
    for line in lines:
        if line.startswith("|"):
            plain = line.replace("\\\\", "").replace("\\|", "")
            cells = cells or plain.count("|")
            assert plain.count("|") == cells, line
        else:
            cells = 0


@pytest.mark.parametrize(
    ("hostile", "not_in_it"),
    [
        ("<img src=x onerror=alert(1)>", " <img"),
        ("![p](http://evil.example/p.png)", " ![p]("),
        ("[click](http://evil.example)", " [click]("),
        ("see https://evil.example/x", "https://"),
        ("ping @ada and #12", "@ada"),
        ("`code` and ```fence```", " ```"),
        ("*bold* _it_ ~~no~~", " *bold"),
        ("line\n# heading", "\n# heading"),
    ],
)
def test_what_others_wrote_stays_text(hostile: str, not_in_it: str) -> None:
    told = " " + pull_request.text(hostile)
    assert "\n" not in told
    assert not_in_it not in told


def test_code_cannot_be_left(kimi_document: Document) -> None:
    assert pull_request.code("a`b|c\nd") == "`a'b¦c d`"
    assert pull_request.code("") == "–"


def test_a_remark_is_marked_as_its_author_s(kimi_document: Document) -> None:
    body = dict(kimi_document.body)
    body["remarks"] = [
        {"section": "runs", "author": "ada", "text": "my client"},
        {"section": "files", "author": "eve", "text": "kept elsewhere"},
    ]
    told = pull_request.markdown(document.read(body))
    assert "> **Added by ada, not measured:** my client" in told
    assert told.index("### Files") < told.index("kept elsewhere")
