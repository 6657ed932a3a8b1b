"""A log that says one thing without end: its repeats are counted and what else it says is read."""

import io
import random

import pytest

from specdebug.diagnosis.case import Input, build_case
from specdebug.sglang import logs
from specdebug.sglang.logs import LogReader, ServerLog, read_log

pytestmark = pytest.mark.usefixtures("both_ways")

DUMP = "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m', random_seed={})\n"
READY = "[2026-01-01 10:00:20] The server is fired up and ready to roll!\n"
REFUSED = "[2026-01-01 10:01:{:02d} TP0] ValueError: request {} is too long\n"
MEMORY = "[2026-01-01 10:02:00 TP0] torch.OutOfMemoryError: CUDA out of memory. Tried 2.00 GiB\n"
KILLED = "[2026-01-01 10:02:00] Rank 3 scheduler is dead. Please check the logs.\n"


def read(text: str) -> ServerLog:
    return read_log(io.StringIO(text))


def test_repeats_are_all_counted_and_the_first_are_kept_with_their_lines() -> None:
    log = read(DUMP + READY + "".join(REFUSED.format(n % 60, n) for n in range(3_000)))
    (boot,) = log.boots
    assert boot.event_counts["error-message"] == 3_000
    kept = [e for e in boot.events if e.kind == "error-message"]
    assert [e.line for e in kept] == list(range(3, 203))
    assert log.unknown_lines == 0
    assert log.problems == ()


def test_lines_that_differ_by_a_word_are_not_taken_for_repeats() -> None:
    noise = "".join(REFUSED.format(n % 60, n) for n in range(3_000))
    log = read(DUMP + READY + noise + MEMORY + noise + KILLED)
    (boot,) = log.boots
    assert boot.event_counts["error-message"] == 6_000
    assert [e.line for e in boot.events if e.kind == "out-of-memory"] == [3_003]
    assert [e.line for e in boot.events if e.kind == "child-died"] == [6_004]


def test_a_repeat_behind_a_new_start_is_an_event_of_that_start() -> None:
    noise = "".join(REFUSED.format(n % 60, n) for n in range(500))
    log = read(DUMP.format(1) + READY + noise + DUMP.format(2) + READY + noise)
    assert [b.event_counts["error-message"] for b in log.boots] == [500, 500]
    assert min(e.line for e in log.boots[1].events if e.kind == "error-message") == 505


def test_a_repeated_death_still_lets_a_pending_start_begin() -> None:
    trace = "[2026-01-01 10:03:00] Scheduler hit an exception: Traceback (most recent call last):\n"
    warned = "Max running requests is reset to 48 for speculative decoding.\n"
    log = read(DUMP + READY + trace * 300 + warned + trace)
    assert [b.start_line for b in log.boots] == [1, 303]


def word(n: int) -> str:
    return "".join(chr(97 + int(digit)) for digit in str(n))


def test_after_many_different_lines_of_trouble_a_death_is_still_found_and_it_is_said() -> None:
    noise = "".join(f"SomeError: {word(n)} went wrong\n" for n in range(51_000))
    text = DUMP + noise + MEMORY + DUMP + READY
    log = read(text)
    assert log.boots[0].event_counts["error-message"] == 50_000
    assert [e.line for e in log.boots[0].events if e.kind == "out-of-memory"] == [51_002]
    assert len(log.boots) == 2
    assert ["50,000" in said for _, said in log.problems] == [True]
    case = build_case([Input("server.log", text.encode())])
    assert "after 50,000 lines that may matter only starts" in case.inputs[0].summary
    assert "after" not in build_case([Input("a.log", (DUMP + READY).encode())]).inputs[0].summary


def test_endless_starts_end_in_bounded_memory_and_one_sentence() -> None:
    count = logs._KEPT_BOOTS
    log = read("".join(DUMP.format(n) + READY for n in range(count + 50)))
    assert len(log.boots) == count + 1
    assert log.total_lines == 2 * (count + 50)
    assert any("nothing more is read" in said for _, said in log.problems)
    assert len(read("".join(DUMP.format(n) + READY for n in range(50))).boots) == 50


DECODE = (
    "[2026-01-01 10:01:00 TP0] Decode batch, #running-req: 1, #token: {}, token usage: 0.01, "
    "accept len: 1.60, accept rate: 0.80, gen throughput (token/s): 56.80, #queue-req: 0\n"
)
GLUED = DECODE.rstrip("\n") + "KV cache pool is full. Retract requests. #retracted_reqs: 1\n"


def mixed(seed: int) -> list[str]:
    """Pieces of 1,500 lines: mostly one error, some decode lines, a start now and then."""
    chance = random.Random(seed)
    pieces = []
    for piece in range(12):
        lines = [REFUSED.format(n % 60, n) for n in range(1_500)]
        for at in chance.sample(range(1_500), 60):
            lines[at] = chance.choice([DECODE, GLUED, KILLED, MEMORY, "nothing\n"]).format(at)
        if piece % 5 == 4:
            lines[chance.randrange(1_500)] = DUMP.format(piece)
        pieces.append("".join(lines))
    return pieces


@pytest.mark.parametrize("seed", [1, 2])
def test_pieces_full_of_repeats_are_read_as_line_by_line(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def whole() -> ServerLog:
        reader = LogReader()
        for piece in mixed(seed):
            reader.feed(piece)
        return reader.close()

    fast = whole()
    monkeypatch.setattr(logs, "_MANY_REPEATS", 10**9)
    slow = whole()
    assert (fast.total_lines, fast.unknown_lines) == (slow.total_lines, slow.unknown_lines)
    assert len(fast.boots) == len(slow.boots) == 3
    for one, other in zip(fast.boots, slow.boots, strict=True):
        assert (one.start_line, one.end_line) == (other.start_line, other.end_line)
        assert one.event_counts == other.event_counts
        assert one.events == other.events
        assert [d.line for d in one.decode_lines()] == [d.line for d in other.decode_lines()]
