"""What must not matter does not: line ends, blank lines, prefixes, encodings, where pieces split.

Every kind of input is read through the front door, plain and changed; figures, findings and values
are the same, and whatever is cut out of a real input or put into it is read or refused in words.
"""

import gzip
import io
import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specdebug.diagnosis.diagnose import Diagnosis, diagnose, to_json
from specdebug.diagnosis.facts import Input
from specdebug.diagnosis.gather import build_case
from specdebug.sglang.logs import LogReader

DATA = Path(__file__).parent.parent / "data"
STORY = DATA / "cases" / "09-kimi-k25-story"


def lines(name: str, count: int) -> str:
    """The first lines of a captured file, the long dump of arguments included."""
    return "".join((DATA / "sglang" / name).read_text().splitlines(keepends=True)[:count])


HEADER = {"fc.weight": {"dtype": "BF16", "shape": [64, 192], "data_offsets": [0, 24576]}}
ONE_BATCH = {
    "run_name": "default", "batch_size": 1, "input_len": 512, "output_len": 64, "latency": 2.1,
    "ttft": 0.4, "input_throughput": 1280.0, "output_throughput": 37.6, "overall_throughput": 274.3,
    "last_gen_throughput": 38.1, "acc_length": 1.62,
}  # fmt: skip
SPECULATIVE = {
    "batch_size": 1, "steps": 3, "topk": 1, "num_draft_tokens": 4, "acc_length": 2.3,
    "step_time": 0.028, "speed": 82.1, "completion_tokens": 4096.0,
}  # fmt: skip
SAMPLES: dict[str, str] = {
    "server.log": lines("steps1.log", 60),
    "command.txt": (STORY / "command.txt").read_text(),
    "server_info.json": (DATA / "sglang" / "server_info.json").read_text(),
    "metrics.txt": (DATA / "sglang" / "metrics.txt").read_text(),
    "bench.jsonl": (DATA / "sglang" / "bench_steps1.jsonl").read_text(),
    "bench.txt": (DATA / "sglang" / "bench_steps1.txt").read_text(),
    "one_batch.jsonl": json.dumps(ONE_BATCH) + "\n",
    "speculative.jsonl": json.dumps(SPECULATIVE) + "\n",
    "generate.json": (DATA / "sglang" / "generate_steps1.json").read_text(),
    "vllm.log": "".join(
        f"INFO 01-19 11:3{n}:40 [metrics.py:1] SpecDecoding metrics: Mean acceptance length: 2.10, "
        "Accepted: 110 tokens, Drafted: 300 tokens, Per-position acceptance rate: 0.600, 0.300, "
        "0.200, Avg Draft acceptance rate: 36.7%\n"
        for n in range(5)
    ),
    "vllm_bench.txt": "============ Serving Benchmark Result ============\n"
    "Successful requests:                     16\n"
    "Output token throughput (tok/s):         56.80\n"
    "---------------Speculative Decoding---------------\n"
    "Acceptance rate (%):                     36.67\n"
    "Acceptance length:                       2.10\n"
    "Drafts:                                  1000\n"
    "==================================================\n",
    "vllm_metrics.txt": 'vllm:spec_decode_num_drafts_total{model_name="m"} 1000\n'
    'vllm:spec_decode_num_draft_tokens_total{model_name="m"} 3000\n'
    'vllm:spec_decode_num_accepted_tokens_total{model_name="m"} 1100\n',
    "draft_config.json": (STORY / "draft_config.json").read_text(),
    "target_config.json": (STORY / "target_config.json").read_text(),
    "header.json": json.dumps(HEADER),
    "notes.json": (STORY / "notes.json").read_text(),
    "table.txt": "| run | tok/s | accept len |\n|---|---|---|\n"
    "| baseline | 90 | - |\n| eagle | 56.8 | 1.6 |\n",
    "prose.txt": "Baseline without speculation gives 90 tok/s, with EAGLE-3 we get 56.8 tok/s.\n",
}
JSON = [name for name, text in SAMPLES.items() if text.lstrip()[:1] in "{["]


def read(name: str, data: bytes) -> Diagnosis:
    return diagnose(build_case([Input(name, data)]))


def said(found: Diagnosis, moved: int = 0) -> dict[str, Any]:
    """The answer without what names the file's form; evidence lines `moved` back."""
    out = to_json(found)
    for finding in out["findings"]:
        for evidence in finding["evidence"]:
            evidence["line"] = evidence["line"] and evidence["line"] - moved
    kept = {"values": out["values"], "findings": out["findings"], "missing": out["missing"]}
    # A run without a name is called after its line.
    return dict(json.loads(re.sub(r"\bline \d+", "line", json.dumps(kept))))


