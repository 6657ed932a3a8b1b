# ruff: noqa: E501 - log lines stay in one piece
"""The fast reader gives what the slow one gives, on any mixture of layouts."""

import random
from datetime import UTC

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdebug.sglang import decode_block
from specdebug.sglang.decode_block import BlockParser
from specdebug.sglang.decode_table import COLUMNS
from specdebug.sglang.log_line import clean, decode_lines


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


def slow(lines: list[str]) -> tuple[list[tuple[object, ...]], int]:
    rows = []
    unread = 0
    for at, text in enumerate(lines):
        for found in decode_lines(clean(text), 100 + at):
            if found is None:
                unread += 1
                continue
            stamp = found.time.replace(tzinfo=UTC).timestamp() if found.time else None
            values = [getattr(found, column) for column in COLUMNS]
            rows.append(
                (found.line, found.rank, stamp, *[None if v is None else float(v) for v in values])
            )
    return rows, unread


def fast(lines: list[str], parser: BlockParser) -> tuple[list[tuple[object, ...]], int]:
    block = "".join(text + "\n" for text in lines).encode()
    batches, _, unread = parser.parse(block, np.arange(100, 100 + len(lines)))
    rows = []
    for rank, batch in batches:
        assert list(batch.lines) == sorted(batch.lines)
        for at, number in enumerate(batch.lines.tolist()):
            values = [batch.columns[column][at] for column in COLUMNS]
            stamp = batch.times[at]
            rows.append(
                (
                    number,
                    rank,
                    None if np.isnan(stamp) else float(stamp),
                    *[None if np.isnan(value) else float(value) for value in values],
                )
            )
    return sorted(rows, key=str), len(unread)


@given(st.lists(st.integers(0, 7), min_size=1, max_size=40), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_fast_and_slow_reading_agree_to_the_last_bit(layouts: list[int], seed: int) -> None:
    rng = random.Random(seed)
    lines = [line(rng, layout) for layout in layouts]
    rows, unread = slow(lines)
    assert fast(lines, BlockParser()) == (sorted(rows, key=str), unread)


def test_plans_are_reused_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_block, "_MAX_PLANS", 2)
    rng = random.Random(1)
    parser = BlockParser()
    lines = [line(rng, layout) for layout in (0, 1, 2, 3) * 20]
    assert fast(lines, parser)[0] == sorted(slow(lines)[0], key=str)
    assert len(parser._plans) <= 2


def test_numbers_too_long_for_a_float_do_not_break_the_block() -> None:
    rng = random.Random(2)
    lines = [line(rng, 2) for _ in range(3)]
    lines.insert(1, lines[0].replace("#token: ", "#token: 123456789012345678"))
    rows, unread = fast(lines, BlockParser())
    assert (len(rows), unread) == (4, 0)


def test_a_missing_number_is_never_taken_from_its_neighbour() -> None:
    good = "Decode batch, #running-req: 1, #token: 22, accept len: 1.50, gen throughput (token/s): 9.00"
    bad = good.replace("#token: 22", "#token: ").replace("batch,", "batch, 7")
    rows, _ = fast([good, bad, good], BlockParser())
    assert [row[5] for row in rows if row[0] in (100, 102)] == [22.0, 22.0]
    assert rows == sorted(slow([good, bad, good])[0], key=str)


def test_graphs_of_equal_length_are_told_apart() -> None:
    base = "Decode batch, #running-req: 1, {} graph: True, gen throughput (token/s): 9.00"
    parser = BlockParser()
    block = "".join(base.format(kind) + "\n" for kind in ("cpu", "npu", "cpu")).encode()
    _, odd, _ = parser.parse(block, np.arange(1, 4))
    assert {found.line: found.extra["graph"] for found in odd} == {
        1: "cpu graph",
        2: "npu graph",
        3: "cpu graph",
    }


def test_an_impossible_date_gives_no_time() -> None:
    text = "[2026-13-45 10:00:00] Decode batch, #running-req: 1, gen throughput (token/s): 9.00"
    rows, unread = fast([text], BlockParser())
    assert (rows[0][2], unread) == (None, 0)
