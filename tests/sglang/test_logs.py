# ruff: noqa: E501, ISC004 - log lines stay in one piece
"""Whole logs: real captures, boots, excerpts, encodings, growth, and files nobody should write."""

import bz2
import gzip
import io
import lzma
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdebug.sglang import logs
from specdebug.sglang.log_line import clean
from specdebug.sglang.logs import LogReader, ServerLog, classify_line, read_log
from specdebug.sglang.releases import Release

pytestmark = pytest.mark.usefixtures("both_ways")

DATA = Path(__file__).parents[1] / "data" / "sglang"
ADJUSTED = (
    "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when "
    "speculative_eagle_topk == 1"
)


def dump(steps: int = 3, **more: object) -> str:
    extra = "".join(f", {name}={value!r}" for name, value in more.items())
    return (
        f"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m', "
        f"speculative_num_steps={steps}{extra})"
    )


def start(rank: str = " TP0") -> list[str]:
    return [
        f"[2026-01-01 10:00:01{rank}] Load weight begin. avail mem=77.10 GB",
        f"[2026-01-01 10:00:09{rank}] Load weight end. elapsed=8.10 s, type=Qwen3ForCausalLM, "
        "dtype=torch.bfloat16, avail mem=41.20 GB, mem usage=35.90 GB.",
        f"[2026-01-01 10:00:10{rank}] Capture draft cuda graph begin. This can take a while.",
        f"[2026-01-01 10:00:12{rank}] Capture draft cuda graph end. Time elapsed: 2.50 s.",
        f"[2026-01-01 10:00:13{rank}] max_total_num_tokens=9000, chunked_prefill_size=8192, "
        "max_prefill_tokens=16384, max_running_requests=16, context_len=4096",
        "[2026-01-01 10:00:20] The server is fired up and ready to roll!",
    ]


def decode(at: int = 0, length: float = 1.6, rank: str = " TP0", speed: float = 56.8) -> str:
    return (
        f"[2026-01-01 10:01:{at % 60:02d}{rank}] Decode batch, #running-req: 1, #token: {100 + at}, "
        f"token usage: 0.01, accept len: {length:.2f}, accept rate: {length / 2:.2f}, "
        f"cuda graph: True, gen throughput (token/s): {speed:.2f}, #queue-req: 0"
    )


def read(*lines: str) -> ServerLog:
    return read_log(io.StringIO("\n".join(lines) + "\n"))


@pytest.mark.parametrize(
    ("name", "decodes", "rank"), [("steps1.log", 20, ""), ("tp2.log", 19, "TP0")]
)
def test_real_captures_are_read_without_one_unread_decode_line(
    name: str, decodes: int, rank: str
) -> None:
    log = read_log(DATA / name)
    assert log.unread_decode_lines == 0
    (boot,) = log.boots
    assert {rank: table.count for rank, table in boot.decode.items()} == {rank: decodes}
    assert boot.first("ready") is not None
    assert not log.is_excerpt
    raw = (DATA / name).read_bytes()
    assert log.total_lines == raw.count(b"\n")
    for line in boot.decode_lines():
        text = raw.split(b"\n")[line.line - 1].decode()
        assert f"gen throughput (token/s): {line.throughput:.2f}," in text
        assert f"accept len: {line.accept_len:.2f}," in text


def test_the_override_for_real_shows_in_warning_arguments_and_release() -> None:
    (boot,) = read_log(DATA / "steps1.log").boots
    rules = {warned.rule: warned.line for warned in boot.argument_warnings}
    assert rules["topk1_forces_draft_tokens"] == 12
    assert rules["overlap_disabled_unless_spec_v2"] == 11
    assert boot.server_args is not None
    assert boot.server_args["speculative_num_draft_tokens"] == 2
    assert boot.server_args["speculative_algorithm"] == "EAGLE3"
    assert boot.server_args_line == 16
    assert boot.release_between == (Release.parse("0.5.9"), Release.parse("0.5.10.post1"))
    assert [load.model_type for load in boot.model_loads] == [
        "LlamaForCausalLM",
        "LlamaForCausalLMEagle3",
    ]
    first = next(boot.decode_lines())
    assert (first.line, first.accept_len, first.graph) == (76, 1.7, False)
    assert first.extra == {"graph": "cpu graph"}


def test_real_crashes_end_in_events_with_their_figures() -> None:
    (boot,) = read_log(DATA / "aux_minus1_crash.log").boots
    assert boot.event_counts["aux-capture"] == 1
    assert boot.event_counts["exception"] == 1
    assert boot.event_counts["child-died"] == 1
    shape = read_log(DATA / "shape_mismatch.log").boots[0].first("aux-capture")
    assert shape is not None
    assert (shape.fields["got"], shape.fields["want"]) == ("128", "192")
    failed = read_log(DATA / "failed_start.log").boots[0].first("error-message")
    assert failed is not None
    assert failed.fields["error"] == "AssertionError"


