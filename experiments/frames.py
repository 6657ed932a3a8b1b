"""Rows as pandas frames for charts; pandas is imported where it is used, it is slow to load."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from experiments.models import DecodeSample, Repeat

if TYPE_CHECKING:
    import pandas as pd


def samples(rows: Iterable[DecodeSample]) -> pd.DataFrame:
    """Decode lines in the order of the log.

    Columns: line, rank, t (seconds since the first line with a time), tok_s, accept_len,
    accept_rate, running, queue, in_repeat. Missing figures are NaN.
    """
    import pandas as pd

    columns = ["line", "rank", "t", "tok_s", "accept_len", "accept_rate", "running", "queue"]
    frame = pd.DataFrame(
        [[getattr(row, name) for name in columns] + [row.in_repeat] for row in rows],
        columns=[*columns, "in_repeat"],
    )
    figures = ["t", "tok_s", "accept_len", "accept_rate", "running", "queue"]
    frame[figures] = frame[figures].astype(float)
    frame["in_repeat"] = frame["in_repeat"].astype(bool)
    frame["t"] -= frame["t"].min()
    return frame.sort_values("line", ignore_index=True)


def repeats(rows: Iterable[Repeat]) -> pd.DataFrame:
    """Repeats of any runs, each with its run fetched, in the order given.

    Columns: run (its label), number, index, tok_s, accept_len, step_ms, verify_ct, recorded.
    """
    import pandas as pd

    columns = ["index", "tok_s", "accept_len", "step_ms", "verify_ct"]
    frame = pd.DataFrame(
        [
            [row.run.label, row.run.number]
            + [getattr(row, name) for name in columns]
            + [row.run.recorded]
            for row in rows
        ],
        columns=["run", "number", *columns, "recorded"],
    )
    figures = ["tok_s", "accept_len", "step_ms", "verify_ct"]
    frame[figures] = frame[figures].astype(float)
    return frame
