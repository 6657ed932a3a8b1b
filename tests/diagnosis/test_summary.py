"""The five sentences and the causes behind them, from rows made here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specdebug.diagnosis.causes import bugs, rules_fired, rules_untried
from specdebug.diagnosis.facts import Measured
from specdebug.diagnosis.post_mortem import build_post_mortem
from specdebug.diagnosis.record import FindingRow, Record, RunRow, TurnRow
from specdebug.diagnosis.timeline import steps
from specdebug.diagnosis.verdicts import Goal


def run(label: str, order: float, tok_s: tuple[float, ...], spec: bool, **more: object) -> RunRow:
    figures = Measured(label, "t", speculative=spec, tok_s=tok_s, accept_len=1.6 if spec else None)
    return RunRow(label, f"title of {label}", order, figures, **more)  # type: ignore[arg-type]


@pytest.fixture
def record() -> Record:
    return Record(
        title="t",
        question="Is it faster",
        goal=Goal("tok_s", "beat-baseline"),
        runs=(
            run("R0", 1.0, (90.0, 91.0, 89.0), spec=False, is_baseline=True),
            run("R1", 2.0, (60.0, 61.0, 59.0), spec=True, shown=("draft-tokens-overridden",)),
            run("R2", 3.0, (50.0, 51.0, 49.0), spec=True, untried={"aux-layer-mismatch": "a log"}),
        ),
        findings=(
            FindingRow(
                "draft-tokens-overridden", "high", "certain", "16 became 2", "fixed", "R1", "R2"
            ),
            FindingRow("aux-layer-mismatch", "critical", "certain", "wrong", "open", "R1"),
            FindingRow("slower-than-baseline", "high", "certain", "slower", "open", "R1"),
        ),
    )


def said(record: Record) -> dict[str, str]:
    found = build_post_mortem(record).summary
    assert [s.lead for s in found] == ["Asked", "Found", "Fixed", "Open", "Goal"]
    return {s.lead: s.text for s in found}


def test_each_sentence_says_its_part(record: Record) -> None:
    told = said(record)
    assert told["Asked"] == "Is it faster."
    assert told["Found"].startswith(
        "2 runs with a draft made 50.0 to 60.0 tok/s against 90.0 without (R0, n = 3), "
        "2 of 2 shown to be slower, and the record names 2 causes: "
    )
    assert told["Fixed"] == (
        "Draft tokens replaced by num_steps + 1 (verified in R2); a verified fix is not a met goal."
    )
    assert told["Open"] == (
        "Draft is fed other layers than in training; beside one symptom of slowness or low "
        "acceptance; R2 could not judge it."
    )
    assert told["Goal"] == (
        "Not met: the best run, R1, has 60.0 of 90.0 tok/s (67 %), 30.0 short; the latest, R2, "
        "has 50.0 (56 %)."
    )


def test_a_met_goal_reads_as_one(record: Record) -> None:
    faster = run("R3", 4.0, (120.0, 121.0, 119.0), spec=True)
    told = said(replace(record, runs=(*record.runs, faster), findings=record.findings[:1]))
    assert told["Goal"].startswith("Met: the best run, R3, has 120.0 of 90.0 tok/s (133 %)")
    assert told["Open"] == "No critical or high finding is open."
    assert "not a met goal" not in told["Fixed"]


def test_what_is_not_known_is_said(record: Record) -> None:
    told = said(replace(record, runs=(), findings=()))
    assert told["Found"] == "Nothing has been measured yet, and no rule names a cause."
    assert told["Fixed"] == "Nothing has been fixed and verified yet."
    assert told["Goal"].startswith("How far it is cannot be said")
    only = said(replace(record, runs=record.runs[:1], findings=()))
    assert only["Found"].startswith("Only the baseline is measured")
    assert "no run yet" in only["Goal"]


def test_causes_come_before_symptoms_and_the_gravest_first(record: Record) -> None:
    assert [(b.code, b.cause) for b in bugs(record)] == [
        ("aux-layer-mismatch", True),
        ("draft-tokens-overridden", True),
        ("slower-than-baseline", False),
    ]


def test_a_bug_tells_its_life_and_who_could_not_judge_it(record: Record) -> None:
    turns = (
        TurnRow("opened", "R1"),
        TurnRow("seen", "R1"),
        TurnRow("seen", "R2"),
        TurnRow("set-aside", None, "ada"),
        TurnRow("reopened", None, "eve"),
    )
    row = replace(record.findings[2], turns=turns)
    (found,) = bugs(replace(record, findings=(row,)))
    assert found.life == (
        "opened by R1",
        "seen again in R1, R2",
        "set aside by ada",
        "reopened by eve",
    )
    assert bugs(record)[0].unjudged == ("R2: a log",)
    fixed = replace(record.findings[1], state="fixed", fixed_in="R2")
    assert bugs(replace(record, findings=(fixed,)))[0].unjudged == ()


def test_rules_are_listed_that_fired_and_that_no_draft_run_could_try(record: Record) -> None:
    (fired,) = rules_fired(record)
    assert (fired.code, fired.runs) == ("draft-tokens-overridden", ("R1",))
    # R1 could try it: nothing was missing there.
    assert rules_untried(record) == ()
    blind = tuple(replace(r, untried={"watchdog": "the server log"}) for r in record.runs)
    (untried,) = rules_untried(replace(record, runs=blind))
    assert (untried.code, untried.missing) == ("watchdog", "the server log")


def test_findings_of_one_run_are_one_step_and_a_fix_is_another(record: Record) -> None:
    told = [(s.kind, s.ref, s.happened) for s in steps(record)]
    assert ("finding", "R1", "Found in R1: 3 findings") in told
    assert ("fixed", "R2", "Fixed, verified in R2: one finding") in told
    kinds = [kind for kind, _, _ in told]
    assert kinds == ["run", "run", "finding", "run", "fixed"]
