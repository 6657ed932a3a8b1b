"""Columns, aggregates and thinning."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.decode_line import DecodeLine
from specdebug.sglang.decode_table import Rows, TableBuilder

STAMP = datetime(2026, 1, 1)  # noqa: DTZ001


def rows(first: int, lengths: list[float]) -> Rows:
    return Rows.of(
        [
            DecodeLine(
                line, STAMP, "TP0", 1, None, None, None, length, None, graph=None, throughput=None
            )
            for line, length in enumerate(lengths, start=first)
        ]
    )


def test_a_row_comes_back_as_a_line_with_none_for_what_it_lacks() -> None:
    builder = TableBuilder("TP0")
    builder.add(rows(5, [1.6]))
    builder.extras[5] = {"cap len": "3"}
    (line,) = builder.table()
    assert (line.line, line.rank, line.running, line.accept_len) == (5, "TP0", 1, 1.6)
    assert (line.queue, line.graph, line.throughput) == (None, None, None)
    assert line.time == STAMP
    assert line.extra == {"cap len": "3"}


def test_columns_nobody_printed_have_no_aggregate() -> None:
    builder = TableBuilder("")
    builder.add(rows(1, [1.0, 2.0]))
    assert set(builder.table().aggregates) == {"accept_len", "running"}
    assert TableBuilder("").table().aggregates == {}


@given(st.lists(st.lists(st.floats(1, 9), min_size=1, max_size=30), min_size=1), st.integers(0, 4))
def test_thinning_keeps_every_strideth_row_and_exact_sums(
    batches: list[list[float]], halvings: int
) -> None:
    builder = TableBuilder("")
    at = 1
    for number, lengths in enumerate(batches):
        builder.add(rows(at, lengths))
        at += len(lengths)
        if number < halvings:
            builder.halve()
    table = builder.table()
    everything = [length for lengths in batches for length in lengths]
    assert table.count == len(everything)
    assert table.lines.tolist() == list(range(1, at, table.stride))
    assert table["accept_len"].tolist() == everything[:: table.stride]
    aggregate = table.aggregates["accept_len"]
    assert aggregate.mean == pytest.approx(sum(everything) / len(everything))
    assert (aggregate.low, aggregate.high) == (min(everything), max(everything))
    assert aggregate.total_squares == pytest.approx(sum(value**2 for value in everything))


def test_a_table_does_not_change_while_more_is_read() -> None:
    builder = TableBuilder("")
    builder.add(rows(1, [1.0, 2.0]))
    table = builder.table()
    builder.add(rows(3, [3.0]))
    builder.halve()
    assert (table.count, table["accept_len"].tolist()) == (2, [1.0, 2.0])
    assert builder.table()["accept_len"].tolist() == [1.0, 3.0]
