"""Scanning finds exactly the lines that a slow look at every line finds."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdebug.sglang import block_scan
from specdebug.sglang.block_scan import BlockScanner, _newlines
from specdebug.sglang.log_events import LOOK
from specdebug.sglang.log_scan import LineScanner, Scan, Scanner

LINES = [
    b'[2026-01-01 10:00:00] INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK',
    b"[2026-01-01 10:00:00 TP0] Decode batch, #running-req: 1",
    b"[2026-01-01 10:00:00 DP10 TP10] Decode batch, #running-req: 1",
    b"[2026-01-01 10:00:00 TP0] Prefill batch, #new-seq: 1",
    b"2026-01-01 10:00:00 Decode batch. #running-req: 1",
    b"ValueError: no",
    b"[2026-01-01 10:00:00 TP0] Decode out of memory. Try to lower your batch size.",
    b"[2026-01-01 10:00:00 TP0] Prefill out of memory. Try to lower your batch size.",
    b"[2026-01-01 10:00:00] INFO scheduler.py:1: server_args=ServerArgs(a=1)",
    b"",
    b"nothing of interest] here",
    b"[2026-01-01 10:00:00 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1",
]


SCANNERS: list[type[Scanner]] = [LineScanner, BlockScanner]


def joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def marked(lines: list[bytes], starting: bool = True) -> list[int]:
    return [mark.at for mark in BlockScanner().scan(joined(lines), starting).marked()]


def check(lines: list[bytes], found: Scan) -> None:
    data = joined(lines)
    decodes = [at for at, line in enumerate(lines) if b"Decode batch" in line]
    prefills = [at for at, line in enumerate(lines) if b"Prefill batch" in line]
    assert (found.lines, found.decodes, found.prefills) == (
        len(lines),
        len(decodes),
        len(prefills),
    )
    taken = found.take(0, found.decodes, 1, None)
    assert list(taken.numbers) == [1 + at for at in decodes]
    assert b"".join(taken.texts) == joined([lines[at] for at in decodes])
    assert taken.size == sum(len(lines[at]) for at in decodes)
    marks = list(found.marked())
    assert [mark.at for mark in marks] == [
        at for at, line in enumerate(lines) if LOOK.search(line) and b"Decode batch" not in line
    ]
    for mark in marks:
        assert data[mark.start : mark.end] == lines[mark.at]
        assert mark.decodes == sum(at < mark.at for at in decodes)
        assert mark.prefills == sum(at < mark.at for at in prefills)


@given(st.lists(st.integers(0, len(LINES) - 1), min_size=1, max_size=400))
@settings(max_examples=50, deadline=None)
@pytest.mark.parametrize("scanner", SCANNERS)
def test_any_mixture_is_scanned_right(scanner: type[Scanner], kinds: list[int]) -> None:
    lines = [LINES[kind] for kind in kinds]
    check(lines, scanner().scan(joined(lines), starting=True))


@pytest.mark.parametrize("scanner", SCANNERS)
def test_lines_are_numbered_by_what_was_left_out(scanner: type[Scanner]) -> None:
    found = scanner().scan(joined([LINES[1], LINES[0], LINES[1]]), starting=True)
    assert list(found.take(0, 2, 10, [0, 3, 7]).numbers) == [10, 17]
    assert list(found.take(1, 2, 10, None).numbers) == [12]


def test_pieces_full_of_other_lines_are_searched_by_fixed_strings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(block_scan, "_FEW", 10)
    rng = random.Random(1)
    lines = [LINES[rng.randrange(len(LINES))] for _ in range(1000)]
    check(lines, BlockScanner().scan(joined(lines), starting=True))


def test_a_serving_piece_is_searched_for_trouble_only_when_it_shows_a_sign(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(block_scan, "_FEW", 10)
    quiet = [b"one of many lines of another program"] * 100 + [b"ValueError: alone"]
    assert marked(quiet, starting=False) == []
    loud = [*quiet, b"Traceback (most recent call last):"]
    assert marked(loud, starting=False) == [100]
    dump = [*quiet, b"server_args=ServerArgs(a=1)"]
    assert marked(dump, starting=False) == [100, 101]


@pytest.mark.parametrize("scanner", SCANNERS)
def test_an_event_glued_to_a_decode_line_is_looked_at_too(scanner: type[Scanner]) -> None:
    found = scanner().scan(joined([LINES[1], LINES[1] + LINES[-1]]), starting=True)
    assert found.decodes == 2
    assert [mark.at for mark in found.marked()] == [1]


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"12345678\n",
        b"1234567\n" * 3,
        b"a long enough line\n" * 50 + b"no end",
        b"a long enough line\n\n" * 50,
        b"\n" * 99,
        b"no newline at all, and more than eight bytes",
        b"",
    ],
)
def test_newlines_are_found_wherever_they_stand(data: bytes) -> None:
    assert _newlines(data).tolist() == [at for at, byte in enumerate(data) if byte == 10]
