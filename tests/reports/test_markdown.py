"""Notes: Markdown in, harmless HTML out."""

from __future__ import annotations

import pytest

from experiments.reports.markdown import to_html


def test_headings_lists_and_tables_are_kept_below_the_page_s_own_headings() -> None:
    html = to_html("# Top\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    assert "<h3>Top</h3>" in html
    assert html.count("<li>") == 2
    assert "<td>1</td>" in html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '<p style="color:red">x</p>',
        "![x](https://example.org/x.png)",
        "<style>body{display:none}</style>",
        "<iframe src='//example.org'></iframe>",
    ],
)
def test_raw_html_and_images_do_not_get_through(text: str) -> None:
    html = to_html(text)
    for tag in ("<script", "<img", "<style", "<iframe", "<p style"):
        assert tag not in html


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x"]
)
def test_links_lead_to_the_web_or_a_mailbox_only(target: str) -> None:
    assert "href" not in to_html(f"[x]({target})")
    assert 'href="https://example.org/"' in to_html("[x](https://example.org/)")