def test_two_starts_in_one_file_are_two_boots_with_their_own_warnings() -> None:
    log = read(
        ADJUSTED, dump(1), *start(), decode(1), ADJUSTED, dump(3), *start(), decode(2), decode(3)
    )
    first, second = log.boots
    assert (first.start_line, first.end_line) == (1, 9)
    assert second.start_line == 10
    assert [boot.decode_count for boot in log.boots] == [1, 2]
    assert [len(boot.argument_warnings) for boot in log.boots] == [1, 1]
    assert [
        boot.server_args["speculative_num_steps"] for boot in log.boots if boot.server_args
    ] == [
        1,
        3,
    ]


def test_two_nodes_of_one_start_are_one_boot() -> None:
    log = read(dump(3, node_rank=0), dump(3, node_rank=1), *start(), decode(1))
    assert len(log.boots) == 1


def test_a_restart_without_dump_is_told_by_its_loading() -> None:
    log = read(dump(3), *start(), decode(1), *start(), decode(2))
    assert [boot.decode_count for boot in log.boots] == [1, 1]


def test_a_start_that_died_and_the_next_are_two_boots() -> None:
    died = (
        "[2026-01-01 10:00:03 TP0] Scheduler hit an exception: Traceback (most recent call last):"
    )
    log = read(dump(1), died, "ValueError: no", dump(2), *start(), decode(1))
    assert len(log.boots) == 2
    assert log.boots[0].event_counts["error-message"] == 1


def test_an_excerpt_is_marked_and_a_whole_log_is_not() -> None:
    assert read(decode(1), decode(2)).is_excerpt
    assert not read(dump(), *start(), decode(1)).is_excerpt


def test_a_warning_pasted_under_an_excerpt_makes_no_second_boot() -> None:
    log = read(decode(1), decode(2), ADJUSTED)
    (boot,) = log.boots
    assert [warned.rule for warned in boot.argument_warnings] == ["topk1_forces_draft_tokens"]


def test_a_warning_with_a_time_counts_in_front_of_the_dump_and_not_behind_it() -> None:
    stamped = f"[2026-01-01 10:00:00] WARNING server_args.py:2341: {ADJUSTED}"
    (before,) = read(stamped, dump(1), *start(), decode(1)).boots
    assert [warned.line for warned in before.argument_warnings] == [1]
    (behind,) = read(dump(1), stamped, *start(), decode(1)).boots
    assert behind.argument_warnings == ()


def test_prose_about_speculation_is_kept_only_in_front_of_the_dump() -> None:
    said = "The speculative worker will use 8 streams."
    (boot,) = read(said, dump(1), *start(), decode(1), said).boots
    assert [(warned.line, warned.rule) for warned in boot.argument_warnings] == [(1, None)]


def test_asking_for_the_result_early_loses_no_warning() -> None:
    reader = LogReader()
    reader.feed("\n".join([dump(1), *start(), decode(1), ADJUSTED]) + "\n")
    assert len(reader.result().boots[-1].argument_warnings) == 1
    reader.feed("\n".join([dump(3), *start(), decode(2)]) + "\n")
    first, second = reader.close().boots
    assert (first.argument_warnings, len(second.argument_warnings)) == ((), 1)


def test_a_log_of_something_else_has_no_boot() -> None:
    log = read("hello", "world")
    assert (log.boots, log.unknown_lines, log.total_lines) == ((), 2, 2)


def test_ranks_have_tables_of_their_own() -> None:
    lines = [decode(at, rank=f" DP{at % 4} TP{at % 4} EP{at % 4}") for at in range(40)]
    (boot,) = read(*lines).boots
    assert {rank: table.count for rank, table in boot.decode.items()} == {
        f"DP{n} TP{n} EP{n}": 10 for n in range(4)
    }
    assert [line.line for line in boot.decode_lines()] == list(range(1, 41))


