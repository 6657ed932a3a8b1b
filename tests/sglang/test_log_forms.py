"""Everything that may stand around an engine's line, in combination: the figures stay the same.

Prefixes, colour codes, progress bars and encodings are multiplied; field orders and the decode,
prefill and start-up lines of each release are read one by one.
"""

import gzip
import io
import itertools
from collections.abc import Callable

import pytest

from specdebug.sglang.log_line import take_apart
from specdebug.sglang.logs import DecodeLine, ServerLog, read_log

pytestmark = pytest.mark.usefixtures("both_ways")

HEAD = "[2025-05-01 10:00:00 TP0] "
FIELDS = (
    "#running-req: 3, #token: 1234, token usage: 0.01, accept len: 1.60, accept rate: 0.80, "
    "cuda graph: True, gen throughput (token/s): 56.80, #queue-req: 2"
)
ADJUSTED = (
    "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when "
    "speculative_eagle_topk == 1"
)
# What stands in front -> the rank it names.
PREFIXES = {
    HEAD: "TP0",
    "[2025-10-22 10:27:57 DP31 TP31 EP31] ": "DP31 TP31 EP31",
    "[2025-10-22 10:27:57 PP0 TP1 EP1] ": "PP0 TP1 EP1",
    "[2025-05-01 10:00:00.123 TP0] ": "TP0",
    "": "",
    "2025-12-04 20:35:53 INFO 1519 [file.py:287] ": "",
    "[2025-12-04 20:35:53] WARNING server_args.py:2341: ": "",
    f"svc-1  | {HEAD}": "TP0",
    f"sglang_1  | 2025-05-01T10:00:00.123Z {HEAD}": "TP0",
    f"> {HEAD}": "TP0",
    f"> > {HEAD}": "TP0",
    "2025-05-01T10:00:00Z ": "",
    f"2025-05-01T10:00:00.123456789Z {HEAD}": "TP0",
    f"2025-05-01T10:00:00.123456789Z stderr F {HEAD}": "TP0",
    f"[pod/sglang-0/main] {HEAD}": "TP0",
    f"May 01 10:00:00 host python[1234]: {HEAD}": "TP0",
    f"(SchedulerActor pid=1234, ip=10.0.0.3) {HEAD}": "TP0",
    f"server.log:412:{HEAD}": "TP0",
    f"  412\t{HEAD}": "TP0",
    f"- {HEAD}": "TP0",
}
COLOURS: dict[str, Callable[[str], str]] = {
    "none": lambda text: text,
    "escape byte": lambda text: f"\x1b[32m{text}\x1b[0m",
    "erase and bold": lambda text: f"\x1b[K\x1b[1;31m{text}\x1b[m",
    "escape byte lost": lambda text: f"[32m{text}[0m",
    "caret": lambda text: f"^[[32m{text}^[[0m",
    "picture of escape": lambda text: f"\u241b[32m{text}\u241b[0m",
    "hexadecimal": lambda text: f"\\x1b[32m{text}\\x1b[0m",
    "octal": lambda text: f"\\033[1;32m{text}\\033[0m",
    "JSON": lambda text: f"\\u001b[32m{text}\\u001b[0m",
}
BARS = (
    "",
    "Capturing batches (bs=1): 50%|#####     | 4/8 [00:01<00:01, 3.1it/s]",
    "100%|\u2588\u2588\u2588\u2588\u2588| 8/8 [00:04<00:00,  1.9it/s]",
    "\rLoading safetensors checkpoint shards:  50% Completed | 4/8 [00:01<00:01,  3.1it/s]\r",
)
ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "UTF-8": lambda text: text.encode(),
    "mark": lambda text: text.encode("utf-8-sig"),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 without mark": lambda text: text.encode("utf-16-le"),
    "gzip": lambda text: gzip.compress(text.encode(), mtime=0),
}


def decoded(log: ServerLog) -> list[DecodeLine]:
    assert log.unread_decode_lines == 0
    return [line for boot in log.boots for line in boot.decode_lines()]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_prefix_colour_bar_and_encoding_change_no_figure_in_combination(encoding: str) -> None:
    # Every prefix with every colour and bar, each of these in one of the six encodings by turns.
    turn = list(ENCODINGS).index(encoding)
    mixed = list(itertools.product(PREFIXES.items(), COLOURS, BARS))
    for (prefix, rank), colour, bar in mixed[turn :: len(ENCODINGS) - 1]:
        line = bar + COLOURS[colour](f"{prefix}Decode batch, {FIELDS}")
        log = read_log(io.BytesIO(ENCODINGS[encoding](f"{line}\n{line}\n")))
        read = decoded(log)
        assert [d.line for d in read] == [1, 2], line
        for d in read:
            figures = (d.running, d.tokens, d.accept_len, d.accept_rate, d.throughput, d.queue)
            assert figures == (3, 1234, 1.6, 0.8, 56.8, 2), line
            assert (d.rank, d.graph, d.extra) == (rank, True, {}), line


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_warning_is_known_behind_every_prefix_and_within_every_colour(
    prefix: str, colour: str
) -> None:
    assert take_apart(COLOURS[colour](prefix + ADJUSTED)).message == ADJUSTED


