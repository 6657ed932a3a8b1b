"""The growing log and the line that tells why it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers import tail
from workers.tail import Tail, last_lines, why_it_ended

SHAPES = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (23x128 and 192x64)"

AT = "[2026-11-29 12:06:07]"
IN_USE = (
    "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): "
    "address already in use"
)


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    following = Tail(log)
    assert list(following.lines()) == []  # not there yet
    log.write_bytes(b"one\ntwo\nthr")
    assert list(following.lines()) == ["one", "two"]
    assert list(following.lines()) == []
    with log.open("ab") as file:
        file.write(b"ee\r\n")
    assert list(following.lines()) == ["three"]
    assert following.size == log.stat().st_size == 15


def test_a_character_torn_between_two_looks_is_one_character(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    following = Tail(log)
    log.write_bytes("ü".encode()[:1])
    assert list(following.lines()) == []
    log.write_bytes("ü\n".encode())
    assert list(following.lines()) == ["ü"]


def test_progress_bars_are_lines_of_their_own(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"shards: 1/3\rshards: 2/3\r\n")
    assert list(Tail(log).lines()) == ["shards: 1/3", "shards: 2/3"]


def test_the_last_words_without_an_end_are_not_lost(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"one\nkilled in the mid")
    following = Tail(log)
    assert list(following.lines()) == ["one"]
    assert following.rest() == "killed in the mid"
    assert following.rest() == ""


def test_an_endless_line_costs_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "READ_AT_ONCE", 4096)
    log = tmp_path / "server.log"
    log.write_bytes(b"x" * 1_000_000 + b"\nafter\n")
    following = Tail(log)
    long, after = following.lines()
    assert len(long) == tail.LONGEST_LINE
    assert after == "after"


def test_unreadable_bytes_are_read(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"\xff\xfe\x00 torn\n")
    assert list(Tail(log).lines()) == ["\ufffd\ufffd\x00 torn"]
    assert last_lines(log) == ["\ufffd\ufffd\x00 torn"]


def test_only_the_end_of_a_long_log_is_read_for_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"first\n" + b"line\n" * 1000 + b"last\n")
    lines = last_lines(log, 100)
    assert len(lines) <= 21
    assert lines[-1] == "last"
    assert last_lines(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], ""),
        (["Loading", "done"], "done"),
        (
            [
                f"{AT} Scheduler hit an exception: Traceback (most recent call last):",
                '  File "x.py", line 1, in f',
                SHAPES,
                "",
                f"{AT} SIGQUIT received. signum=None. It usually means one child failed.",
                "EOFError",
            ],
            SHAPES,
        ),
        (
            [
                "usage: launch_server.py [-h] --model-path MODEL_PATH",
                "launch_server.py: error: unrecognized arguments: --speculative-nums 3",
            ],
            "launch_server.py: error: unrecognized arguments: --speculative-nums 3",
        ),
        (
            [
                f"{AT} {IN_USE}",
                f"{AT} INFO:     Waiting for application shutdown.",
            ],
            IN_USE,
        ),
        (
            [
                "Traceback (most recent call last):",
                "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name'",
                "During handling of the above exception, another exception occurred:",
                "Traceback (most recent call last):",
                "OSError: Can't load the configuration of '/no/model'.",
            ],
            "OSError: Can't load the configuration of '/no/model'.",
        ),
        (
            [
                "[2026-11-29 12:00:00] Ignore import error when loading x: No module named 'vllm'",
                "[2026-11-29 12:00:01] Load weight begin. avail mem=21.25 GB",
            ],
            "Load weight begin. avail mem=21.25 GB",
        ),
        (
            ["x.py:1: UserWarning: old", "  warnings.warn(", "AssertionError"],
            "AssertionError",
        ),
    ],
    ids=[
        *("nothing", "no error", "a scheduler's exception", "a wrong flag", "a busy port"),
        *("a chain of exceptions", "harmless import errors", "a bare assertion"),
    ],
)
def test_the_reason_is_the_line_that_tells_most(lines: list[str], reason: str) -> None:
    assert why_it_ended(lines) == reason


def test_a_long_reason_is_cut(tmp_path: Path) -> None:
    assert len(why_it_ended(["ValueError: " + "x" * 5000])) == tail.QUOTED


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "m2_eagle3_aux_minus1_CRASH_server.log",
            "TypeError: unsupported operand type(s) for +: 'Tensor' and 'NoneType'",
        ),
        ("eagle3_0.5.10.post1_aux_default_6layers_shape_mismatch_server.log", SHAPES),
    ],
)
def test_real_crashes_are_explained_by_their_own_words(
    shared: Path, name: str, reason: str
) -> None:
    log = shared / "samples" / "sglang-0.5.10.post1-cpu" / name
    assert why_it_ended(last_lines(log)) == reason


def test_a_log_that_grows_while_it_is_read_does_not_hold_the_reader(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.symlink_to("/dev/full")  # reads as zeros without end
    assert list(Tail(log).lines()) == []