def test_events_of_a_running_server_are_found_between_decode_lines() -> None:
    retracted = (
        "[2026-01-01 10:01:05 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, "
        "#new_tokens_gained: 30, #new_token_ratio: 0.4 -> 0.9"
    )
    log = read(dump(), *start(), *[decode(n) for n in range(50)], retracted, decode(51))
    event = log.boots[0].first("retracted")
    assert event is not None
    assert (event.line, event.rank, event.fields["requests"]) == (58, "TP0", "2")
    assert event.text == retracted


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "out-of-memory"),
        ("Not enough memory. Please try to increase --mem-fraction-static.", "out-of-memory"),
        (
            "[2026-01-01 10:00:00 TP0] Decode out of memory. Try to lower your batch",
            "out-of-memory",
        ),
        ("[2026-01-01 10:00:00] Rank 3 scheduler is dead. Please check", "child-died"),
        ("Received sigquit from a child process. It usually means the child failed.", "child-died"),
        ("Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", "watchdog"),
        ("[Errno 98] error while attempting to bind: address already in use", "port-in-use"),
        ("OSError: org/none is not a local folder and is not a valid model", "missing-model"),
        ("[2026-01-01 10:00:00] Health check failed. Server couldn't get", "health-check-failed"),
        ("Initialization failed. warmup error: Traceback", "warmup-failed"),
        ("[2026-01-01 10:00:00 TP0] Capture cuda graph failed: no", "capture-failed"),
        ("RuntimeError: captured 2 of 3 aux hidden states", "aux-capture"),
        ("Cuda graph is disabled because of using torch native", "graph-disabled"),
        ("[2026-01-01 10:00:00] SGLANG_SIMULATE_ACC_LEN=3.0 is set", "simulated-acceptance"),
    ],
)
def test_trouble_is_an_event_and_ordinary_lines_are_not(line: str, kind: str) -> None:
    (boot,) = read(line).boots
    assert kind in boot.event_counts
    quiet = read(dump(), *start(), decode(1)).boots[0]
    assert kind not in quiet.event_counts
    assert classify_line(line).kind == kind


def test_phases_follow_a_start() -> None:
    reader = LogReader()
    seen = [str(reader.phase)]
    for line in [
        dump(),
        "[2026-01-01 10:00:01 TP0] Load weight begin. avail mem=77.10 GB",
        "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:03, 1.2it/s]",
        "[2026-01-01 10:00:10 TP0] Capture cuda graph begin. This can take up to several minutes.",
        "Capturing batches (bs=8 avail_mem=9.1 GB):  50%|#####     | 2/4 [00:01<00:01]",
        *start()[4:],
        decode(1),
    ]:
        reader.feed(line + "\n")
        if str(reader.phase) != seen[-1]:
            seen.append(str(reader.phase))
    assert seen == [
        "starting",
        "loading weights",
        "loading weights 1/4",
        "capturing graphs",
        "capturing graphs 2/4",
        "warming up",
        "ready",
    ]


def test_a_progress_bar_without_line_end_moves_the_phase() -> None:
    reader = LogReader()
    reader.feed(dump() + "\n")
    reader.feed("Loading safetensors checkpoint shards:  75% Completed | 3/4 [00:00<00:03]\r")
    assert str(reader.phase) == "loading weights 3/4"
    reader.feed("x\n[2026-01-01 10:00:02] Scheduler hit an exception: Traceback\n")
    assert reader.phase.name == "failed"


def test_a_growing_log_waits_for_the_end_of_its_line() -> None:
    reader = LogReader()
    text = decode(1)
    reader.feed(text[:80])
    assert reader.result().boots == ()
    reader.feed(text[80:] + "\n")
    assert reader.result().boots[0].decode_count == 1
    reader.feed(decode(2))
    assert reader.close().boots[0].decode_count == 2
    with pytest.raises(ValueError, match="closed"):
        reader.feed("more")


@given(st.lists(st.integers(1, 400), max_size=30))
@settings(max_examples=25, deadline=None)
def test_how_a_log_is_cut_into_pieces_makes_no_difference(cuts: list[int]) -> None:
    text = "\n".join([ADJUSTED, dump(1), *start(), *[decode(n) for n in range(20)]]) + "\n"
    raw = text.encode()
    whole = read_log(io.BytesIO(raw))
    reader = LogReader("server.log")
    at = 0
    for size in cuts:
        reader.feed(raw[at : at + size])
        at += size
    reader.feed(raw[at:])
    found = reader.close()
    assert found.boots[0].events == whole.boots[0].events
    assert list(found.boots[0].decode_lines()) == list(whole.boots[0].decode_lines())
    assert (found.total_lines, found.unknown_lines) == (whole.total_lines, whole.unknown_lines)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_are_told_apart(encoding: str) -> None:
    text = "\r\n".join([ADJUSTED, dump(), *start(), decode(1)]) + "\r\n"
    (boot,) = read_log(io.BytesIO(text.encode(encoding))).boots
    assert (boot.decode_count, len(boot.argument_warnings)) == (1, 1)
    assert next(boot.decode_lines()).line == 9


