"""Two verdicts that are never mixed, drawn again without losing the old ones or a person's word."""

from __future__ import annotations

import io
import shlex
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from experiments import checkup, evidence, lifecycle
from experiments.models import (
    Alert,
    ConfigEntry,
    Hypothesis,
    Investigation,
    Run,
    RunGroup,
    Verdict,
    WatchedSeries,
)

DRAFTED = shlex.split("--model-path target --speculative-algorithm EAGLE3")


@pytest.fixture
def hypothesis(investigation: Investigation, baseline: Run) -> Hypothesis:
    row = lifecycle.add_hypothesis(investigation=investigation, claim="more steps help")
    lifecycle.register_prediction(hypothesis=row, baseline=baseline)
    return row


def run_with(hypothesis: Hypothesis, figures: Sequence[float], **values: Any) -> Run:
    return lifecycle.record_run(
        investigation=hypothesis.investigation,
        title="r",
        repeats=[lifecycle.RecordedRepeat(v) for v in figures],
        server_args=DRAFTED,
        hypothesis=hypothesis,
        **values,
    )


def verdict_of(run: Run) -> Verdict:
    checkup.recheck(run)
    return Verdict.objects.get(run=run, in_force=True)


def set_effective(run: Run, **values: Any) -> None:
    for key, value in values.items():
        ConfigEntry.objects.update_or_create(
            run=run, key=key, defaults={"effective": value, "effective_known": True}
        )


@pytest.mark.parametrize(
    ("figures", "outcome"),
    [([120.0], "supported"), ([46.7], "refuted"), ([91.0], "undecided"), ([], "undecided")],
)
def test_a_prediction_is_held_against_the_measured_ratio(
    hypothesis: Hypothesis, figures: list[float], outcome: str
) -> None:
    assert verdict_of(run_with(hypothesis, figures)).outcome == outcome


def test_an_assumed_spread_is_named(hypothesis: Hypothesis) -> None:
    assert "assumed spread of 3 %" in verdict_of(run_with(hypothesis, [46.7])).outcome_reason


def test_the_spread_of_replicated_runs_is_used_where_there_is_one(hypothesis: Hypothesis) -> None:
    run_with(hypothesis, [50.0, 51.0, 49.0])
    assert "assumed" not in verdict_of(run_with(hypothesis, [46.7])).outcome_reason


def test_a_change_that_was_not_applied_does_not_touch_the_other_verdict(
    hypothesis: Hypothesis,
) -> None:
    lifecycle.add_applied_check(
        hypothesis=hypothesis, kind="effective-equals", key="speculative_num_steps", expected=15
    )
    run = run_with(hypothesis, [120.0])
    assert verdict_of(run).applied == "unknown"
    set_effective(run, speculative_num_steps=2)
    verdict = verdict_of(run)
    assert (verdict.applied, verdict.outcome) == ("no", "supported")
    set_effective(run, speculative_num_steps=15)
    assert verdict_of(run).applied == "yes"


def test_old_verdicts_stay_in_the_history_and_the_same_again_makes_none(
    hypothesis: Hypothesis,
) -> None:
    run = run_with(hypothesis, [120.0])
    for _ in range(3):
        checkup.recheck(run)
    assert Verdict.objects.filter(run=run).count() == 1
    run.repeats.update(tok_s=46.7)
    checkup.recheck(run)
    history = [(v.outcome, v.in_force) for v in Verdict.objects.filter(run=run)]
    assert history == [("supported", False), ("refuted", True)]


def test_a_verdict_that_a_person_overruled_stands(hypothesis: Hypothesis) -> None:
    run = run_with(hypothesis, [120.0])
    lifecycle.overrule(verdict=verdict_of(run), by="Ada", reason="hot rig", outcome="undecided")
    run.repeats.update(tok_s=46.7)
    assert (verdict_of(run).outcome, verdict_of(run).decided_by) == ("undecided", "Ada")