def test_colour_codes_of_a_sentence_about_them_are_its_own() -> None:
    assert take_apart("layers [2, 30, 58] of [61] and [0] stay").message == (
        "layers [2, 30, 58] of [61] and [0] stay"
    )


# A decode line as each release prints it -> (accept rate, graph, other fields, release between).
DECODE: dict[str, tuple[float | None, bool | None, dict[str, str], tuple[str, str]]] = {
    "Decode batch. #running-req: 1, #token: 1234, token usage: 0.01, accept len: 1.60, "
    "gen throughput (token/s): 56.80, #queue-req: 0": (None, None, {}, ("None", "0.5.3")),
    "Decode batch. #running-req: 1, #token: 1234, token usage: 0.01, accept len: 1.60, "
    "cuda graph: True, gen throughput (token/s): 56.80, #queue-req: 0": (
        *(None, True, {}),
        ("None", "0.5.3"),
    ),
    "Decode batch. #running-req: 1, #token: 1234, token usage: 0.01, accept len: 1.60, "
    "cuda graph: False, gen throughput (token/s): 56.80, #queue-req: 0, ": (
        *(None, False, {}),
        ("None", "0.5.3"),
    ),
    "Decode batch [812], #running-req: 1, #token: 1234, token usage: 0.01, accept len: 1.60, "
    "accept rate: 0.80, cuda graph: True, gen throughput (token/s): 56.80, #queue-req: 0, ": (
        *(0.8, True, {}),
        ("0.5.4", "0.5.8.post1"),
    ),
    "Decode batch, #running-req: 1, #token: 1234, token usage: 0.01, accept len: 1.60, "
    "accept rate: 0.80, cuda graph: True, gen throughput (token/s): 56.80, #queue-req: 0, ": (
        *(0.8, True, {}),
        ("0.5.4", "0.5.8.post1"),
    ),
    "Decode batch, #running-req: 1, #token: 1234, token usage: 0.01, accept len: 1.60, "
    "accept rate: 0.80, npu graph: False, gen throughput (token/s): 56.80, #queue-req: 0": (
        *(0.8, False, {"graph": "npu graph"}),
        ("0.5.9", "None"),
    ),
    "Decode batch, #running-req: 1, #token: 1234, token usage: 0.01, accept len: 1.60, "
    "accept rate: 0.80, cpu graph: True, gen throughput (token/s): 56.80, #queue-req: 0": (
        *(0.8, True, {"graph": "cpu graph"}),
        ("0.5.9", "None"),
    ),
    "Decode batch, #running-req: 1, #full token: 1234, full token usage: 0.01, #swa token: 90, "
    "swa token usage: 0.30, accept len: 1.60, accept rate: 0.80, cuda graph: True, "
    "gen throughput (token/s): 56.80, #queue-req: 0": (
        *(0.8, True, {"#swa token": "90", "swa token usage": "0.30"}),
        ("0.5.9", "None"),
    ),
    "Decode batch, #running-req: 1, #token: 1234, token usage: 0.01, mamba num: 3, "
    "mamba usage: 0.20, accept len: 1.60, accept rate: 0.80, cuda graph: True, "
    "gen throughput (token/s): 56.80, #queue-req: 0": (
        *(0.8, True, {"mamba num": "3", "mamba usage": "0.20"}),
        ("0.5.9", "None"),
    ),
    "Decode batch, #running-req: 1, #token: 1234, token usage: 0.01, accept len: 1.60, "
    "accept rate: 0.80, pre-allocated usage: 0.40, #prealloc-req: 7, #transfer-req: 8, "
    "#retracted-req: 9, cuda graph: True, gen throughput (token/s): 56.80, #queue-req: 0, ": (
        0.8,
        True,
        {
            "pre-allocated usage": "0.40",
            "#prealloc-req": "7",
            "#transfer-req": "8",
            "#retracted-req": "9",
        },
        ("0.5.4", "0.5.8.post1"),
    ),
    "Decode batch, #running-req: 1, #token: 1234, token usage: 0.01, accept len: 1.60, "
    "accept rate: 0.80, cap len: 2.10, block accept len: 1.90, cuda graph: True, "
    "gen throughput (token/s): 56.80, #queue-req: 0, est. decode TFLOPS/s (per GPU): 12.30, "
    "est. read BW (GB/s per GPU): 900.10, fwd occupancy: 91.2%": (
        0.8,
        True,
        {
            "cap len": "2.10",
            "block accept len": "1.90",
            "est. decode TFLOPS/s (per GPU)": "12.30",
            "est. read BW (GB/s per GPU)": "900.10",
            "fwd occupancy": "91.2%",
        },
        ("0.5.16", "None"),
    ),
    # Nobody prints this order; no release is bound to the one that it prints.
    "Decode batch, gen throughput (token/s): 56.80, #queue-req: 0, accept rate: 0.80, "
    "cuda graph: True, accept len: 1.60, token usage: 0.01, #token: 1234, #running-req: 1": (
        *(0.8, True, {}),
        ("0.5.4", "None"),
    ),
}