def test_compressed_logs_are_read_and_broken_ones_named(tmp_path: Path) -> None:
    raw = ("\n".join([dump(), *start(), *[decode(n) for n in range(3000)]]) + "\n").encode()
    for name, packed in (
        ("a", gzip.compress(raw)),
        ("b", lzma.compress(raw)),
        ("c", bz2.compress(raw)),
    ):
        path = tmp_path / name
        path.write_bytes(packed)
        assert read_log(path).boots[0].decode_count == 3000
    cut = tmp_path / "cut"
    cut.write_bytes(gzip.compress(random.Random(1).randbytes(5_000_000) + raw)[: 3 << 20])
    assert any("breaks off" in message for _, message in read_log(cut).problems)
    cut.write_bytes(b"\x1f\x8bnothing of the kind")
    with pytest.raises(ValueError, match="broken"):
        read_log(cut)
    with pytest.raises(OSError, match="missing"):
        read_log(tmp_path / "missing")


def test_a_decode_line_that_cannot_be_read_is_counted_and_shown() -> None:
    log = read(decode(1), "[2026-01-01 10:00:00 TP0] Decode batch, #running-req: 1, cut", decode(2))
    assert log.unread_decode_lines == 1
    assert log.problems[0][0] == 2
    assert log.boots[0].decode_count == 2


def test_more_lines_than_are_kept_are_thinned_while_aggregates_stay_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "_KEPT_ROWS", 1000)
    lengths = [1 + (n % 100) / 100 for n in range(20_000)]
    (boot,) = read(*[decode(n, lengths[n]) for n in range(20_000)]).boots
    table = boot.decode["TP0"]
    assert (table.count, len(table) <= 1000, len(table) > 400) == (20_000, True, True)
    assert list(table.lines) == list(range(1, 20_001, table.stride))
    aggregate = table.aggregates["accept_len"]
    assert aggregate.n == 20_000
    assert aggregate.mean == pytest.approx(sum(lengths) / 20_000)
    assert (aggregate.low, aggregate.high) == (1.0, 1.99)


def test_the_dict_form_of_the_dump_dates_the_release() -> None:
    line = "[2026-10-01 10:00:00] server_args={'model_path': 'm', 'speculative_num_steps': 3}"
    (boot,) = read(line, *start()).boots
    assert boot.server_args == {"model_path": "m", "speculative_num_steps": 3}
    assert boot.release_between[0] == Release.parse("0.5.19")


def test_a_named_release_is_taken_and_a_contradiction_leaves_it_open() -> None:
    (boot,) = read("pip install sglang==0.5.9", dump(), *start()).boots
    assert boot.release == Release.parse("0.5.9")
    old = "[2026-01-01 10:00:00] Decode batch. #running-req: 1, gen throughput (token/s): 9.00"
    new = "Max running requests is reset to 48 for speculative decoding."
    (mixed,) = read(new, dump(), *start(), old).boots
    assert mixed.release_between == (None, None)


@pytest.mark.parametrize(
    "block",
    [
        b"x" * 4096,
        b"\rLoading checkpoint shards:  50% Completed | 4/8 ",
        b"Decode batch, #running-req: 1, ",
        b"Capture Capture draft cuda graph ",
        b"ServerArgs(a=1, b=[",
        b"ValueError: no\n",
        b"\n",
        b"\x00",
        b"server_args={'a': (((((((",
        b"[2026-01-01 10:00:00 TP0] ",
    ],
)
def test_pathological_files_end_in_bounded_time(block: bytes) -> None:
    begin = time.perf_counter()
    log = read_log(io.BytesIO(block * (1_300_000 // len(block))))
    assert time.perf_counter() - begin < 60
    assert log.total_bytes > 1_200_000


@given(st.binary(max_size=2000))
@settings(max_examples=100, deadline=None)
def test_whatever_bytes_come_all_are_counted_and_no_decode_line_is_invented(data: bytes) -> None:
    more = b"Decode batch" + data + b"\nserver_args=ServerArgs(" + data + b"\n"
    reader = LogReader()
    reader.feed(data)
    reader.feed(more)
    log = reader.close()
    assert log.total_bytes == len(data) + len(more)
    told = sum(boot.decode_count for boot in log.boots) + log.unread_decode_lines
    assert told <= 1 + 2 * data.count(b"Decode batch") + len(data)
    assert all(boot.start_line <= boot.end_line for boot in log.boots)


@given(st.text(max_size=300))
def test_any_line_is_of_one_kind_and_a_decode_line_comes_with_its_figures(text: str) -> None:
    for line in (text, "server_args=" + text):
        found = classify_line(line)
        assert (found.kind == "decode") == (found.decode is not None)
        assert found.message in clean(line)
