"""What a run and an investigation draw of themselves, on pages and as files."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from experiments import queries
from experiments.models import FindingEvent, HypothesisLink, Repeat, Run
from experiments.reports import run_plots
from experiments.reports.lanes import lanes, places
from tests.pages.conftest import Story


def _map(story: Story) -> str:
    return str(lanes(queries.dossier(story.investigation), 90.0).drawing.inline)


def test_every_step_has_its_column_in_order(story: Story) -> None:
    found = queries.dossier(story.investigation)
    at = places(found).at
    order = [
        at["run", story.baseline.pk],
        at["hypothesis", story.hypothesis.pk],
        at["run", story.slow.pk],
    ]
    assert order == sorted(order)
    assert len(set(at.values())) == len(at)
    assert places(found).stretches == 1


def test_the_map_draws_runs_by_height_and_a_finding_to_the_edge_while_it_is_open(
    story: Story,
) -> None:
    drawn = _map(story)
    assert 'href="#r1"' in drawn
    assert 'class="edge tests"' in drawn
    assert 'class="edge opened"' in drawn
    life = re.search(r'<rect x="([\d.]+)%"[^>]*width="([\d.]+)%"[^>]*class="life high"', drawn)
    assert life is not None
    assert float(life[1]) + float(life[2]) == pytest.approx(100.0, abs=0.01)


def test_a_fixed_finding_ends_where_it_was_fixed(story: Story) -> None:
    FindingEvent.objects.create(finding=story.finding, kind="fixed", run=story.draft)
    type(story.finding).objects.filter(pk=story.finding.pk).update(state="fixed")
    drawn = _map(story)
    at = places(queries.dossier(story.investigation)).at["run", story.draft.pk]
    life = re.search(r'<rect x="([\d.]+)%"[^>]*width="([\d.]+)%"[^>]*class="life high"', drawn)
    assert life is not None
    assert float(life[1]) + float(life[2]) == pytest.approx(at, abs=0.01)
    assert "✓" in drawn


def test_hypotheses_that_rule_each_other_out_are_joined(story: Story) -> None:
    from experiments import lifecycle

    other = lifecycle.add_hypothesis(investigation=story.investigation, claim="another")
    assert "edge rules-out" not in _map(story)
    HypothesisLink.objects.create(origin=other, kind="rules-out", other=story.hypothesis)
    assert "edge rules-out" in _map(story)


@pytest.mark.parametrize("form", ["csv", "svg", "png"])
def test_the_map_is_a_file(story: Story, browser: Client, form: str) -> None:
    answer = browser.get(f"/i/{story.investigation.slug}/map.{form}")
    assert answer.status_code == 200
    assert answer["Content-Disposition"].startswith("attachment")
    assert browser.get(f"/i/{story.investigation.slug}/map.exe").status_code == 404


def test_a_run_draws_its_course_and_where_its_throughput_goes(
    story: Story, browser: Client
) -> None:
    Run.objects.filter(pk=story.baseline.pk).update(
        plan={"server_args": ["--tp-size", "8"], "workload": {"concurrency": 1}}
    )
    page = queries.run_page(story.investigation.slug, 1)
    drawn = run_plots.run_plots(page, queries.dossier(story.investigation))
    names = [plot.name for plot in drawn]
    assert names[:2] == ["tok_s", "accept_len"]
    assert "warm-up or idle" in {row[3] for row in drawn[0].rows}
    html = browser.get(story.slow.get_absolute_url()).content.decode()
    for name in names:
        assert f"/i/{story.investigation.slug}/r/1/plot/{name}.csv" in html
    answer = browser.get(f"/i/{story.investigation.slug}/r/1/plot/tok_s.csv")
    assert answer.content.decode().startswith("seconds since the first decode line,")
    assert len(answer.content.decode().splitlines()) == 61
    assert browser.get(f"/i/{story.investigation.slug}/r/1/plot/none.csv").status_code == 404


def test_acceptance_by_position_comes_from_the_histogram_with_its_counts(story: Story) -> None:
    from experiments.reports.comparing import acceptance

    page = queries.run_page(story.investigation.slug, 1)
    assert acceptance(page.facts, 1) is None
    Repeat.objects.filter(run=story.slow).update(accept_histogram=[40, 60])
    curve = acceptance(queries.run_page(story.investigation.slug, 1).facts, 1)
    assert curve is not None
    assert curve.values == (0.6,)
    assert curve.counts == (300,)
    low, high = curve.ends[0]
    assert 0.54 < low < 0.6 < high < 0.66


def test_break_even_needs_a_plain_baseline_and_a_step_time(story: Story) -> None:
    assert run_plots.break_even(queries.run_page(story.investigation.slug, 0)) is None
    page = queries.run_page(story.investigation.slug, 1)
    needed = run_plots.break_even(page)
    assert needed == pytest.approx(page.facts.figures.step_ms.mean / (1000 / 90))  # type: ignore[union-attr]


def test_a_log_that_is_being_written_is_drawn_from_its_decode_lines(story: Story) -> None:
    line = (
        "[2026-11-29 16:45:31] Decode batch, #running-req: 1, #token: 111, token usage: 0.11, "
        "accept len: {}, accept rate: 0.11, cpu graph: False, gen throughput (token/s): {}, "
        "#queue-req: 0"
    )
    lines = [(1, "loading"), (2, line.format(1.8, 36.5)), (3, line.format(2.0, 40.1))]
    drawn = run_plots.live_plots(story.slow, lines)
    assert [plot.name for plot in drawn] == ["tok_s", "accept_len"]
    assert [row[1] for row in drawn[0].rows] == [36.5, 40.1]
    assert run_plots.live_plots(story.slow, lines[:2]) == ()


def test_a_log_marks_the_lines_that_findings_rest_on(story: Story, browser: Client) -> None:
    plain = browser.get(f"/i/{story.investigation.slug}/r/1/log/").content.decode()
    assert "mark-note" not in plain
    shown = {
        "code": "draft-tokens-overridden",
        "severity": "high",
        "statement": "16 asked <b>",
        "evidence": [{"source": "server.log", "line": 2, "text": "x"}],
    }
    Run.objects.filter(pk=story.slow.pk).update(shown=[shown])
    marked = browser.get(f"/i/{story.investigation.slug}/r/1/log/").content.decode()
    assert '<li id="L2" class="marked">' in marked
    assert "16 asked &lt;b&gt;" in marked
    assert f"/f/{story.finding.pk}/" in marked


def test_a_run_s_page_waits_for_its_findings_before_it_says_the_end(
    story: Story, browser: Client
) -> None:
    live = f"/i/{story.investigation.slug}/r/1/live/"
    Run.objects.filter(pk=story.slow.pk).update(checked_at=None, ended_at=timezone.now())
    answer = browser.get(live)
    assert answer.status_code == 200
    assert "are being drawn" in answer.content.decode()
    assert "Cancel the run" not in browser.get(story.slow.get_absolute_url()).content.decode()
    Run.objects.filter(pk=story.slow.pk).update(checked_at=timezone.now())
    assert browser.get(live)["HX-Refresh"] == "true"
    # A worker that died in between is not waited for.
    Run.objects.filter(pk=story.slow.pk).update(
        checked_at=None, ended_at=timezone.now() - timedelta(minutes=5)
    )
    assert browser.get(live)["HX-Refresh"] == "true"
