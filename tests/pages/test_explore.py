"""Courses of several runs on one chart: what is offered, what is drawn, what is told without."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client
from django.urls import reverse

from experiments.models import DecodeSample, Run
from tests.pages.conftest import Story


def lines(run: Run, count: int, **figures: Any) -> None:
    DecodeSample.objects.filter(run=run).delete()
    DecodeSample.objects.bulk_create(
        DecodeSample(run=run, line=i + 1, t=100.0 + i, **{"tok_s": 50.0, **figures})
        for i in range(count)
    )


def drawn(client: Client, story: Story, query: str = "") -> tuple[int, Any]:
    answer = client.get(reverse("explore-spec", args=[story.investigation.slug]) + query)
    return answer.status_code, json.loads(answer.content)


def test_the_chosen_runs_are_drawn_with_the_baselines_mean(browser: Client, story: Story) -> None:
    runs = {run.number: run for run in story.investigation.runs.all()}
    for number in (1, 2):
        lines(runs[number], 5)
    status, spec = drawn(browser, story, "?metric=tok_s&run=R2")
    rows = max(spec["datasets"].values(), key=len)
    assert (status, {row["run"] for row in rows}, len(rows)) == (200, {"R2"}, 5)
    assert "baseline R0" in json.dumps(spec)


def test_a_figure_that_no_line_holds_says_so(browser: Client, story: Story) -> None:
    for run in story.investigation.runs.all():
        lines(run, 2)
    status, told = drawn(browser, story, "?metric=accept_len")
    assert (status, told) == (404, {"problem": "none of these runs logged this figure"})


def test_an_unknown_figure_falls_back_to_throughput(browser: Client, story: Story) -> None:
    lines(story.investigation.runs.get(number=1), 3)
    status, spec = drawn(browser, story, "?metric=password&run=R1")
    assert status == 200
    assert spec["layer"][0]["encoding"]["y"]["field"] == "tok_s"


def test_without_decode_lines_the_page_says_what_to_do(browser: Client, story: Story) -> None:
    DecodeSample.objects.all().delete()
    page = browser.get(reverse("explore", args=[story.investigation.slug])).content.decode()
    assert "Queue a run, or add a server log" in page
    assert "vega" not in page


def test_the_chart_is_had_as_a_table_and_as_files(browser: Client, story: Story) -> None:
    run = story.investigation.runs.get(number=1)
    lines(run, 4)
    DecodeSample.objects.filter(run=run, line=1).update(in_repeat=True, tok_s=70.0)
    address = reverse("explore", args=[story.investigation.slug])
    page = browser.get(f"{address}?run=R1").content.decode()
    assert "70.00" in page
    assert "warm-up or idle" in page
    files = {
        form: browser.get(
            reverse("explore-file", args=[story.investigation.slug, form]) + "?run=R1&metric=tok_s"
        )
        for form in ("csv", "svg", "png", "exe")
    }
    csv = files["csv"].content.decode().splitlines()
    assert csv[0] == "run,line,rank,t,tok_s,in_repeat"
    assert len(csv) == 5
    assert files["svg"].content.startswith(b"<svg")
    assert files["png"].content.startswith(b"\x89PNG")
    assert files["exe"].status_code == 404
