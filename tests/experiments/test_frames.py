"""Frames hold what the rows hold, with missing figures as NaN."""

from __future__ import annotations

from experiments import frames
from experiments.models import DecodeSample, Run


def test_lines_are_in_the_order_of_runs_and_logs() -> None:
    later, first = Run(number=2), Run(number=0)
    rows = [
        DecodeSample(run=later, line=4, t=1000.0, tok_s=40.0, in_repeat=False),
        DecodeSample(run=first, line=9, t=1002.5, tok_s=50.0, accept_len=1.6, running=1, queue=0),
        DecodeSample(run=first, line=3, t=1000.0, tok_s=49.0),
    ]
    frame = frames.samples(rows)
    assert frame["run"].tolist() == ["R0", "R0", "R2"]
    assert frame["line"].tolist() == [3, 9, 4]
    assert frame["in_repeat"].tolist() == [True, True, False]
    assert frame["accept_len"].isna().tolist() == [True, False, True]


def test_no_decode_line_gives_an_empty_frame() -> None:
    frame = frames.samples([])
    assert len(frame) == 0
    assert "tok_s" in frame.columns
