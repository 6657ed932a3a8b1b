"""Which columns of a table name its runs, and which what the runs were measured on.

"dataset | run | tok/s": a run is compared with the plain run on the same dataset, or with none.
"""

from __future__ import annotations

from collections.abc import Sequence

from specdebug.sglang.patterns import regex
from specdebug.sglang.run_names import Side, side_of, speaks_of_drafts, told_by_label
from specdebug.sglang.table_cells import value_of

# Title (lower case) and value of each column that says what a run was measured on.
Keys = tuple[tuple[str, str], ...]

_KEY = regex(
    r"(?i)data ?set|\btasks?\b|\bbench(?:mark)?s?\b|workload|\bprompts?\b|categor|\bdomain|\blang"
    r"|scenario|\bsubset|\bgpus?\b|hardware|\bdevice|\bcards?\b|\bmodel|\btarget\b|temperature"
    r"|\binput\b|\bisl\b|\bosl\b|\boutput len|context|\bseq|\btp\b|\bdp\b|quanti|\bdtype|precision"
    r"|数据集|任务|模型|显卡|场景|输入|上下文|温度|硬件"
)
# Figures, though their titles name what they are figures of: "GPU memory", "benchmark duration".
_FIGURE = regex(
    r"(?i)mem|util|time|latenc|duration|cost|price|score|accura|/|\bper\b|second|%|\bms\b|throughput"
    r"|power|number of|num[ _]|count|total|显存|时间|延迟|耗时|利用率|吞吐"
)
_NUMBER = regex(r"\d[\d.,]*")
_UNSAID = ("", "-", "--", "\u2013", "\u2014", "n/a", "none")


def label_column(names: Sequence[str | None], rows: Sequence[Sequence[str]]) -> int | None:
    """The column with the runs' names: of several the one whose cells call a run plain.

    names: the field of each column. None where no column has names.
    """
    first = names.index("label") if "label" in names else None
    open_columns = [at for at, name in enumerate(names) if name in (None, "label")]
    plain = [at for at in open_columns if "plain" in _sides(rows, at)]
    if len(plain) == 1:
        return plain[0]
    if first is None and names and names[0] is None and not _figures(rows):
        return 0
    return first


def _figures(rows: Sequence[Sequence[str]]) -> bool:
    firsts = [row[0] for row in rows if row and row[0]]
    return bool(firsts) and all(value_of(first) is not None for first in firsts)


def key_columns(
    header: Sequence[str],
    names: Sequence[str | None],
    rows: Sequence[Sequence[str]],
    label: int | None,
) -> tuple[int, ...]:
    """The columns that say what a run was measured on, by their titles or by their cells.

    A column of words with another title is one where several plain runs and a run with a draft
    share its values: notes on the runs are not shared.
    """
    sides = [
        side_of(row[label]) if label is not None and label < len(row) else None for row in rows
    ]
    return tuple(
        at
        for at, title in enumerate(header)
        if at != label and names[at] in (None, "label") and not speaks_of_drafts(title)
        if not _FIGURE.search(title)
        if _KEY.search(title) or _crossed(rows, sides, at)
    )


def keys_of(header: Sequence[str], cells: Sequence[str], columns: Sequence[int]) -> Keys:
    """What one row says in the key columns; a cell that says nothing is left out."""
    return tuple(
        (header[at].casefold(), cells[at].strip())
        for at in columns
        if at < len(cells) and cells[at].strip().casefold() not in _UNSAID
    )


def filled_down(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> list[list[str]]:
    """The rows with each empty key cell as the one above it: people write a dataset's name once."""
    out: list[list[str]] = []
    for row in rows:
        full = list(row)
        for at in columns:
            if out and at < len(full) and at < len(out[-1]) and not full[at].strip():
                full[at] = out[-1][at]
        out.append(full)
    return out


def same_keys(one: Keys, other: Keys) -> bool:
    """Whether two runs were measured on the same, as far as both say."""
    known = dict(other)
    return all(_same(value, known[title]) for title, value in one if title in known)


def row_keys(label: str | None) -> Keys:
    """The name of a row that holds several runs: what all of them were measured on."""
    if not label or side_of(label) is not None or told_by_label(label):
        return ()
    return (("row", label),)


_IMPLIED = ("row", "table")  # keys without a column of their own


def said(keys: Keys, name: str = "") -> str:
    """The values of keys in words, without those that the name says: "mt-bench, tp 8"."""
    words = frozenset(name.casefold().split())
    return ", ".join(
        f"{title} {value}" if is_number(value) else value
        for title, value in keys
        if title not in _IMPLIED and value.casefold() not in words
    )


def _same(one: str, other: str) -> bool:
    """The same words; or figures within 5 %, as two runs on the same prompts may count them."""
    if one.casefold() == other.casefold():
        return True
    if not (is_number(one) and is_number(other)):
        return False  # "8B" and "8M"
    a, b = value_of(one) or 0.0, value_of(other) or 0.0
    return a == b or (min(a, b) > 0 and max(a, b) <= 1.05 * min(a, b))


def is_number(text: str) -> bool:
    """Whether a cell is a figure without a unit."""
    return _NUMBER.fullmatch(text.strip()) is not None


def _sides(rows: Sequence[Sequence[str]], at: int) -> set[Side | None]:
    return {side_of(row[at]) for row in rows if at < len(row)}


def _crossed(rows: Sequence[Sequence[str]], sides: Sequence[Side | None], at: int) -> bool:
    of: dict[Side | None, set[str]] = {"plain": set(), "drafting": set(), None: set()}
    for row, side in zip(rows, sides, strict=True):
        cell = row[at].strip().casefold() if at < len(row) else ""
        if cell not in _UNSAID and value_of(cell) is None:
            of[side].add(cell)
    return len(of["plain"]) > 1 and bool(of["plain"] & of["drafting"])
