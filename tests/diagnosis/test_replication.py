"""What single figures carry: the first against the last draft run too, and nothing from one run."""

from __future__ import annotations

from dataclasses import replace

from specdebug.diagnosis.facts import Measured
from specdebug.diagnosis.record import Record, RunRow
from specdebug.diagnosis.replication import replication
from specdebug.diagnosis.timeline import regressions
from specdebug.diagnosis.verdicts import Goal


def record(*figures: tuple[float, ...]) -> Record:
    runs = tuple(
        RunRow(
            f"R{n}",
            "",
            float(n),
            Measured(f"R{n}", f"R{n}", tok_s=tok_s, speculative=n > 0),
            is_baseline=n == 0,
            follows=f"R{n - 1}" if n else None,
        )
        for n, tok_s in enumerate(figures)
    )
    return Record("Slow", "Why?", Goal("tok_s", "beat-baseline"), runs=runs)


def said(found: Record) -> dict[str, str]:
    points = replication(found, regressions(found, 0.03), 0.03)
    return {point.key: point.text for point in points}


def test_single_figures_are_called_so_and_the_last_draft_run_is_held_against_the_first() -> None:
    points = said(record((90.0,), (56.8,), (46.7,), (54.8,)))
    assert "R3 against R1 -3.5 %: inconclusive" in points["replication"]
    assert "R3 against R1" not in points["regressions"]
    assert "R2 against R1 -17.8 %" in points["regressions"]


def test_repeated_figures_and_a_run_alone_give_no_such_point() -> None:
    repeated = record((90.0, 90.4, 89.8), (99.0, 99.3, 98.9))
    assert said(repeated) == {}
    assert said(replace(repeated, runs=repeated.runs[:1])) == {}
