# ruff: noqa: E501 - log lines stay in one piece
"""Reading in blocks gives what reading line by line gives, on any mixture of layouts."""

import math
import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdebug.sglang import decode_block
from specdebug.sglang.decode_block import BlockParser
from specdebug.sglang.decode_table import COLUMNS
from specdebug.sglang.log_scan import DecodeParser, LineParser


def line(rng: random.Random, layout: int) -> str:
    rank = rng.choice(["", " TP0", f" DP{rng.randrange(40)} TP{rng.randrange(40)}"])
    head = (
        f"[2026-0{rng.randrange(1, 9)}-1{rng.randrange(9)} 1{rng.randrange(9)}:05:0{layout}{rank}]"
    )
    figures = (
        f"#running-req: {rng.randrange(300)}, #token: {rng.randrange(10**7)}, "
        f"token usage: {rng.random():.2f}, accept len: {1 + rng.random() * 9:.2f}"
    )
    graph = f"cuda graph: {rng.random() < 0.5}"
    speed = f"gen throughput (token/s): {rng.random() * 10 ** rng.randrange(5):.2f}"
    queue = f"#queue-req: {rng.randrange(2000)}"
    return [
        f"{head} Decode batch. {figures}, {graph}, {speed}, {queue}, ",
        f"{head} Decode batch [{rng.randrange(999)}], {figures}, accept rate: 0.5, {speed}, {queue}",
        f"{head} Decode batch, {figures}, {graph}, {speed}, {queue}",
        f"{head} Decode batch, {figures}, cap len: {rng.randrange(9)}.5, {graph}, {speed}, {queue}",
        f"{head} Decode batch, {figures.replace('accept len: ', 'accept len: nan')}, {speed}",
        f"svc | 2026-01-02T03:04:05.678Z {head} Decode batch, {figures}, {speed}, {queue}\r",
        f"\x1b[3{layout}m{head}\x1b[0m Decode batch, {figures}, {speed}, {queue}",
        f"{head} Decode batch, #running-req: {rng.randrange(99)}, cut",
    ][layout]


def parsed(lines: list[str], parser: DecodeParser) -> tuple[list[tuple[object, ...]], int]:
    block = "".join(text + "\n" for text in lines).encode()
    batches, _, unread = parser.parse(block, array("q", range(100, 100 + len(lines))))
    rows: list[tuple[object, ...]] = []
    for rank, batch in batches:
        assert list(batch.lines) == sorted(batch.lines)
        values = [batch.times, *(batch.columns[column] for column in COLUMNS)]
        for number, *row in zip(batch.lines, *values, strict=True):
            rows.append((number, rank, *[None if math.isnan(value) else value for value in row]))
    return sorted(rows, key=str), len(unread)


def slow(lines: list[str]) -> tuple[list[tuple[object, ...]], int]:
    return parsed(lines, LineParser())


@given(st.lists(st.integers(0, 7), min_size=1, max_size=40), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_fast_and_slow_reading_agree_to_the_last_bit(layouts: list[int], seed: int) -> None:
    rng = random.Random(seed)
    lines = [line(rng, layout) for layout in layouts]
    assert parsed(lines, BlockParser()) == slow(lines)


@given(st.lists(st.integers(0, 7), min_size=1, max_size=40), st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_both_ways_of_reading_give_the_same_aggregates(layouts: list[int], seed: int) -> None:
    rng = random.Random(seed)
    block = "".join(line(rng, layout) + "\n" for layout in layouts).encode()
    numbers = array("q", range(1, len(layouts) + 1))
    one, other = (
        {
            (rank, column): (found.n, found.total, found.total_squares, found.low, found.high)
            for rank, rows in parser.parse(block, numbers)[0]
            for column, found in rows.aggregates.items()
        }
        for parser in (LineParser(), BlockParser())
    )
    assert other == {key: pytest.approx(value, rel=1e-12) for key, value in one.items()}


def test_plans_are_reused_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_block, "_MAX_PLANS", 2)
    rng = random.Random(1)
    parser = BlockParser()
    lines = [line(rng, layout) for layout in (0, 1, 2, 3) * 20]
    assert parsed(lines, parser)[0] == slow(lines)[0]
    assert len(parser._plans) <= 2


def test_numbers_too_long_for_a_float_do_not_break_the_block() -> None:
    rng = random.Random(2)
    lines = [line(rng, 2) for _ in range(3)]
    lines.insert(1, lines[0].replace("#token: ", "#token: 123456789012345678"))
    rows, unread = parsed(lines, BlockParser())
    assert (len(rows), unread) == (4, 0)


def test_a_missing_number_is_never_taken_from_its_neighbour() -> None:
    good = "Decode batch, #running-req: 1, #token: 22, accept len: 1.50, gen throughput (token/s): 9.00"
    bad = good.replace("#token: 22", "#token: ").replace("batch,", "batch, 7")
    rows, _ = parsed([good, bad, good], BlockParser())
    assert [row[5] for row in rows if row[0] in (100, 102)] == [22.0, 22.0]
    assert rows == slow([good, bad, good])[0]


def test_graphs_of_equal_length_are_told_apart() -> None:
    base = "Decode batch, #running-req: 1, {} graph: True, gen throughput (token/s): 9.00"
    parser = BlockParser()
    block = "".join(base.format(kind) + "\n" for kind in ("cpu", "npu", "cpu")).encode()
    _, odd, _ = parser.parse(block, array("q", [1, 2, 3]))
    assert {found.line: found.extra["graph"] for found in odd} == {
        1: "cpu graph",
        2: "npu graph",
        3: "cpu graph",
    }


def test_an_impossible_date_gives_no_time() -> None:
    text = "[2026-13-45 10:00:00] Decode batch, #running-req: 1, gen throughput (token/s): 9.00"
    rows, unread = parsed([text], BlockParser())
    assert (rows[0][2], unread) == (None, 0)
