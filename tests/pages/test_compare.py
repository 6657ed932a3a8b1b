"""Runs side by side: what the address names, what is said of them, the files of its drawings."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from experiments import lifecycle
from experiments.lifecycle.runs import RecordedRepeat
from experiments.models import Repeat, Run
from experiments.queries.comparison import MOST, compared, name_of
from experiments.reports.comparing import comparing
from tests.pages.conftest import Story, measured


def _address(*runs: Run, base: Run | None = None) -> str:
    named = "&".join(f"run={name_of(run)}" for run in runs)
    return f"/compare/?{named}" + (f"&base={name_of(base)}" if base else "")


def test_a_loss_beyond_noise_is_a_regression_with_its_interval(story: Story) -> None:
    Run.objects.filter(pk=story.baseline.pk).update(engine="sglang")
    told = comparing(compared([name_of(story.baseline), name_of(story.slow)]))
    base, slow = told.rows
    assert base.facts.run == story.baseline
    assert slow.why_not.startswith("R1 ran on reference, R0 on sglang")
    # Made comparable, the loss is judged.
    Run.objects.filter(pk=story.baseline.pk).update(engine="reference")
    told = comparing(compared([name_of(story.baseline), name_of(story.slow)]))
    slow = told.rows[1]
    assert slow.verdict == "regression"
    assert slow.throughput.words.startswith("−36.9 % [−")
    assert slow.split == ""  # nobody said whether the recorded baseline has a draft


def test_a_change_within_noise_is_not_called_one(story: Story) -> None:
    again = lifecycle.repeat_run(story.slow)
    measured(again, [56.9, 56.4, 57.3], accept_len=1.6)
    told = comparing(compared([name_of(story.slow), name_of(again)]))
    assert told.rows[1].verdict in ("no material change", "inconclusive", "small change")
    assert told.rows[1].outputs is True
    assert told.rows[1].split.startswith("throughput −0.1 %") or "acceptance +0.0 %" in (
        told.rows[1].split
    )


def test_outputs_that_differ_are_named(story: Story, browser: Client) -> None:
    again = lifecycle.repeat_run(story.slow)
    measured(again, [56.9, 56.4, 57.3], accept_len=1.6)
    Repeat.objects.filter(run=again).update(output_sha256="cd" * 32)
    assert comparing(compared([name_of(story.slow), name_of(again)])).rows[1].outputs is False
    page = browser.get(_address(story.slow, again)).content.decode()
    assert "differ</span>" in page


def test_only_what_differs_is_shown_first(story: Story) -> None:
    again = lifecycle.branch_run(story.slow, title="three", server_args=["--x-steps", "3"])
    measured(again, [60.0, 61.0, 60.5], accept_len=1.7)
    told = comparing(compared([name_of(story.slow), name_of(again)]))
    keys = {line.key for line in told.lines}
    assert "speculative_num_draft_tokens" in keys
    assert "concurrency" not in keys
    assert "concurrency" in {line.key for line in told.same}


def test_the_pinned_run_is_the_one_that_was_named_else_the_goal_s(story: Story) -> None:
    names = [name_of(story.slow), name_of(story.baseline)]
    assert compared(names).baseline.run == story.baseline  # type: ignore[union-attr]
    assert compared(names, names[0]).baseline.run == story.slow  # type: ignore[union-attr]


def test_a_baseline_that_is_not_among_the_runs_joins_them(story: Story) -> None:
    found = compared([name_of(story.slow)], name_of(story.baseline))
    assert [f.run for f in found.runs] == [story.baseline, story.slow]


def test_names_that_are_no_run_are_said_and_the_rest_is_compared(
    story: Story, browser: Client
) -> None:
    page = browser.get(_address(story.baseline, story.slow) + "&run=nothing/R9&run=<b>")
    assert page.status_code == 200
    text = page.content.decode()
    assert "<code>nothing/R9</code>" in text
    assert "&lt;b&gt;" in text
    assert "2 runs beside R0" in text


def test_more_runs_than_fit_are_not_compared(story: Story) -> None:
    rows = [
        lifecycle.record_run(
            investigation=story.investigation, title=f"r{i}", repeats=[RecordedRepeat(50.0 + i)]
        )
        for i in range(MOST + 2)
    ]
    assert len(compared([name_of(run) for run in rows]).runs) == MOST


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_runs_say_what_to_do(story: Story, browser: Client, count: int) -> None:
    page = browser.get(_address(*[story.slow][:count])).content.decode()
    assert ("add another above" if count else "Choose two to 8 runs") in page


@pytest.mark.parametrize("form", ["csv", "svg", "png"])
def test_every_drawing_is_a_file(story: Story, browser: Client, form: str) -> None:
    query = _address(story.baseline, story.slow).partition("?")[2]
    answer = browser.get(f"/compare/tok_s.{form}?{query}")
    assert answer.status_code == 200
    assert answer["Content-Disposition"].startswith("attachment")
    starts = {"csv": b"run,", "svg": b"<svg xmlns", "png": b"\x89PNG"}
    assert answer.content.startswith(starts[form])


def test_a_title_that_a_spreadsheet_would_run_is_text(story: Story, browser: Client) -> None:
    lifecycle.edit_run(story.slow, title="=1+1")
    query = _address(story.baseline, story.slow).partition("?")[2]
    rows = browser.get(f"/compare/tok_s.csv?{query}").content.decode().splitlines()
    assert any(row.startswith("R1 =1+1,") for row in rows)
    assert not any(row.startswith("=") for row in rows)


@pytest.mark.parametrize("address", ["nothing.csv", "tok_s.exe"])
def test_a_drawing_that_is_not_there_is_a_404(story: Story, browser: Client, address: str) -> None:
    query = _address(story.baseline, story.slow).partition("?")[2]
    assert browser.get(f"/compare/{address}?{query}").status_code == 404
    assert browser.get("/compare/tok_s.csv").status_code == 404


def test_a_run_has_one_colour_on_every_page(story: Story, browser: Client) -> None:
    compare = browser.get(_address(story.baseline, story.slow)).content.decode()
    investigation = browser.get(story.investigation.get_absolute_url()).content.decode()
    run = browser.get(story.slow.get_absolute_url()).content.decode()
    for page in (compare, investigation):
        assert 'class="swatch hue-1"' in page
    assert "fill-1" in compare
    assert "fill-1" in investigation
    assert "line-1" in run


def test_queries_do_not_grow_with_the_runs(
    story: Story, browser: Client, django_assert_max_num_queries: Any
) -> None:
    runs = [lifecycle.repeat_run(story.slow) for _ in range(6)]
    for run in runs:
        measured(run, [50.0, 51.0, 52.0], accept_len=1.5)
    address = _address(story.baseline, *runs)
    with django_assert_max_num_queries(9):
        assert browser.get(address).status_code == 200
