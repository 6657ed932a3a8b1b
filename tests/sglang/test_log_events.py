"""What single messages announce."""

import pytest

from specdebug.sglang.log_events import LOOK, NEEDLES, event_of, phase_of, release_named


def test_limits_of_a_start_are_read() -> None:
    found = event_of(
        "max_total_num_tokens=8192, chunked_prefill_size=2048, max_running_requests=48, "
        "context_len=2048, available_gpu_mem=1 GB"
    )
    assert found is not None
    assert found[0] == "startup-limits"
    assert found[1] == {
        "max_total_num_tokens": "8192",
        "max_running_requests": "48",
        "context_len": "2048",
    }


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Capture draft cuda graph begin. This can take", "capture-draft-begin"),
        ("Capture draft extend cuda graph end. Time elapsed: 2.48 s.", "capture-draft-end"),
        ("Capture cuda graph begin. This can take", "capture-begin"),
        ("Capture target CUDA graph end. Time elapsed: 20.77 s.", "capture-end"),
        ("Capture cuda graph failed: CUDA error", "capture-failed"),
        ("Exit code: -9", "child-died"),
        ("sglang.srt.errors.SomeError: bad", "error-message"),
    ],
)
def test_messages_have_one_kind(message: str, kind: str) -> None:
    found = event_of(message)
    assert found is not None
    assert found[0] == kind


def test_draft_and_target_capture_are_told_apart_with_their_seconds() -> None:
    found = event_of("Capture draft cuda graph end. Time elapsed: 5.63 s. mem usage=0.21 GB.")
    assert found == ("capture-draft-end", {"seconds": "5.63"})


def test_ordinary_messages_announce_nothing() -> None:
    for message in ("KV Cache is allocated. #tokens: 8192", "hello", "Errors are fine", ""):
        assert event_of(message) is None
        assert phase_of(message) is None


def test_every_needle_makes_a_line_be_looked_at() -> None:
    for needle in NEEDLES:
        assert LOOK.search(b"before " + needle + b" after")
    assert not LOOK.search(b"[2026-01-01 10:00:00] INFO:     127.0.0.1 GET /health 200 OK")


@pytest.mark.parametrize(
    ("message", "release"),
    [
        ("docker run lmsysorg/sglang:v0.5.9-cu128", "0.5.9"),
        ("sglang==0.5.10.post1", "0.5.10.post1"),
        ("SGLang version: 0.5.12", "0.5.12"),
        ("torch==2.9.1", None),
        ("sglang is nice", None),
    ],
)
def test_a_release_is_taken_only_where_it_is_the_engines(message: str, release: str | None) -> None:
    assert release_named(message) == release


def test_long_lines_are_searched_at_their_start_only() -> None:
    assert event_of("x" * 5000 + " CUDA out of memory") is None
