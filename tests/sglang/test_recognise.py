"""Files told by content; names mean nothing."""

import bz2
import gzip
import json
import lzma
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdebug.sglang.recognise import recognise

DATA = Path(__file__).parents[1] / "data" / "sglang"
HEADER = {"fc.weight": {"dtype": "BF16", "shape": [64, 192], "data_offsets": [0, 24576]}}
RAW_HEADER = json.dumps(HEADER).encode()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("steps1.log", "server-log"),
        ("tp2.log", "server-log"),
        ("aux_minus1_crash.log", "server-log"),
        ("failed_start.log", "server-log"),
        ("steps1.cmd", "command"),
        ("server_info.json", "server-info"),
        ("metrics.txt", "metrics"),
        ("generate_steps1.json", "generate-answers"),
        ("generate_plain.json", "generate-answers"),
        ("bench_steps1.jsonl", "bench"),
        ("bench_steps1.txt", "bench"),
    ],
)
def test_real_files_are_told_whatever_they_are_called(name: str, kind: str) -> None:
    content = (DATA / name).read_bytes()
    assert recognise("misleading.png", content).kind == kind
    assert recognise("x", gzip.compress(content)).kind == kind


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 64}, "draft-config"),
        ({"hidden_size": 64, "eagle_config": {}}, "draft-config"),
        ({"architectures": ["LlamaForCausalLM"], "hidden_size": 64}, "target-config"),
        ({"text_config": {"hidden_size": 64}}, "target-config"),
        (HEADER, "safetensors-header"),
        ({"training": {"val_accuracy": 0.7}}, "notes"),
        ({"engine_version": "0.5.9", "concurrency": 4}, "notes"),
        ({"tp_size": 8, "speculative_algorithm": None, "internal_states": []}, "server-info"),
        ({"output_throughput": 3.0, "duration": 1}, "bench"),
        ({"something": "else"}, "text"),
        ([1, 2, 3], "text"),
    ],
)
def test_json_is_told_by_its_keys(content: object, kind: str) -> None:
    assert recognise("a", json.dumps(content)).kind == kind
    assert recognise("a", json.dumps(content).encode("utf-16")).kind == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SpecDecoding metrics: Mean acceptance length: 1.8", "vllm-log"),
        ("[2026-01-01 10:00:00 TP0] Decode batch, #running-req: 1", "server-log"),
        ("Max running requests is reset to 48 for speculative decoding.", "server-log"),
        (
            "[2026-01-01 10:00:00] a\n[2026-01-01 10:00:01] b\n[2026-01-01 10:00:02] c\n",
            "server-log",
        ),
        ("python -m sglang.launch_server --model m", "command"),
        ("python -m sglang.bench_serving --num-prompts 3", "bench"),
        ("| run | tok/s | accept len |\n|---|---|---|\n| a | 5 | 1.5 |\n", "bench"),
        ("we saw 56.8 tok/s with accept length 1.6", "bench"),
        ("dear all, it is slow", "text"),
    ],
)
def test_text_is_told_by_what_stands_in_it(text: str, kind: str) -> None:
    assert recognise("a", text).kind == kind


def test_a_safetensors_file_is_told_by_its_header() -> None:
    content = struct.pack("<Q", len(RAW_HEADER)) + RAW_HEADER + b"\0" * 100
    assert recognise("draft.bin", content).kind == "safetensors"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\x89PNG\r\n\x1a\n....", "picture"),
        (b"%PDF-1.7", "PDF"),
        (b"PK\x03\x04rest", "zip"),
        (b"\x80\x02}q\x00", "pickle"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "LFS"),
        (b"<!DOCTYPE html><html>404</html>", "web page"),
        (b'{"a": 1,, }', "line 1 column"),
        (b"\x1f\x8b broken", "compressed"),
        (bytes(range(256)) * 20, "binary"),
        (b"\x00" * 500, "binary"),
    ],
)
def test_unusable_content_says_why(content: bytes, word: str) -> None:
    found = recognise("thing", content)
    assert found.kind == "unusable", found
    assert word in found.reason


def test_other_compressions_are_looked_into() -> None:
    line = b"[2026-01-01 10:00:00 TP0] Decode batch, #running-req: 1\n" * 50
    assert recognise("a", lzma.compress(line)).kind == "server-log"
    assert recognise("a", bz2.compress(line)).kind == "server-log"
    assert recognise("a", b"\x28\xb5\x2f\xfd rest").kind == "server-log"


def test_long_json_cut_at_the_first_megabyte_is_told_by_its_keys() -> None:
    text = '{"meta_info": {"completion_tokens": 3}, "text": "' + "x" * (1 << 20)
    assert recognise("a", text).kind == "generate-answers"


@given(st.one_of(st.binary(max_size=600), st.text(max_size=300)))
@settings(deadline=None)
def test_every_content_gets_a_kind_and_a_reason(content: bytes | str) -> None:
    found = recognise("thing", content)
    assert found.reason


PLAIN = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "vocab_size": 128256}


@pytest.mark.parametrize(
    ("name", "config", "kind"),
    [
        ("config.json", {**PLAIN, "num_hidden_layers": 1}, "draft-config"),
        ("config.json", {**PLAIN, "num_hidden_layers": 28}, "target-config"),
        ("draft_config.json", {**PLAIN, "num_hidden_layers": 28}, "draft-config"),
        ("drafts/small/config.json", {**PLAIN, "num_hidden_layers": 28}, "draft-config"),
        ("target.json", {**PLAIN, "draft_vocab_size": 32000}, "draft-config"),
    ],
)
def test_a_draft_with_an_ordinary_name_is_told_by_its_depth_or_its_file(
    name: str, config: object, kind: str
) -> None:
    assert recognise(name, json.dumps(config)).kind == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[2026-04-02 10:00:00 TP1] Capture cuda graph failed: CUDA out of memory.", "server-log"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "server-log"),
        (
            "ERROR:    [Errno 98] error while attempting to bind: address already in use",
            "server-log",
        ),
        ("It says that the address is already in use, and that memory ran out.", "text"),
        ("[2026-04-02 10:00:00] nothing an engine says", "text"),
    ],
)
def test_one_line_on_a_failure_makes_a_log_and_prose_about_it_does_not(
    text: str, kind: str
) -> None:
    assert recognise("paste", text).kind == kind


def test_an_error_behind_a_foreign_prefix_still_makes_a_log() -> None:
    line = (
        "[pod/a/b] ERROR:    [Errno 98] bind on address ('0.0.0.0', 30000): address already in use"
    )
    assert recognise("x", line).kind == "server-log"
    assert recognise("x", "is the address already in use an ERROR? I cannot tell").kind == "text"


def test_json_with_words_behind_it_is_a_text_and_broken_json_is_not() -> None:
    config = '{"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000}'
    assert recognise("a", f"{config}\nthat is the draft's config").kind == "text"
    assert recognise("a", f"{config}\n").kind == "draft-config"
    for broken in (config[:-1], f"{config}}}", f"{config},", f"{config}: 3"):
        assert recognise("a", broken).kind == "unusable", broken
