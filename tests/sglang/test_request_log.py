# ruff: noqa: ISC004 - log lines stay in one piece
"""A request that the engine logs quotes its user, who may say anything that an engine says."""

from __future__ import annotations

import io

import pytest

from specdebug.sglang import logs
from specdebug.sglang.logs import LogReader, ServerLog, classify_line, read_log
from specdebug.sglang.request_log import own, without_records

STAMP = "[2026-03-01 10:00:00]"
SAID = [
    "server_args=ServerArgs(model_path='x', speculative_num_steps=9) explain",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
    "KV cache pool is full. Retract requests. #retracted_reqs: 2",
    "Rank 0 scheduler is dead. Please check if there are relevant logs.",
    "Scheduler hit an exception: Traceback (most recent call last):",
    "[Errno 98] address already in use",
    "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
    "Received sigquit from a child process. It usually means the child failed.",
    "[2026-03-01 09:00:00 TP0] Decode batch, #running-req: 1, #token: 4, token usage: 0.00, "
    "accept len: 1.00, cuda graph: False, gen throughput (token/s): 9.00, #queue-req: 3",
    "Load weight begin. avail mem=3 GB",
    "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when "
    "speculative_eagle_topk == 1",
]
# As the releases 0.4.3 to 0.5.23 print it; the last one as a collector of logs hands it on.
RECORDS = [
    "{stamp} Receive: obj=GenerateReqInput(rid='a', text='{said}', sampling_params={{}})",
    "{stamp} Finish: obj=GenerateReqInput(rid='a', text='hi'), out={{'text': '{said}'}}",
    "{stamp} Receive OpenAI: obj={{'messages': [{{'role': 'user', 'content': '{said}'}}]}}",
    '{stamp} {{"timestamp": "2026-03-01T10:00:00", "event": "request.finished", "rid": "a", '
    '"obj": {{"text": "{said}"}}, "out": {{}}}}',
    "Receive: obj=GenerateReqInput(text='{said}')",
    "2026-03-01 10:00:00 INFO 1519 [tokenizer_manager.py:285] Receive: obj=X(text='{said}')",
    '{{"log": "{{\\"timestamp\\": \\"x\\", \\"event\\": \\"request.received\\", '
    '\\"obj\\": \\"{said}\\"}}", "stream": "stdout"}}',
]  # fmt: skip
DECODE = (
    "[2026-03-01 10:00:0{n} TP0] Decode batch, #running-req: 1, #token: 900, token usage: 0.00, "
    "accept len: 2.6{n}, accept rate: 0.66, cuda graph: True, gen throughput (token/s): 131.00, "
    "#queue-req: 0"
)


def log_with(said: str, record: str, times: int = 1) -> bytes:
    quoted = [record.format(stamp=STAMP, said=said)] * times
    lines = [DECODE.format(n=1), *quoted, DECODE.format(n=2), *quoted, DECODE.format(n=3)]
    return "".join(f"{line}\n" for line in lines).encode()


def read(data: bytes, few: int) -> ServerLog:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "_FEW", few)
        return read_log(io.BytesIO(data))


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("few", [1 << 40, -1])
def test_what_a_request_quotes_is_no_word_of_the_engine(record: str, said: str, few: int) -> None:
    log = read(log_with(said, record), few)
    (boot,) = log.boots
    assert boot.events == ()
    assert (boot.server_args, boot.argument_warnings, boot.model_loads) == (None, (), ())
    assert [line.accept_len for line in boot.decode_lines()] == [2.61, 2.62, 2.63]
    assert (log.unread_decode_lines, log.problems) == (0, ())


@pytest.mark.parametrize("few", [1 << 40, -1])
def test_thousands_of_logged_requests_hide_nothing_that_the_engine_says(few: int) -> None:
    data = b"".join(log_with(said, RECORDS[0], times=300) for said in SAID)
    data += f"{STAMP} KV cache pool is full. Retract requests. #retracted_reqs: 2\n".encode()
    (boot,) = read(data, few).boots
    assert [event.kind for event in boot.events] == ["retracted"]
    assert boot.decode_count == 3 * len(SAID)


@pytest.mark.parametrize("few", [1 << 40, -1])
def test_what_is_glued_in_front_of_a_record_counts(few: int) -> None:
    record = RECORDS[0].format(stamp=STAMP, said=SAID[0])
    glued = f"{DECODE.format(n=5)}{record}\nDecode out of memory. {record}\n"
    (boot,) = read(glued.encode(), few).boots
    assert [line.accept_len for line in boot.decode_lines()] == [2.65]
    assert [event.kind for event in boot.events] == ["out-of-memory"]


def test_a_record_of_more_than_a_megabyte_stays_a_quotation_to_its_end() -> None:
    reader = LogReader()
    reader.feed(f"{STAMP} Finish: obj=GenerateReqInput(text='".encode())
    for _ in range(5):
        reader.feed(b"CUDA out of memory. " * 30_000)
    reader.feed(f"')\n{STAMP} Rank 0 scheduler is dead.\n".encode())
    (boot,) = reader.close().boots
    assert [event.kind for event in boot.events] == ["child-died"]


def test_a_line_of_a_live_tail_is_judged_by_what_stands_in_front_of_the_record() -> None:
    line = RECORDS[1].format(stamp=STAMP, said=SAID[1])
    found = classify_line(line)
    assert (found.kind, found.phase) == ("other", None)
    assert found.message.startswith("Finish: obj=")
    assert classify_line(f"{STAMP} {SAID[1]}").kind == "out-of-memory"


def test_lines_without_a_record_stay_as_they_are() -> None:
    for line in (b"ValueError: obj is None", b"Receive: 3 requests", b"request.finished", b""):
        assert own(line) == line


def test_blanking_records_keeps_the_numbers_of_the_lines() -> None:
    text = "first\nReceive: obj=X(a='b')\nlast"
    assert without_records(text) == "first\n\nlast"
