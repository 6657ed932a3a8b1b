"""Frames hold what the rows hold, with missing figures as NaN."""

from __future__ import annotations

import pytest

from experiments import frames, lifecycle, queries
from experiments.models import DecodeSample, Investigation, Run


def test_times_count_from_the_first_line_and_lines_are_in_order() -> None:
    rows = [
        DecodeSample(line=9, t=1002.5, tok_s=50.0, accept_len=1.6, running=1, queue=0),
        DecodeSample(line=4, t=1000.0, tok_s=40.0, in_repeat=False),
    ]
    frame = frames.samples(rows)
    assert frame["line"].tolist() == [4, 9]
    assert frame["t"].tolist() == [0.0, 2.5]
    assert frame["in_repeat"].tolist() == [False, True]
    assert frame["accept_len"].isna().tolist() == [True, False]


def test_a_run_without_a_decode_line_gives_an_empty_frame() -> None:
    frame = frames.samples([])
    assert len(frame) == 0
    assert "tok_s" in frame.columns


def test_every_repeat_of_every_run_is_a_row(investigation: Investigation, baseline: Run) -> None:
    lifecycle.record_run(
        investigation=investigation,
        title="three",
        repeats=[lifecycle.RecordedRepeat(v, 1.5) for v in (50.0, 51.0)],
    )
    runs = queries.dossier(investigation).runs
    frame = frames.repeats(row for facts in runs for row in facts.repeats)
    assert frame["run"].tolist() == ["R0", "R1", "R1"]
    assert frame["tok_s"].tolist() == pytest.approx([90.0, 50.0, 51.0])
    assert frame["accept_len"].isna().tolist() == [True, False, False]
