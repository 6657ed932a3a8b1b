"""The recorded example on its pages and in its report: what the figures say must stand there."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from experiments import queries
from experiments.models import Investigation
from experiments.reports import document, render
from experiments.story import recorded


@pytest.fixture
def kimi(db: Any, data_dir: Any) -> Investigation:
    recorded.load_story()
    return Investigation.objects.get()


def test_the_page_shows_goal_gap_timeline_and_open_findings(
    browser: Client, kimi: Investigation
) -> None:
    page = browser.get(kimi.get_absolute_url()).content.decode()
    assert ">0.63<" in page
    assert "33.2" in page
    assert page.count("recorded, unreplicated") >= 4
    assert page.index("aux-layer-mismatch") < page.index("too-few-samples")
    for part in ("regression against R1: cost", "10 findings", "verified as fixed", "Ruled out"):
        assert part in page, part


def test_the_report_says_what_the_people_did_not_see(kimi: Investigation) -> None:
    told = render.html(document.document(queries.investigation_page(kimi.slug)))
    for figures in (
        "R0 11.1 ms, R1 28.2 ms, R2 40.7 ms",  # step times
        "accept length of 2.54",  # break-even above what a step can yield
        "71 tok/s",  # ceiling of one draft step
        "0.89 ms",  # one draft step
        "16.2 ms above the plain step",  # unexplained overhead
        "predicts 1.75 at 1 steps against 1.60 measured; 3.92 at 15 steps",  # training
        "first position is accepted at 0.60, later ones at about 0.33",
        "Kimi-K2.5",  # the public curve, with its caveat
        "a flag and no proof",
        "On 0.5.23 the trained layers need [0, 3, 31]",
        "R3 against R1 -3.5 %: inconclusive",
        "R2 against R1 -17.8 %: regression",
        "Record the accept length of R3",  # the most valuable missing input
    ):
        assert figures in told, figures
    assert told.index("Record the accept length of R3") < told.index("One run at num_steps 3")


def test_an_argument_is_left_alone_only_where_it_is_known_what_was_asked(
    browser: Client, kimi: Investigation
) -> None:
    runs = "&".join(f"run={kimi.slug}/R{number}" for number in (0, 1, 3))
    page = browser.get(f"/compare/?{runs}").content.decode()
    cells = dict(re.findall(r'data-label="(R\d)">(.*?)</td>', _row_of(page, "tp_size")))
    assert cells["R0"] == cells["R1"]
    assert "not known" in cells["R3"]
    cells = dict(
        re.findall(r'data-label="(R\d)">(.*?)</td>', _row_of(page, "speculative_num_steps"))
    )
    assert "not set" in cells["R0"]
    assert "not known" in cells["R3"]


def _row_of(page: str, key: str) -> str:
    return page.split(f"<code>{key}</code>", 1)[1].split("</tr>", 1)[0]


def test_a_recorded_run_shows_what_was_asked_beside_what_was_in_force(
    browser: Client, kimi: Investigation
) -> None:
    page = browser.get(f"{kimi.get_absolute_url()}r/1/").content.decode()
    assert '<tr class="differs">' in page
    assert "overridden by the engine" in page
    assert "n = 1, unreplicated" in page
