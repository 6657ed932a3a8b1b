"""The cost account on its page: what it says of the recorded story, and what it lacks elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from experiments import queries
from experiments.models import AcceptanceCurve, Investigation
from experiments.reports.accounts import account_page
from experiments.reports.document import document
from experiments.story import recorded
from tests.pages.conftest import Story


@pytest.fixture
def kimi(db: Any, data_dir: Any) -> Investigation:
    recorded.load_story()
    return Investigation.objects.get()


def where(row: Investigation) -> str:
    return reverse("account", args=[row.slug])


def test_the_story_shows_its_unexplained_overhead_with_a_range(
    browser: Client, kimi: Investigation
) -> None:
    page = browser.get(where(kimi)).content.decode()
    for said in (
        "16.2 ms",
        "above a plain step, unexplained",
        "14.3 to 18.1",
        "two depths only",
        "assumed: nothing was repeated",
        "depth alone cannot reach it",
        "a run at num_steps 4",
        "an accept length of 2.54, more than the 2",
        "training accuracy",
        "reference curve",
    ):
        assert said in page, said


def test_the_run_with_other_layers_and_no_accept_length_stays_out_of_the_account(
    kimi: Investigation,
) -> None:
    shown = account_page(queries.investigation_page(kimi.slug))
    assert [f.labels for f in shown.families if f.account] == [("R0", "R1", "R2")]
    (family,) = [f for f in shown.families if f.account]
    assert family.best is not None
    assert family.best.num_steps == 3
    assert {g.run: g.measured_tok_s for g in family.gaps} == {"R1": 56.8, "R2": 46.7}
    assert all(
        abs(90 + sum(p.tok_s.value for p in g.parts) - g.measured_tok_s) < 1e-6 for g in family.gaps
    )


def test_page_report_run_page_and_api_tell_one_account(
    browser: Client, kimi: Investigation
) -> None:
    page = queries.investigation_page(kimi.slug)
    shown = {g.run: g for f in account_page(page).families for g in f.gaps}
    told = {g["run"]: g["account"] for g in document(page).told["gaps"]}
    served = browser.get(f"/api/v1/investigations/{kimi.slug}/gap").json()["items"]
    assert {g["run"]: g["account"] for g in served} == told
    assert set(shown) == set(told) == {"R1", "R2"}
    for label, gap in shown.items():
        parts = [(p["name"], p["tok_s"], p["low"], p["high"]) for p in told[label]["parts"]]
        assert parts == [(p.name, p.tok_s.value, p.tok_s.low, p.tok_s.high) for p in gap.parts]
        number = int(label[1:])
        drawn = browser.get(reverse("run", args=[kimi.slug, number])).content.decode()
        for part in gap.parts:
            assert f"{part.tok_s.value:+.1f} (".replace("-", "−") in drawn


def test_one_depth_gives_no_account_and_names_the_run_that_would(
    browser: Client, story: Story
) -> None:
    story.slow.config.update_or_create(
        key="speculative_num_steps", defaults={"effective": 1, "effective_known": True}
    )
    page = browser.get(where(story.investigation)).content.decode()
    assert "No account yet" in page
    assert "num_steps (for example 5)" in page


def test_a_curve_of_ones_own_is_added_once_shown_beside_the_runs_and_removed(
    browser: Client, kimi: Investigation
) -> None:
    values = {
        "target": "Kimi-K2.5",
        "method": "eagle3",
        "points": "1: 1.70\n2: 2.20",
        "source": "our bench of May",
        "about": "chat prompts",
    }
    for _ in range(2):
        assert browser.post(where(kimi), values).status_code == 302
    row = AcceptanceCurve.objects.get()
    page = browser.get(where(kimi)).content.decode()
    assert "our bench of May" in page
    assert "chat prompts" in page
    browser.post(reverse("curve-forget", args=[kimi.slug, row.pk]))
    assert not AcceptanceCurve.objects.exists()


@pytest.mark.parametrize(
    ("points", "says"), [("1: 2.7", "between 1 and 2"), ("first 1.8", "not like 1: 1.83")]
)
def test_a_curve_that_is_none_is_refused_with_its_place(
    browser: Client, kimi: Investigation, points: str, says: str
) -> None:
    values = {"target": "kimi-k2.5", "points": points, "source": "x"}
    answer = browser.post(where(kimi), values).content.decode()
    assert says in answer
    assert points in answer, "what was written is still there"
    assert not AcceptanceCurve.objects.exists()
