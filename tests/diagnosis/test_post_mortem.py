"""The story's four figures must yield its report; other figures must yield another one."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specdebug.diagnosis.facts import Measured, Training
from specdebug.diagnosis.post_mortem import PostMortem, build_post_mortem
from specdebug.diagnosis.record import (
    ChangeRow,
    FindingRow,
    HypothesisRow,
    NoteRow,
    Record,
    RunRow,
)
from specdebug.diagnosis.timeline import regressions, timeline
from specdebug.diagnosis.verdicts import (
    AppliedVerdict,
    Goal,
    Prediction,
    prediction_verdict,
)

FIX_B = (
    ChangeRow("aux layers", [2, 30, 58], [-1, 2, 30], "draft-config"),
    ChangeRow("deepseek_v2.py", None, None, "patch", "captures the embedding for id -1"),
)


def story(rows: list[Measured]) -> Record:
    titles = ["No speculation", "Speculation on", "15 steps", "Other layers"]
    follows = [None, "R0", "R1", "R2"]
    runs = tuple(
        RunRow(
            row.label,
            title,
            float(i * 10),
            row,
            is_baseline=i == 0,
            follows=before,
            hypothesis="H1" if i == 2 else None,
            changes=FIX_B if i == 3 else (),
        )
        for i, (row, title, before) in enumerate(zip(rows, titles, follows, strict=True))
    )
    verdict = prediction_verdict(Prediction("tok_s", "R1", "up"), [46.7], [56.8])
    return Record(
        title="Kimi-K2.5 is slower with its draft",
        question="Does the draft make serving faster?",
        goal=Goal("tok_s", "beat-baseline"),
        runs=runs,
        hypotheses=(
            HypothesisRow(
                "H1",
                "The engine treats the draft tokens differently from what was asked",
                15.0,
                prediction="tok_s rises against R1",
                applied=AppliedVerdict("yes", "the log says 15 steps and 16 draft tokens"),
                outcome=verdict,
                run="R2",
            ),
        ),
        findings=(
            FindingRow(
                "draft-tokens-overridden", "high", "certain", "16 became 2", "fixed", "R1", "R2"
            ),
            FindingRow("aux-layer-mismatch", "critical", "certain", "other layers", "open", "R1"),
            FindingRow("step-overhead-unexplained", "high", "likely", "16 ms", "open", "R2"),
        ),
        notes=(NoteRow("observation", "The restart took ten minutes", 18.0, "graph capture"),),
    )


@pytest.fixture
def base(make: Any) -> Any:
    return make.case(
        requested={"model_path": "moonshotai/Kimi-K2.5", "speculative_algorithm": "EAGLE3"},
        draft_config=make.kimi_draft([-1, 2, 30]),
        target_config=make.kimi_target,
        training=Training(val_accuracy=0.747, features=("embed", 3, 31)),
        engine_version="0.5.9",
    )


@pytest.fixture
def report(make: Any, base: Any) -> PostMortem:
    return build_post_mortem(story(make.story_rows()), base)


def said(report: PostMortem, key: str) -> str:
    return next(point.text for point in report.insights if point.key == key)


def test_point_1_the_step_times(report: PostMortem) -> None:
    assert "R0 11.1 ms, R1 28.2 ms, R2 40.7 ms" in said(report, "step-time")


def test_point_2_the_ceiling_and_break_even(report: PostMortem) -> None:
    text = said(report, "ceiling")
    assert "R1 breaks even at an accept length of 2.54" in text
    assert "28.2 ms = 71 tok/s" in text
    assert "R2 breaks even at an accept length of 3.66" in text
    assert "with num_steps 1 even a perfect draft loses to 90" in text


def test_point_3_the_cost_of_a_draft_step_and_the_unexplained_overhead(report: PostMortem) -> None:
    text = said(report, "overhead")
    assert "One extra draft step costs 0.89 ms, so 15 of them are 13.4 ms" in text
    assert "16.2 ms above the plain step" in text
    assert "draft path without CUDA graphs, verify attention backend" in text


def test_point_4_acceptance_against_training(report: PostMortem) -> None:
    text = said(report, "training")
    assert "1.75 at 1 steps against 1.60" in text
    assert "3.92 at 15 steps against 1.90" in text
    assert "first position is accepted at 0.60, later ones at about 0.33" in text
    assert "recurrent" in text


def test_point_5_the_public_curve(report: PostMortem) -> None:
    text = said(report, "reference")
    assert "1.60 at 1 steps against 1.83: -13 %" in text
    assert "1.90 at 15 steps against 3.77 (end of the curve): -50 %" in text
    assert "no proof" in text


def test_point_6_the_window_from_one_line(report: PostMortem) -> None:
    assert "R1: length 1.6 with rate 0.8 means 2 if" in said(report, "window")


def test_point_7_the_fix_is_wrong_on_newer_releases(report: PostMortem) -> None:
    text = said(report, "layers")
    assert "0.5.13" in text
    assert "[0, 3, 31]" in text


def test_point_8_what_single_figures_carry(report: PostMortem) -> None:
    text = said(report, "replication")
    assert "R2 against R1 -17.8 %: regression" in text
    assert "R3 against R1 -3.5 %: inconclusive" in text
    assert "unreplicated" in text


def test_point_9_all_regressions_are_flagged(report: PostMortem) -> None:
    text = said(report, "regressions")
    for pair in (
        "R1 against R0 -36.9 %",
        "R2 against R0 -48.1 %",
        "R2 against R1 -17.8 %",
        "R3 against R0 -39.1 %",
    ):
        assert pair in text
    assert "R3 against R1" not in text


def test_losses_are_classified_by_what_lost(report: PostMortem) -> None:
    causes = {(c.run, c.against): c.cause for c in report.regressions if c.flagged}
    assert causes[("R2", "R1")] == "cost"
    assert causes[("R3", "R0")] == "unknown"


def test_the_advice_leads_with_the_two_open_questions(report: PostMortem) -> None:
    first, second = report.advice[:2]
    leads = first.action + second.action
    assert "accept length of R3" in leads
    assert "unexplained 16 ms" in leads
    worth = [a.worth for a in report.advice]
    assert worth == sorted(worth, reverse=True)


def test_the_investigation_stays_open(report: PostMortem) -> None:
    assert report.goal.met is False
    assert report.goal.ratio == pytest.approx(56.8 / 90)
    assert any("not met" in o for o in report.obstacles)
    assert any("aux-layer-mismatch" in o for o in report.obstacles)
    assert "a verified fix is not a met goal." in {s.lead: s.text for s in report.summary}["Fixed"]
    assert [b.code for b in report.open_bugs] == [
        "aux-layer-mismatch",
        "step-overhead-unexplained",
    ]


def test_the_gravest_obstacle_comes_right_after_the_goal(report: PostMortem) -> None:
    goal, first, *_ = report.obstacles
    assert goal.startswith("Goal not met")
    assert first.startswith("aux-layer-mismatch (critical) is open")


def test_the_gap_account_of_each_run_adds_up(report: PostMortem) -> None:
    assert [g.run for g in report.gaps] == ["R1", "R2"]
    for gap in report.gaps:
        assert 90 + sum(p.tok_s for p in gap.account.parts) == pytest.approx(
            gap.account.measured_tok_s
        )


def test_the_table_of_runs_leaves_unknown_figures_empty(report: PostMortem) -> None:
    rows = {r.label: r for r in report.runs}
    assert rows["R1"].break_even == pytest.approx(2.535, abs=0.001)
    assert rows["R3"].accept_len is None
    assert rows["R3"].step_ms is None
    assert rows["R3"].change_percent == pytest.approx(-39.1, abs=0.05)
    assert rows["R0"].step_ms == pytest.approx(11.11, abs=0.01)


def test_the_report_is_plain_json(report: PostMortem) -> None:
    again = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert again["goal"]["met"] is False
    assert again["steps"][0]["ref"] == "R0"


def test_the_same_rows_give_the_same_report(make: Any, base: Any) -> None:
    one, two = (build_post_mortem(story(make.story_rows()), base).as_dict() for _ in range(2))
    assert one == two


def test_other_figures_tell_another_story(make: Any) -> None:
    rows = [
        Measured("R0", "t", speculative=False, tok_s=(90.0, 91.0, 89.0)),
        Measured(
            "R1",
            "t",
            speculative=True,
            num_steps=1,
            topk=1,
            tok_s=(130.0, 131.0, 129.0),
            accept_len=1.7,
        ),
        Measured(
            "R2",
            "t",
            speculative=True,
            num_steps=3,
            topk=1,
            tok_s=(170.0, 171.0, 169.0),
            accept_len=2.4,
        ),
        Measured(
            "R3",
            "t",
            speculative=True,
            num_steps=5,
            topk=1,
            tok_s=(180.0, 181.0, 179.0),
            accept_len=2.8,
        ),
    ]
    record = replace(story(rows), findings=(), hypotheses=())
    report = build_post_mortem(record)
    keys = {point.key for point in report.insights}
    assert report.goal.met is True
    assert report.obstacles == ()
    assert not keys & {"replication", "regressions", "window", "layers", "reference"}
    assert "nothing explains" not in said(report, "overhead")
    assert "loses" not in said(report, "ceiling")
    assert not any("unexplained" in a.action for a in report.advice)


def test_an_empty_record_makes_an_honest_report() -> None:
    record = Record("t", "q", Goal("tok_s", "beat-baseline"), ())
    report = build_post_mortem(record)
    assert report.goal.met is None
    assert report.insights == ()
    assert report.runs == ()


def test_the_timeline_is_in_order_and_says_what_was_ruled_out(make: Any) -> None:
    entries = timeline(story(make.story_rows()))
    assert [e.order for e in entries] == sorted(e.order for e in entries)
    second = next(e for e in entries if e.ref == "R2")
    assert second.ruled_out.startswith("H1")
    assert "one figure" in second.showed
    third = next(e for e in entries if e.ref == "R3")
    assert "no accept length recorded" in third.showed
    assert "captures the embedding" in third.happened


def test_a_finding_follows_the_run_that_opened_it(make: Any) -> None:
    entries = timeline(story(make.story_rows()))
    refs = [e.ref for e in entries]
    assert refs.index("aux-layer-mismatch") > refs.index("R1")
    assert refs.index("aux-layer-mismatch") < refs.index("R2")


def test_a_failed_run_shows_its_reason_and_is_not_compared(make: Any) -> None:
    record = story(make.story_rows())
    failed = RunRow(
        "R4", "crash", 50.0, Measured("R4", "t"), state="failed", reason="out of memory"
    )
    record = replace(record, runs=(*record.runs, failed))
    entry = next(e for e in timeline(record) if e.ref == "R4")
    assert "out of memory" in entry.showed
    assert not [c for c in regressions(record) if c.run == "R4"]


def test_a_report_over_single_figures_needs_no_statistics_package() -> None:
    # Importing them takes seconds, which the first page shown would wait for.
    code = (
        "import sys; from specdebug.diagnosis.post_mortem import build_post_mortem; "
        "from specdebug.diagnosis.record import Record, RunRow; "
        "from specdebug.diagnosis.facts import Measured; "
        "from specdebug.diagnosis.verdicts import Goal; "
        "rows = [RunRow(f'R{i}', 't', i, Measured(f'R{i}', 's', speculative=i > 0, tok_s=(v,)), "
        "is_baseline=i == 0) for i, v in enumerate((90.0, 89.0, 60.0))]; "
        "build_post_mortem(Record('t', 'q', Goal('tok_s', 'beat-baseline'), tuple(rows))); "
        "print(sorted({'scipy', 'statsmodels', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == "[]"
