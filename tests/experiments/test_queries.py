"""Each page's rows come with a fixed number of queries, however much there is to show."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from experiments import lifecycle, queries
from experiments.models import (
    ConfigEntry,
    DecodeSample,
    Finding,
    FindingEvent,
    Hypothesis,
    Investigation,
    Repeat,
    Run,
    Verdict,
)

DRAFTED = shlex.split("--model-path target --speculative-algorithm EAGLE3")


def fill(investigation: Investigation, runs: int) -> Run:
    """`runs` runs, each with a hypothesis, prediction, verdict, event, finding and figures."""
    base = lifecycle.record_run(
        investigation=investigation, title="plain", repeats=[lifecycle.RecordedRepeat(90.0)]
    )
    lifecycle.edit_investigation(investigation, baseline=base)
    ConfigEntry.objects.create(
        run=base, key="speculative_algorithm", effective=None, effective_known=True
    )
    run, earlier = base, None
    for n in range(runs):
        hypothesis = lifecycle.add_hypothesis(
            investigation=investigation,
            claim=f"claim {n}",
            links=[("follows-from", earlier)] if earlier else [],
        )
        lifecycle.register_prediction(hypothesis=hypothesis, baseline=base)
        lifecycle.add_applied_check(
            hypothesis=hypothesis, kind="effective-equals", key="k", expected=1
        )
        run = lifecycle.record_run(
            investigation=investigation,
            title=f"run {n}",
            repeats=[lifecycle.RecordedRepeat(50.0 + n, 1.5)] * 3,
            server_args=DRAFTED,
            hypothesis=hypothesis,
            baseline=base,
            follows=run,
        )
        ConfigEntry.objects.create(
            run=run, key="speculative_algorithm", effective="EAGLE3", effective_known=True
        )
        Verdict.objects.create(
            hypothesis=hypothesis, run=run, applied="yes", outcome="refuted", applied_reason="r"
        )
        lifecycle.add_event(investigation=investigation, title=f"event {n}", run=run)
        finding = Finding.objects.create(
            investigation=investigation,
            code=f"code-{n}",
            severity="high",
            confidence="certain",
            statement="s",
            opened_in=run,
            seen_in=run,
        )
        FindingEvent.objects.create(finding=finding, kind="opened", run=run)
        DecodeSample.objects.create(run=run, line=1, tok_s=50.0)
        earlier = hypothesis
    return run


def walk(page: Any) -> None:
    """Touch what a template would touch, so that a row fetched late is counted too."""
    shown: list[object] = []
    for facts in page.dossier.runs:
        run = facts.run
        shown += [run, facts.verdict, run.baseline, run.follows, run.hypothesis, run.prediction]
        shown += [*facts.changes, *facts.config.values(), run.get_absolute_url()]
    for known in page.dossier.hypotheses:
        shown += [known.hypothesis.get_absolute_url(), *known.links, known.prediction]
        shown += [*known.checks, *(v.run for v in known.verdicts)]
    for life in page.dossier.findings:
        shown += [life.finding.opened_in, life.finding.seen_in, *(e.run for e in life.events)]
    for event in page.dossier.events:
        shown += [event.run, event.hypothesis]
    assert all(str(row) for row in shown)


def number_of(read: Callable[[], Any]) -> int:
    with CaptureQueriesContext(
        connection,
    ) as seen:
        read()
    return len(seen)


PAGES: list[tuple[str, Callable[[Investigation, Run], Any], int]] = [
    ("home", lambda i, r: queries.home(), 12),
    ("investigation", lambda i, r: walk(queries.investigation_page(i.slug)), 15),
    ("run", lambda i, r: queries.run_page(i.slug, r.number), 11),
    ("live", lambda i, r: queries.run_live(i.slug, r.number), 2),
    ("hypothesis", lambda i, r: walk(queries.hypothesis_page(i.slug, 1)), 15),
    (
        "finding",
        lambda i, r: queries.finding_page(i.slug, Finding.objects.filter(investigation=i)[0].pk),
        3,
    ),
]


@pytest.mark.parametrize(("name", "read", "most"), PAGES, ids=[p[0] for p in PAGES])
def test_the_number_of_queries_does_not_grow(
    db: None, name: str, read: Callable[[Investigation, Run], Any], most: int
) -> None:
    small = lifecycle.create_investigation(title="small", question="q")
    last = fill(small, 2)
    few = number_of(lambda: read(small, last))
    large = lifecycle.create_investigation(title="large", question="q")
    last = fill(large, 9)
    many = number_of(lambda: read(large, last))
    assert few == many <= most


def test_pages_that_do_not_exist_say_so(investigation: Investigation) -> None:
    with pytest.raises(Investigation.DoesNotExist):
        queries.investigation_page("nothing")
    with pytest.raises(Run.DoesNotExist):
        queries.run_page(investigation.slug, 7)
    with pytest.raises(Run.DoesNotExist):
        queries.run_live(investigation.slug, 7)
    with pytest.raises(Hypothesis.DoesNotExist):
        queries.hypothesis_page(investigation.slug, 7)
    with pytest.raises(Finding.DoesNotExist):
        queries.finding_page(investigation.slug, 7)


def test_the_home_page_shows_goal_gap_work_and_open_findings(
    investigation: Investigation, baseline: Run
) -> None:
    fill(investigation, 2)
    waiting = lifecycle.add_run(investigation=investigation, title="w", server_args=DRAFTED)
    Run.objects.filter(pk=waiting.pk).update(state=Run.State.QUEUED)
    closed = lifecycle.create_investigation(title="closed", question="q")
    lifecycle.abandon(investigation=closed, by="Ada", reason="r")
    everything = queries.home(state="all")
    assert {row.investigation.title for row in everything.rows} == {"Slow draft", "closed"}
    page = queries.home()
    assert [row.investigation.title for row in page.rows] == ["Slow draft"]
    row = page.rows[0]
    assert row.goal.target == 90.0
    assert row.goal.best_value == 51.0
    assert row.goal.gap == pytest.approx(39.0)
    assert row.goal.ratio == pytest.approx(51 / 90)
    assert (row.goal.met, row.open_findings["high"]) == (False, 2)
    assert [r.pk for r in page.active] == [waiting.pk]


def test_the_best_run_is_never_the_baseline_nor_a_run_without_a_draft(
    investigation: Investigation, baseline: Run
) -> None:
    ConfigEntry.objects.create(
        run=baseline, key="speculative_algorithm", effective=None, effective_known=True
    )
    again = lifecycle.record_run(
        investigation=investigation,
        title="plain again",
        repeats=[lifecycle.RecordedRepeat(99.0)],
        server_args=["--model-path", "target"],
    )
    assert queries.investigation_page(investigation.slug).goal.best is None
    lifecycle.record_run(
        investigation=investigation,
        title="draft",
        repeats=[lifecycle.RecordedRepeat(60.0, 1.5)],
        server_args=DRAFTED,
    )
    goal = queries.investigation_page(investigation.slug).goal
    assert goal.best is not None
    assert goal.best.run.title == "draft"
    assert goal.best.run != again


def test_a_goal_at_most_wants_the_lowest(investigation: Investigation) -> None:
    lifecycle.edit_investigation(
        investigation, goal_kind="at-most", goal_metric="step_ms", goal_value=30.0
    )
    for tok_s in (40.0, 50.0):
        lifecycle.record_run(
            investigation=investigation,
            title="r",
            repeats=[lifecycle.RecordedRepeat(tok_s, 1.6)],
            server_args=DRAFTED,
        )
    goal = queries.investigation_page(investigation.slug).goal
    assert goal.best_value == pytest.approx(32.0)
    assert (goal.met, goal.gap) == (False, pytest.approx(2.0))


def test_a_waiting_run_knows_how_many_wait_before_it(investigation: Investigation) -> None:
    runs = [
        lifecycle.add_run(investigation=investigation, title=f"{n}", server_args=DRAFTED)
        for n in range(3)
    ]
    from django.utils import timezone

    for run in runs:
        Run.objects.filter(pk=run.pk).update(state=Run.State.QUEUED, queued_at=timezone.now())
    assert [queries.run_live(investigation.slug, n).waiting_behind for n in range(3)] == [0, 1, 2]


def test_figures_pool_counts_and_not_ratios() -> None:
    rows = [
        Repeat(index=0, tok_s=100.0, tokens=110, requests=10, verify_ct=100, accept_len=1.0),
        Repeat(index=1, tok_s=200.0, tokens=40, requests=10, verify_ct=10, accept_len=3.0),
    ]
    figures = queries.figures_of(rows)
    assert figures.accept_len == pytest.approx(130 / 110)
    assert figures.accept_lens is not None
    assert figures.accept_lens.mean == 2.0
    assert figures.tok_s is not None
    assert (figures.tok_s.mean, figures.n) == (150.0, 2)
    assert figures.tok_s.sd == pytest.approx(70.71, abs=0.01)


def test_a_single_figure_has_no_spread() -> None:
    figures = queries.figures_of([Repeat(index=0, tok_s=90.0)])
    assert figures.tok_s is not None
    assert (figures.tok_s.sd, figures.tok_s.cv, figures.accept_len) == (None, None, None)


def test_histograms_of_different_depth_add_up() -> None:
    rows = [
        Repeat(index=0, tok_s=1.0, accept_histogram=[5, 3]),
        Repeat(index=1, tok_s=1.0, accept_histogram=[1, 1, 4]),
    ]
    assert queries.figures_of(rows).histogram == (6, 4, 4)


def test_figures_in_words_name_spread_and_n(investigation: Investigation) -> None:
    run = lifecycle.record_run(
        investigation=investigation,
        title="r",
        repeats=[lifecycle.RecordedRepeat(v, 1.6) for v in (56.0, 58.0)],
    )
    assert queries.figures_in_words(run) == (
        "57.0 ± 1.4 tok/s (n=2), accept length 1.60, 28.1 ms a step"
    )


def test_outputs_are_compared_only_where_the_prompts_were_the_same() -> None:
    def figures(prompts: str, outputs: str) -> queries.Figures:
        return queries.figures_of(
            [Repeat(index=0, tok_s=1.0, prompts_sha256=prompts, output_sha256=outputs)]
        )

    assert queries.outputs_equal(figures("p", "a"), figures("p", "a")) is True
    assert queries.outputs_equal(figures("p", "a"), figures("p", "b")) is False
    assert queries.outputs_equal(figures("p", "a"), figures("q", "b")) is None
    assert queries.outputs_equal(figures("p", "a"), figures("", "")) is None