def test_without_a_registered_prediction_nothing_is_decided(
    investigation: Investigation, baseline: Run
) -> None:
    bare = lifecycle.add_hypothesis(investigation=investigation, claim="a thought")
    verdict = verdict_of(run_with(bare, [120.0]))
    assert (verdict.outcome, verdict.applied) == ("undecided", "unknown")
    assert "No prediction was registered" in verdict.outcome_reason


def test_runs_of_different_workloads_are_not_compared(hypothesis: Hypothesis) -> None:
    Run.objects.filter(number=0).update(plan={"workload": {"concurrency": 1}})
    verdict = verdict_of(run_with(hypothesis, [500.0], concurrency=8))
    assert verdict.outcome == "undecided"
    assert "workloads differ in concurrency (1 and 8)" in verdict.outcome_reason


def test_runs_of_different_engines_are_not_compared(hypothesis: Hypothesis) -> None:
    verdict = verdict_of(run_with(hypothesis, [500.0], engine="reference"))
    assert verdict.outcome == "undecided"
    assert "ran on" in verdict.outcome_reason


def test_runs_that_were_asked_different_prompts_are_not_compared(
    hypothesis: Hypothesis, baseline: Run
) -> None:
    run = run_with(hypothesis, [500.0])
    baseline.repeats.update(prompts_sha256="1" * 64)
    run.repeats.update(prompts_sha256="2" * 64)
    verdict = verdict_of(run)
    assert verdict.outcome == "undecided"
    assert "different prompts" in verdict.outcome_reason
    run.repeats.update(prompts_sha256="1" * 64)
    assert verdict_of(run).outcome == "supported"


def test_a_failed_run_decides_nothing(hypothesis: Hypothesis) -> None:
    run = run_with(hypothesis, [])
    Run.objects.filter(pk=run.pk).update(state="failed", reason="out of memory")
    verdict = verdict_of(run)
    assert verdict.outcome == "undecided"
    assert "out of memory" in verdict.outcome_reason


def test_a_cancelled_run_gets_no_verdict(hypothesis: Hypothesis) -> None:
    run = run_with(hypothesis, [120.0])
    Run.objects.filter(pk=run.pk).update(state="cancelled")
    checkup.recheck(run)
    assert not Verdict.objects.exists()


def test_a_baseline_measured_again_draws_the_verdicts_that_rest_on_it_anew(
    hypothesis: Hypothesis, baseline: Run
) -> None:
    run = run_with(hypothesis, [120.0])
    assert verdict_of(run).outcome == "supported"
    baseline.repeats.update(tok_s=200.0)
    checkup.recheck(baseline)
    assert Verdict.objects.get(run=run, in_force=True).outcome == "refuted"


LOG = b"""[2026-01-01 00:00:00] server_args=ServerArgs(model_path='t', port=1)
[2026-01-01 00:00:01] Capture draft cuda graph begin. This can take up to several minutes.
[2026-01-01 00:00:02] The server is fired up and ready to roll!
"""


@pytest.mark.parametrize(
    ("kind", "text", "whole", "applied"),
    [
        ("log-present", "Capture draft cuda graph", True, "yes"),
        ("log-present", "no such line", True, "no"),
        ("log-present", "no such line", False, "unknown"),
        ("log-absent", "no such line", True, "yes"),
        ("log-absent", "no such line", False, "unknown"),
        ("log-absent", "Capture draft cuda graph", False, "no"),
    ],
)
def test_the_log_proves_a_line_and_only_a_whole_log_its_absence(
    hypothesis: Hypothesis, data_dir: Path, kind: str, text: str, whole: bool, applied: str
) -> None:
    lifecycle.add_applied_check(hypothesis=hypothesis, kind=kind, key=text)
    run = run_with(hypothesis, [120.0])
    log = LOG if whole else LOG.split(b"\n", 1)[1]
    evidence.add(
        investigation=run.investigation,
        run=run,
        name="server.log",
        stream=io.BytesIO(log),
        kind=evidence.SERVER_LOG,
    )
    assert verdict_of(run).applied == applied


