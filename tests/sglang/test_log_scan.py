"""Scanning finds exactly the lines that a slow look at every line finds."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdebug.sglang import log_scan
from specdebug.sglang.log_events import LOOK
from specdebug.sglang.log_scan import Scan, Scanner, _newlines

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


def scan(lines: list[bytes], starting: bool = True) -> Scan:
    return Scanner().scan(b"".join(line + b"\n" for line in lines), starting)


def check(lines: list[bytes], found: Scan) -> None:
    assert found.decode.tolist() == [at for at, line in enumerate(lines) if b"Decode batch" in line]
    assert found.prefill.tolist() == [
        at for at, line in enumerate(lines) if b"Prefill batch" in line
    ]
    assert found.marked == [
        at for at, line in enumerate(lines) if LOOK.search(line) and b"Decode batch" not in line
    ]
    data = b"".join(line + b"\n" for line in lines)
    assert [data[s:e] for s, e in zip(found.starts, found.ends, strict=True)] == lines


@given(st.lists(st.integers(0, len(LINES) - 1), min_size=1, max_size=400))
@settings(max_examples=50, deadline=None)
def test_any_mixture_is_scanned_like_line_by_line(kinds: list[int]) -> None:
    lines = [LINES[kind] for kind in kinds]
    check(lines, scan(lines))


def test_pieces_full_of_other_lines_are_searched_by_fixed_strings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_scan, "_FEW", 10)
    rng = random.Random(1)
    lines = [LINES[rng.randrange(len(LINES))] for _ in range(1000)]
    check(lines, scan(lines))


def test_a_serving_piece_is_searched_for_trouble_only_when_it_shows_a_sign(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_scan, "_FEW", 10)
    quiet = [b"one of many lines of another program"] * 100 + [b"ValueError: alone"]
    assert scan(quiet, starting=False).marked == []
    loud = [*quiet, b"Traceback (most recent call last):"]
    assert scan(loud, starting=False).marked == [100]
    dump = [*quiet, b"server_args=ServerArgs(a=1)"]
    assert scan(dump, starting=False).marked == [100, 101]


def test_an_event_glued_to_a_decode_line_is_looked_at_too() -> None:
    glued = LINES[1] + LINES[-1]
    found = scan([LINES[1], glued])
    assert found.decode.tolist() == [0, 1]
    assert found.marked == [1]


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