PLAIN = {name: said(read(name, text.encode())) for name, text in SAMPLES.items()}
FORMS: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "no newline at the end": lambda text: text.rstrip("\n").encode(),
    "blank lines at the end": lambda text: (text + "\n\n \n").encode(),
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "gzip": lambda text: gzip.compress(text.encode(), mtime=0),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_says_something(name: str) -> None:
    found = read(name, SAMPLES[name].encode())
    assert not found.unusable
    assert PLAIN[name]["values"] or PLAIN[name]["findings"] or name in ("header.json",)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SAMPLES)
def test_the_form_of_the_file_changes_no_word_of_the_answer(name: str, form: str) -> None:
    assert said(read(name, FORMS[form](SAMPLES[name]))) == PLAIN[name]


@pytest.mark.parametrize("blank", [1, 3])
@pytest.mark.parametrize("name", SAMPLES)
def test_blank_lines_in_front_move_the_evidence_and_nothing_else(name: str, blank: int) -> None:
    moved = said(read(name, ("\n" * blank + SAMPLES[name]).encode()), blank)
    if name in JSON:  # a value of JSON has keys for evidence, or the line it begins on
        moved["findings"] = [{**f, "evidence": None} for f in moved["findings"]]
        plain = [{**f, "evidence": None} for f in PLAIN[name]["findings"]]
        assert moved == {**PLAIN[name], "findings": plain}
    else:
        assert moved == PLAIN[name]


PREFIXES = ("sglang-1  | ", "> ", "\x1b[36msglang-1  |\x1b[0m ")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", ["server.log", "vllm.log"])
def test_a_prefix_of_every_line_changes_no_figure(name: str, prefix: str) -> None:
    text = "".join(prefix + line for line in SAMPLES[name].splitlines(keepends=True))
    found = said(read(name, text.encode()))
    assert found["values"] == PLAIN[name]["values"]
    assert [f["code"] for f in found["findings"]] == [f["code"] for f in PLAIN[name]["findings"]]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 4_000), min_size=1, max_size=40))
def test_where_a_log_is_split_on_its_way_does_not_matter(sizes: list[int]) -> None:
    data = SAMPLES["server.log"].encode()
    whole, split = LogReader("x"), LogReader("x")
    whole.feed(data)
    stream = io.BytesIO(data)
    for size in sizes:
        split.feed(stream.read(size))
    split.feed(stream.read())
    a, b = whole.close(), split.close()
    assert (a.total_lines, a.unknown_lines, a.problems) == (
        b.total_lines,
        b.unknown_lines,
        b.problems,
    )
    for one, other in zip(a.boots, b.boots, strict=True):
        assert (one.server_args, one.events) == (other.server_args, other.events)
        assert {r: list(t) for r, t in one.decode.items()} == {
            r: list(t) for r, t in other.decode.items()
        }


JUNK = st.one_of(st.text(max_size=30), st.sampled_from(["\x00", "}", "[[", "9" * 400, "nan", "\n"]))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(SAMPLES)), st.integers(0, 10**6), st.integers(0, 300), JUNK)
def test_a_real_input_that_was_damaged_is_read_or_refused_in_words(
    name: str, at: int, gone: int, junk: str
) -> None:
    text = SAMPLES[name]
    at %= len(text) + 1
    found = read(name, (text[:at] + junk + text[at + gone :]).encode("utf-8", "surrogatepass"))
    assert all(given.summary or given.unusable for given in found.inputs)
    json.dumps(to_json(found), allow_nan=False)


ANY = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(JSON), st.integers(0, 10**6), ANY)
def test_a_figure_of_any_other_type_is_left_out_and_crashes_nothing(
    name: str, which: int, other: Any
) -> None:
    data = json.loads(SAMPLES[name].splitlines()[0] if "jsonl" in name else SAMPLES[name])
    holder = data[0] if isinstance(data, list) else data
    keys = sorted(holder)
    holder[keys[which % len(keys)]] = other
    found = read(name, json.dumps(data).encode("utf-8", "surrogatepass"))
    assert all(given.summary or given.unusable for given in found.inputs)
    json.dumps(to_json(found), allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_a_safetensors_file_cut_anywhere_is_read_or_refused(tail: bytes, cut: int) -> None:
    raw = json.dumps(HEADER).encode()
    found = read("model.safetensors", (struct.pack("<Q", len(raw)) + raw + tail)[:cut])
    assert all(given.summary or given.unusable for given in found.inputs)
