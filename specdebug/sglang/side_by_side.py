"""Tables with the speeds of several runs in one row: which columns are whose; it reads no cells.

"output tok/s without MTP | output tok/s with MTP | accept length" is two runs a row. Where titles
do not tell the runs apart, an accept length belongs to none of them, and that is said.
"""

from __future__ import annotations

from dataclasses import dataclass

from specdebug.sglang.bench_titles import fields_of, is_derived, run_words
from specdebug.sglang.run_names import Side, bare_side, side_of, speaks_of_drafts

# The figure that makes a column a run of its own: the first of these with two columns or more.
_OWN = ("output_tok_s", "total_tok_s", "mean_tpot_ms", "step_ms")
# Figures of drafting, which no plain run has.
_DRAFTED = ("accept_len", "accept_rate", "step_ms")
_ASKED = ("num_steps", "topk", "requested_draft_tokens", "draft_tokens")
_LOAD = ("label", "max_concurrency", "batch_size")


@dataclass(frozen=True)
class RunColumns:
    """One run of each row. fields: of each column the field it fills for this run, None for none.

    plain: whether it is the run without speculation, None where the titles do not tell.
    """

    title: str
    at: int
    plain: bool | None
    fields: tuple[str | None, ...]


@dataclass(frozen=True)
class SideBySide:
    """The runs of each row, and what has to be said about them."""

    runs: tuple[RunColumns, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Column:
    at: int
    title: str
    field: str | None
    side: Side | None
    words: frozenset[str]


def side_by_side(header: list[str], around: str = "") -> SideBySide | None:
    """The runs in each row of a table; None where a row is one run.

    around: the words above the table; where they speak of speculation, "off" and "on" are its.
    """
    columns = [
        _Column(at, title, field, side_of(title), run_words(title))
        for at, (title, field) in enumerate(zip(header, fields_of(header), strict=True))
    ]
    for own in _OWN:
        every = [c for c in columns if c.field == own]
        # "baseline tok/s/user | EAGLE3 tok/s/user": where all are shares, the shares are compared.
        speeds = [c for c in every if not is_derived(c.title)] or every
        if len(speeds) > 1:
            break
    else:
        return None
    plain = _told_apart(speeds, speaks_of_drafts(around))
    if len({s.words for s in speeds}) < 2 and set(plain.values()) != {True, False}:
        return None
    if set(plain.values()) == {None} and any(not s.words for s in speeds):
        return None  # the speed without a name is the run's, the others are more figures of it
    owners, remarks = _owners(speeds, columns, plain)
    runs = tuple(
        RunColumns(s.title, s.at, plain[s.at], _fields(s, columns, plain[s.at], owners))
        for s in speeds
    )
    blind = [s.title for s in speeds if plain[s.at] is None]
    if len(blind) > 1:
        listed = ", ".join(f"'{title}'" for title in blind)
        remarks = [f"{listed} cannot be told apart: nothing says which is the plain run", *remarks]
    elif blind:
        remarks = [f"nothing says whether '{blind[0]}' is a plain run", *remarks]
    return SideBySide(runs, tuple(remarks))


def _told_apart(speeds: list[_Column], switched: bool) -> dict[int, bool | None]:
    """For each speed whether it is the plain run's, None where that is not told."""
    known: dict[Side | None, bool | None] = {"plain": True, "drafting": False, None: None}
    plain = {s.at: known[s.side] for s in speeds}
    switched = switched or any(value is not None for value in plain.values())
    for speed in speeds:
        if plain[speed.at] is None and switched and len(speed.words) == 1:
            plain[speed.at] = known[bare_side(next(iter(speed.words)))]
    left = [s for s in speeds if plain[s.at] is None]
    if len(left) != 1 or len(left) == len(speeds):
        return plain
    (last,) = left
    drafting = [s for s in speeds if plain[s.at] is False]
    if not drafting:
        plain[last.at] = False  # beside baselines only: what they are there to be compared with
    elif len(drafting) == len(speeds) - 1 and all(last.words < s.words for s in drafting):
        plain[last.at] = True  # "TP8" beside "TP8 + EAGLE3": the draft is what is added
    return plain


def _owners(
    speeds: list[_Column], columns: list[_Column], plain: dict[int, bool | None]
) -> tuple[dict[int, int | None], list[str]]:
    """For each column of figures the speed it belongs to, None for none; and what is to be said."""
    owners: dict[int, int | None] = {}
    remarks: list[str] = []
    main = speeds[0].field
    drafting = [s for s in speeds if plain[s.at] is False]
    for column in columns:
        if column.field in (None, main, *_ASKED, *_LOAD):
            continue
        drafted = column.field in _DRAFTED
        named = _named_by(column, drafting if drafted else speeds)
        if not named and drafted and column.side != "plain" and None not in plain.values():
            named = drafting  # nobody else drafts
        owners[column.at] = named[0].at if len(named) == 1 else None
        if drafted and owners[column.at] is None and column.side != "plain":
            remarks.append(f"'{column.title}' is attached to no run: nothing says whose it is")
    return owners, remarks


def _named_by(column: _Column, speeds: list[_Column]) -> list[_Column]:
    """The speeds whose run a column's title names, by all its words or else by its side."""
    same = [s for s in speeds if column.words and s.words == column.words]
    return same or [s for s in speeds if column.side is not None and s.side == column.side]


def _fields(
    speed: _Column, columns: list[_Column], plain: bool | None, owners: dict[int, int | None]
) -> tuple[str | None, ...]:
    fields: list[str | None] = []
    for column in columns:
        mine = column.at == speed.at or owners.get(column.at) == speed.at
        asked = column.field in _ASKED and plain is False
        field = column.field if mine or asked or column.field in _LOAD else None
        if column.at == speed.at and field == "total_tok_s":
            # A table with one kind of speed only means what the server gives out.
            field = "output_tok_s"
        fields.append(field if field not in fields else None)
    return tuple(fields)
