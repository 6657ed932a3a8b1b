# ruff: noqa: E501 - log lines stay in one piece
"""Single lines in every form they were seen in."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.log_line import DECODE, clean, decode_line, decode_lines, take_apart

TAIL = (
    "#running-req: 3, #token: 1234, token usage: 0.01, accept len: 1.60, accept rate: 0.80, "
    "cuda graph: True, gen throughput (token/s): 56.80, #queue-req: 2"
)
FORMS = {
    "0.4.6": (
        "[2025-05-01 10:00:00 TP0] Decode batch. #running-req: 3, #token: 1234, token usage: 0.01, "
        "accept len: 1.60, gen throughput (token/s): 56.80, #queue-req: 2"
    ),
    "trailing comma": f"[2025-05-01 10:00:00 TP0] Decode batch. {TAIL}, ",
    "numbered": f"[2025-05-01 10:00:00 TP0] Decode batch [812], {TAIL}, ",
    "0.5.9": f"[2025-05-01 10:00:00 TP0] Decode batch, {TAIL}",
    "milliseconds": f"[2025-05-01 10:00:00.250 TP0] Decode batch, {TAIL}",
    "no prefix": f"Decode batch, {TAIL}",
    "plain time": f"2025-05-01 10:00:00 INFO 1519 [scheduler_metrics_mixin.py:287] Decode batch, {TAIL}",
    "iso": f"2025-05-01T10:00:00.123456Z [2025-05-01 10:00:00 TP0] Decode batch, {TAIL}",
    "level": f"[2025-05-01 10:00:00 TP0] INFO scheduler.py:99: Decode batch, {TAIL}",
    "colour": f"\x1b[32m[2025-05-01 10:00:00 TP0]\x1b[0m Decode batch, {TAIL}\x1b[0m",
    "colour without escape": f"[32m[2025-05-01 10:00:00 TP0][0m Decode batch, {TAIL}",
    "reset behind the last figure": f"[32m[2025-05-01 10:00:00 TP0] Decode batch, {TAIL}[0m",
    "escape spelt out": f"^[[32m[2025-05-01 10:00:00 TP0] Decode batch, {TAIL}^[[0m",
    "compose": f"svc-1  | [2025-05-01 10:00:00 TP0] Decode batch, {TAIL}",
    "quoted": f"> > [2025-05-01 10:00:00 TP0] Decode batch, {TAIL}",
    "glued bar": (
        "Loading: 50%|#####     | 4/8 [00:01<00:01, 3.1it/s]"
        f"[2025-05-01 10:00:00 TP0] Decode batch, {TAIL}"
    ),
    "crlf": f"[2025-05-01 10:00:00 TP0] Decode batch, {TAIL}\r\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_decode_line_is_read(form: str) -> None:
    text = clean(FORMS[form])
    line = decode_line(text, text.index(DECODE), 7)
    assert line is not None
    assert (line.line, line.running, line.queue, line.throughput) == (7, 3, 2, 56.8)
    assert line.accept_len == 1.6
    assert line.accept_rate == (None if form == "0.4.6" else 0.8)
    assert line.graph is (None if form == "0.4.6" else True)
    assert line.extra == {}
    if form != "no prefix":
        assert line.time is not None
        assert line.time.replace(microsecond=0) == datetime(2025, 5, 1, 10, 0, 0)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("[2025-10-22 10:27:57 TP0]", "TP0"),
        ("[2025-10-22 10:27:57 DP31 TP31 EP31]", "DP31 TP31 EP31"),
        ("[2025-10-22 10:27:57 PP0 TP1 EP1]", "PP0 TP1 EP1"),
        ("[2025-10-22 10:27:57]", ""),
        ("[2025-10-22 10:27:57 DP0 ATTN_CP1 MOE_DP2 TP3]", "DP0 ATTN_CP1 MOE_DP2 TP3"),
    ],
)
def test_ranks_are_taken_from_the_prefix(prefix: str, rank: str) -> None:
    parts = take_apart(f"{prefix} Load weight begin. avail mem=1.0 GB")
    assert (parts.rank, parts.message) == (rank, "Load weight begin. avail mem=1.0 GB")
    assert parts.stamped


def test_a_bare_sentence_has_no_time_and_stays_whole() -> None:
    parts = take_apart("speculative_num_draft_tokens is adjusted")
    assert (parts.time, parts.stamped) == (None, False)
    assert parts.message == "speculative_num_draft_tokens is adjusted"


def test_level_and_origin_are_no_part_of_the_message() -> None:
    assert take_apart("[2025-10-22 10:27:57] WARNING server_args.py:2341: hello").message == "hello"
    assert take_apart("2025-12-04 20:35:53 INFO 1519 [a.py:287] hello").message == "hello"


def test_unknown_keys_and_other_graphs_are_kept() -> None:
    text = (
        "Decode batch, #running-req: 1, #full token: 10, full token usage: 0.20, #swa token: 5, "
        "swa token usage: 0.10, accept len: 2.00, npu graph: True, cap len: 3.5, "
        "gen throughput (token/s): 9.00, #queue-req: 0, fwd occupancy: 91.2%"
    )
    line = decode_line(text, 0, 1)
    assert line is not None
    assert (line.tokens, line.token_usage, line.graph) == (10, 0.2, True)
    assert line.extra == {
        "#swa token": "5",
        "swa token usage": "0.10",
        "cap len": "3.5",
        "fwd occupancy": "91.2%",
        "graph": "npu graph",
    }


def test_a_line_cut_before_its_throughput_is_not_read() -> None:
    assert decode_line("Decode batch, #running-req: 3, #token: 12, token us", 0, 1) is None


def test_values_that_are_no_numbers_are_absent() -> None:
    text = f"Decode batch, {TAIL}".replace("1.60", "nan").replace("0.80", "None")
    line = decode_line(text, 0, 1)
    assert line is not None
    assert (line.accept_len, line.accept_rate) == (None, None)


def test_two_messages_glued_together_are_two_lines() -> None:
    one = f"[2025-05-01 10:00:00 TP0] Decode batch, {TAIL}"
    two = one.replace("TP0", "TP1").replace("56.80", "50.00")
    found = decode_lines(one + two, 3)
    assert [(line.rank, line.throughput, line.queue) for line in found if line] == [
        ("TP0", 56.8, 2),
        ("TP1", 50.0, 2),
    ]


@given(st.text(max_size=300))
def test_of_any_line_the_message_is_a_part_and_a_decode_line_has_its_figures(text: str) -> None:
    assert take_apart(text).message in clean(text)
    found = decode_lines(DECODE + text, 1)
    assert len(found) == 1 + text.count(DECODE)
    for line in found:
        assert line is None or (line.running is not None and line.throughput is not None)


def test_a_figure_of_four_hundred_digits_is_no_figure() -> None:
    line = f"Decode batch, #running-req: {'9' * 400}, gen throughput (token/s): 56.80"
    assert decode_line(line, 0, 1) is None
    assert decode_line(line.replace("9" * 400, "9" * 12), 0, 1) is not None


def test_a_decode_message_ends_where_the_next_one_begins() -> None:
    one = "Decode batch, #running-req: {}, gen throughput (token/s): {}, "
    found = decode_lines(one.format(1, 5.0) + one.format(2, 7.0), 1)
    assert [(d.running, d.throughput) for d in found if d] == [(1, 5.0), (2, 7.0)]
