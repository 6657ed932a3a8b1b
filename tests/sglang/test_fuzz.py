# ruff: noqa: E501, ISC004 - log lines stay in one piece
"""Bytes that nobody meant for a reader: no crash, no hang, whatever is cut, joined or damaged.

Real lines are mutated with a fixed seed; every reader gets as many bytes, and reports how many.
"""

import io
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from specdebug.sglang import (
    benches,
    flags,
    logs,
    meta_info,
    metrics,
    recognise,
    server_args,
    server_info,
    vllm,
)

DATA = Path(__file__).parent.parent / "data"
PIECE = 50_000
BYTES = 10_000_000  # through every reader: about a minute of one processor altogether
SECONDS_PER_MB = 60.0  # a hang, not a slow machine: some fifteen times what the slowest one needs

LINES = (
    "[2026-01-19 11:30:40 TP0] Decode batch, #running-req: 3, #token: 812, token usage: 0.01, "
    "accept len: 1.60, accept rate: 0.80, cuda graph: True, gen throughput (token/s): 56.80, "
    "#queue-req: 0",
    "[2026-01-19 11:30:40] server_args=ServerArgs(model_path='m', speculative_num_steps=3, x=[1])",
    "server_args={'model_path': 'm', 'speculative_eagle_topk': 1, 'nested': {'a': [1, (2,)]}}",
    "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when "
    "speculative_eagle_topk == 1",
    "python -m sglang.launch_server --model-path m --speculative-num-steps 1 \\",
    "docker run -e A=b lmsysorg/sglang:v0.5.9 bash -c 'sglang serve --tp 8 > log 2>&1'",
    '{"meta_info": {"completion_tokens": 96, "spec_verify_ct": 60, "spec_accept_histogram": [1]}}',
    '{"output_throughput": 56.8, "accept_length": 1.6, "duration": 112.4, "completed": 16}',
    '{"internal_states": [{"avg_spec_accept_length": 1.6}], "tp_size": 8, "version": "0.5.9"}',
    'sglang:spec_accept_length{model_name="m",tp_rank="0"} 1.6',
    "============ Serving Benchmark Result ============",
    "Output token throughput (tok/s):         56.80",
    "| run | tok/s | accept len |\n|---|---|---|\n| baseline | 90 | - |\n| eagle | 56.8 | 1.6 |",
    "INFO SpecDecoding metrics: Mean acceptance length: 1.60, Accepted: 60 tokens, "
    "Drafted: 100 tokens, Per-position acceptance rate: 0.600, 0.200, Avg Draft acceptance rate: 60%",
    "Loading safetensors checkpoint shards:  50% Completed | 4/8 [00:12<00:12,  3.10s/it]\r",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
)
SPICE = (
    *("\x00", "\r", "\r\n", "\x1b[31m", "\ufeff", "\u2028", "\ud7ff", "\U0001f600", "e\u0301" * 9),
    *("{" * 99, "[" * 99, "(" * 99, '["' * 40, "'" * 7, '"', "\\", "`", "$(", "<<E", "9" * 400),
    *("1e999", "nan", "-", "--", "=", ",", "|" * 60, ": " * 40, "\t", " " * 500, "%" * 30),
)


def damaged(rng: random.Random, size: int) -> str:
    """About `size` characters of real lines: cut, doubled, glued, spiced."""
    out: list[str] = []
    length = 0
    while length < size:
        line = rng.choice(LINES)
        for _ in range(rng.choice((0, 0, 1, 1, 3))):
            at = rng.randrange(len(line) + 1)
            what = rng.randrange(5)
            if what == 0:
                line = line[:at]
            elif what == 1:
                line = line[:at] + rng.choice(SPICE) + line[at:]
            elif what == 2:
                line = line[at:] + rng.choice(LINES)[:at]
            elif what == 3:
                line = line[:at] + line[at : at + 9] * rng.randrange(30) + line[at:]
            else:
                line = "".join(rng.choice(line) if rng.random() < 0.1 else c for c in line)
        line += rng.choice(("\n", "\n", "\n", "\n\n", "", "\r\n"))
        out.append(line)
        length += len(line)
    return "".join(out)[:size]


def raised(expected: type[Exception], read: Callable[[str], object]) -> Callable[[str], object]:
    """The reader, with the one refusal that it documents."""

    def reader(text: str) -> object:
        try:
            return read(text)
        except expected:
            return None

    return reader


def in_blocks(text: str) -> object:
    """A log as long ones are read, however short it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "_FEW", -1)
        return READERS["log"](text)


READERS: dict[str, Callable[[str], object]] = {
    "log": lambda text: logs.read_log(io.BytesIO(text.encode("utf-8", "surrogatepass"))),
    "log in blocks": in_blocks,
    "log line": lambda text: [logs.classify_line(line) for line in text.split("\n")],
    "command": flags.parse_command,
    "server_args": lambda text: [server_args.read_server_args(x) for x in text.split("\n")],
    "server_info": raised(ValueError, server_info.read_server_info),
    "metrics": metrics.read_metrics,
    "benchmarks": benches.read_benches,
    "answers": raised(ValueError, meta_info.read_meta_info),
    "vllm": vllm.read_vllm_log,
    "recognise": lambda text: recognise.recognise("paste", text),
}


@pytest.mark.parametrize("name", READERS)
def test_damaged_lines_neither_crash_nor_hang_a_reader(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    read = READERS[name]
    rng = random.Random(f"{name} 1")
    fed = 0
    begin = time.process_time()
    while fed < BYTES:
        text = damaged(rng, PIECE)
        try:
            read(text)
        except Exception as error:
            raise AssertionError(f"{name} after {fed} bytes, in a piece of seed 1") from error
        fed += len(text.encode("utf-8", "replace"))
    spent = time.process_time() - begin
    record_property("bytes", fed)
    assert fed >= BYTES
    assert spent < 2 + SECONDS_PER_MB * fed / 1e6, f"{spent:.1f} s for {fed} bytes"


ONE_SIDED = {
    "quotes": '"',
    "open lists": '["a",\n',
    "flags": "--a ",
    "assignments": "A=b\n",
    "variables": "V{n}=x; sglang serve --tp {n}\n",
    "arrays": "A=(\n",
    "blank lines": "\n",
    "brackets": "{{",
    "one word": "x",
}


def spent_on(shape: str, size: int) -> float:
    """Processor seconds of reading `size` characters of one thing, the better of two."""
    part = ONE_SIDED[shape]
    text = "sglang serve " + "".join(part.format(n=n) for n in range(size // len(part)))
    best = float("inf")
    for _ in range(2):
        begin = time.process_time()
        flags.parse_command(text[:size])
        best = min(best, time.process_time() - begin)
    return best


@pytest.mark.parametrize("shape", ONE_SIDED)
def test_four_times_the_text_takes_about_four_times_as_long(shape: str) -> None:
    for _ in range(3):  # what else the machine does may hit one of the two
        short, long = spent_on(shape, 25_000), spent_on(shape, 100_000)
        if long < 0.05 or long < 11 * short:
            return
    pytest.fail(f"{shape}: {short:.2f} s for 25 KB, {long:.2f} s for 100 KB")
