"""Rows as pandas frames for charts; pandas is imported where it is used, it is slow to load."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from experiments.models import DecodeSample

if TYPE_CHECKING:
    import pandas as pd

_FIGURES = ("t", "tok_s", "accept_len", "accept_rate", "running", "queue")


def samples(rows: Iterable[DecodeSample]) -> pd.DataFrame:
    """Decode lines of any runs, each with its run fetched, in the order of runs and logs.

    Columns: run (its label), number, line, rank, t (seconds since the epoch, log clock), tok_s,
    accept_len, accept_rate, running, queue, in_repeat. Missing figures are NaN.
    """
    import pandas as pd

    frame = pd.DataFrame(
        [
            [row.run.label, row.run.number, row.line, row.rank]
            + [getattr(row, name) for name in _FIGURES]
            + [row.in_repeat]
            for row in rows
        ],
        columns=["run", "number", "line", "rank", *_FIGURES, "in_repeat"],
    )
    frame[list(_FIGURES)] = frame[list(_FIGURES)].astype(float)
    frame["in_repeat"] = frame["in_repeat"].astype(bool)
    return frame.sort_values(["number", "line"], ignore_index=True)