def repeated(hypothesis: Hypothesis, first: Run, figures: Sequence[float]) -> Run:
    run = run_with(hypothesis, figures)
    Run.objects.filter(pk=run.pk).update(repeats_run=first)
    run.refresh_from_db()
    return run


def test_starts_that_a_comparison_planned_are_judged_at_95_per_cent_once_all_have_ended(
    hypothesis: Hypothesis, investigation: Investigation
) -> None:
    group = RunGroup.objects.create(
        investigation=investigation,
        number=1,
        kind=RunGroup.Kind.COMPARISON,
        title="in turns",
        plan={"points": [], "order": [0, 1, 0, 1, 0], "made": [1, 1, 1]},
    )
    first = run_with(hypothesis, [100.0, 101.0, 99.0])
    Run.objects.filter(pk=first.pk).update(group=group, group_place=0)
    first.refresh_from_db()
    assert "not planned" in verdict_of(first).outcome_reason
    second = repeated(hypothesis, first, [102.0, 101.0, 100.0])
    assert "not planned" not in verdict_of(second).outcome_reason
    third = repeated(hypothesis, first, [101.0, 101.0, 100.0])
    assert "not planned" in verdict_of(third).outcome_reason


def test_a_repeated_run_is_judged_with_the_one_it_repeats_at_a_wider_interval(
    hypothesis: Hypothesis,
) -> None:
    first = run_with(hypothesis, [91.0])
    alone = verdict_of(first)
    second = verdict_of(repeated(hypothesis, first, [97.0]))
    assert "not planned" not in alone.outcome_reason
    assert "a look that was not planned and therefore at 99.9 %" in second.outcome_reason
    # Both starts count: (91 + 97) / 2 over 90.
    assert "1.044 times R0" in second.outcome_reason
    assert Verdict.objects.get(run=first, in_force=True).outcome_reason == alone.outcome_reason


def test_a_repeat_that_failed_brings_no_figures_of_others(hypothesis: Hypothesis) -> None:
    first = run_with(hypothesis, [120.0])
    second = repeated(hypothesis, first, [])
    assert "was not measured" in verdict_of(second).outcome_reason


def test_runs_on_both_sides_of_a_drifting_control_are_not_compared(
    hypothesis: Hypothesis, baseline: Run, investigation: Investigation
) -> None:
    run = run_with(hypothesis, [120.0])
    control = lifecycle.record_run(
        investigation=investigation, title="control", repeats=[lifecycle.RecordedRepeat(80.0)]
    )
    now = timezone.now()
    for row, hours in ((baseline, 3), (control, 2), (run, 1)):
        Run.objects.filter(pk=row.pk).update(host="box", ended_at=now - timedelta(hours=hours))
        row.refresh_from_db()
    assert verdict_of(run).outcome == "supported"
    series = WatchedSeries.objects.create(key="k", title="plain control")
    Alert.objects.create(series=series, kind="regression", run=control, sentence="slower")
    drifted = verdict_of(run)
    assert drifted.outcome == "undecided"
    assert "the control 'plain control' on box changed between them" in drifted.outcome_reason
    Run.objects.filter(pk=control.pk).update(ended_at=now - timedelta(hours=4))
    assert verdict_of(run).outcome == "supported", "it drifted before both"


def test_a_control_is_compared_with_itself_across_its_own_change(
    hypothesis: Hypothesis, baseline: Run
) -> None:
    run = run_with(hypothesis, [120.0])
    now = timezone.now()
    for row, hours in ((baseline, 3), (run, 1)):
        Run.objects.filter(pk=row.pk).update(host="box", ended_at=now - timedelta(hours=hours))
        row.refresh_from_db()
    checkup.recheck(run)
    run.refresh_from_db()
    assert run.series_key
    series = WatchedSeries.objects.create(key=run.series_key, title="plain control")
    Alert.objects.create(series=series, kind="regression", run=run, sentence="slower")
    assert verdict_of(run).outcome == "supported"