@pytest.mark.parametrize("text", DECODE)
def test_the_decode_line_of_every_release_gives_the_same_figures(text: str) -> None:
    rate, graph, extra, between = DECODE[text]
    log = read_log(io.StringIO(f"{HEAD}{text}\n" * 40))
    read = decoded(log)
    assert len(read) == 40
    for d in read:
        assert (d.running, d.tokens, d.token_usage, d.queue) == (1, 1234, 0.01, 0)
        assert (d.accept_len, d.accept_rate, d.throughput) == (1.6, rate, 56.8)
        assert (d.graph, d.extra) == (graph, extra)
    assert tuple(map(str, log.boots[0].release_between)) == between


@pytest.mark.parametrize(
    "text",
    [
        "Prefill batch. #new-seq: 1, #new-token: 9, #cached-token: 0, #queue-req: 0",
        "Prefill batch, #new-seq: 1, #new-token: 9, #cached-token: 0, token usage: 0.00, ",
        "Prefill batch [7], #new-seq: 1, #new-token: 9, #cached-token: 0, token usage: 0.00, ",
        "Prefill batch, #new-seq: 1, #pending-token: 0, input throughput (token/s): 120.50",
    ],
)
def test_a_prefill_line_of_any_release_is_counted_and_is_no_decode_line(text: str) -> None:
    log = read_log(io.StringIO(f"{HEAD}{text}\n" * 3 + f"{HEAD}Decode batch, {FIELDS}\n"))
    assert log.boots[0].prefill_lines == 3
    assert (len(decoded(log)), log.unknown_lines) == (1, 0)


# A line of the start or of trouble as the engine prints it -> the event it is.
EVENTS = {
    "Capture cuda graph begin. This can take up to several minutes. avail mem=9.3 GB": (
        "capture-begin"
    ),
    "Capture cuda graph end. Time elapsed: 9.30 s. mem usage=1.10 GB.": "capture-end",
    "Capture decode CUDA graph begin. avail mem=9.3 GB": "capture-begin",
    "Capture draft cuda graph begin. This can take up to several minutes.": "capture-draft-begin",
    "Capture draft cuda graph end. Time elapsed: 3.10 s.": "capture-draft-end",
    "Capture draft extend cuda graph begin. This can take a while.": "capture-draft-begin",
    "Capture draft extend CUDA graph end. Time elapsed: 2.10 s.": "capture-draft-end",
    "max_total_num_tokens=9000, chunked_prefill_size=8192, max_prefill_tokens=16384, "
    "max_running_requests=48, context_len=4096, available_gpu_mem=5.10 GB": "startup-limits",
    "The server is fired up and ready to roll!": "ready",
    "Scheduler hit an exception: Traceback (most recent call last):": "exception",
    "Received sigquit from a child process. It usually means the child failed.": "child-died",
    "Rank 3 scheduler is dead. Please check if there are relevant logs.": "child-died",
    "Exit code: -9": "child-died",
    "Not enough memory. Please try to increase --mem-fraction-static.": "out-of-memory",
    "Capture cuda graph failed: CUDA error: invalid argument": "capture-failed",
    "Prefill out of memory. Try to lower your batch size.": "out-of-memory",
    "Decode out of memory. Try to lower your batch size.": "out-of-memory",
    "KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_tokens_gained: 100, "
    "#new_token_ratio: 0.5 -> 0.7": "retracted",
    "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)": "watchdog",
    "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.": (
        "health-check-failed"
    ),
    "RuntimeError: captured 2 of 3 aux hidden states": "aux-capture",
    "Initialization failed. warmup error: timed out": "warmup-failed",
}


@pytest.mark.parametrize("text", EVENTS)
def test_what_the_engine_prints_of_start_and_trouble_is_an_event_of_its_kind(text: str) -> None:
    for prefix in (HEAD, f"svc-1  | \x1b[33m{HEAD}", BARS[1] + HEAD):
        log = read_log(io.StringIO(f"{prefix}{text}\n"))
        assert [e.kind for b in log.boots for e in b.events] == [EVENTS[text]], prefix
