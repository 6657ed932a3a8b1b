import pytest

from specdebug.diagnosis.account import DraftRun
from specdebug.diagnosis.expected import expected_of
from specdebug.eagle.curves import curves_for, shipped_curves

R1 = DraftRun("R1", 1, (56.8,), 1.6)
R2 = DraftRun("R2", 15, (46.7,), 1.9)


def test_the_story_falls_short_of_its_training_accuracy() -> None:
    found = expected_of([R1, R2], val_accuracy=0.747)
    assert [round(e.value, 2) for e in found] == [1.75, 3.92]
    assert found[0].percent == pytest.approx(-8.4, abs=0.1)
    assert found[1].percent == pytest.approx(-51.5, abs=0.1)
    assert "guide" in found[0].assumes


def test_the_story_falls_short_of_the_public_curve() -> None:
    curves = curves_for(["kimi-k2.5"], shipped_curves(), "eagle3")
    found = [e for e in expected_of([R1, R2], curves=curves) if "thinking on" in e.assumes]
    assert [e.value for e in found] == [1.83, 3.77]
    assert found[0].percent == pytest.approx(-12.6, abs=0.1)
    assert "end of the curve at 8" in found[1].assumes
    assert "no proof" in found[0].assumes


def test_positions_of_another_depth_expect_this_one_with_a_range() -> None:
    deep = DraftRun("R4", 4, (60.0,), 2.4, conditional=(0.6, 0.7, 0.7, 0.7), verifies=3000)
    found = [e for e in expected_of([R1, deep]) if e.source == "positions"]
    assert [e.run for e in found] == ["R1"], "a run is not expected from itself"
    assert found[0].low is not None
    assert found[0].high is not None
    assert found[0].low < found[0].value < found[0].high
    assert "R4 (4)" in found[0].assumes


def test_plain_runs_and_unknown_lengths_expect_nothing() -> None:
    runs = [DraftRun("R0", 0, (90.0,)), DraftRun("R3", 15, (54.8,))]
    assert expected_of(runs, val_accuracy=0.7) == ()
    assert expected_of([R1]) == ()
