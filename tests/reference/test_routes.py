"""Every route of a running server, and what it refuses."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from specdebug.reference import variants
from tests.reference.running import Running


def test_generate_answers_in_the_real_server_s_form(server: Running, shared: Path) -> None:
    status, answer = server.ask(
        "/generate",
        {"text": "def heappush(heap, item):", "sampling_params": {"max_new_tokens": 24}},
    )
    assert status == 200
    assert len(answer["output_ids"]) == 24
    sample = shared / "samples/sglang-0.5.10.post1-cpu/m2_eagle3_steps1_draft16_generate.json"
    real = json.loads(sample.read_text())
    assert answer.keys() == real.keys()
    assert answer["meta_info"].keys() <= real["meta_info"].keys()
    assert {key for key in real["meta_info"] if key.startswith("spec_")} <= answer[
        "meta_info"
    ].keys()


def test_several_prompts_are_answered_in_their_order(server: Running) -> None:
    params = {"max_new_tokens": 4}
    _, many = server.ask("/generate", {"input_ids": [[5, 6], [7]], "sampling_params": params})
    _, first = server.ask("/generate", {"input_ids": [5, 6], "sampling_params": params})
    assert [item["meta_info"]["prompt_tokens"] for item in many] == [2, 1]
    assert many[0]["output_ids"] == first["output_ids"]


def events(text: str) -> list[Any]:
    blocks = [block for block in text.split("\n\n") if block]
    assert all(block.startswith("data: ") for block in blocks)
    assert blocks[-1] == "data: [DONE]"
    return [json.loads(block[6:]) for block in blocks[:-1]]


def test_a_stream_ends_with_the_same_text_as_a_whole_answer(server: Running) -> None:
    body = {"text": "import sys", "sampling_params": {"max_new_tokens": 20}}
    _, whole = server.ask("/generate", body)
    _, text = server.ask("/generate", {**body, "stream": True})
    pieces = events(text)
    assert pieces[-1]["text"] == whole["text"]
    assert pieces[-1]["meta_info"]["spec_verify_ct"] == whole["meta_info"]["spec_verify_ct"]
    assert pieces[0]["meta_info"]["finish_reason"] is None


def test_completions_whole_and_streamed_give_the_same_text(server: Running) -> None:
    body = {"model": "any", "prompt": "import sys", "max_tokens": 20, "temperature": 0}
    status, whole = server.ask("/v1/completions", body)
    assert status == 200
    assert whole["usage"]["completion_tokens"] == 20
    assert whole["choices"][0]["finish_reason"] == "length"
    options = {"stream": True, "stream_options": {"include_usage": True}}
    _, text = server.ask("/v1/completions", {**body, **options})
    pieces = events(text)
    said = "".join(piece["choices"][0]["text"] for piece in pieces if piece["choices"])
    assert said == whole["choices"][0]["text"]
    assert pieces[-1]["usage"] == whole["usage"]


def test_server_info_shows_effective_values_and_what_engine_it_is(server: Running) -> None:
    server.ask("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 60}})
    for path in ("/server_info", "/get_server_info"):
        _, told = server.ask(path)
        assert told["speculative_num_draft_tokens"] == 4
        assert told["version"] == "0.5.10.post1"
        assert told["engine"] == "specdebug-reference"
        assert "not a GPU's" in told["note"]
        (state,) = told["internal_states"]
        assert 1 <= state["avg_spec_accept_length"] <= 4
        assert state["last_gen_throughput"] > 0
        assert state["effective_max_running_requests_per_dp"] == 1


def test_model_info_and_models_name_the_target(server: Running) -> None:
    for path in ("/model_info", "/get_model_info"):
        _, told = server.ask(path)
        assert told["model_path"] == str(variants.TARGET)
        assert told["engine"] == "specdebug-reference"
    _, listed = server.ask("/v1/models")
    assert [card["id"] for card in listed["data"]] == [str(variants.TARGET)]


def test_health_generate_really_generates(server: Running) -> None:
    def requests() -> float:
        _, text = server.ask("/metrics")
        line = next(t for t in text.splitlines() if t.startswith("sglang:num_requests_total{"))
        return float(line.split()[-1])

    before = requests()
    assert server.ask("/health_generate")[0] == 200
    assert requests() == before + 1


def test_metrics_have_the_names_and_labels_of_the_real_server(
    server: Running, shared: Path
) -> None:
    _, text = server.ask("/metrics")
    sample = shared / "samples/sglang-0.5.10.post1-cpu/m2_eagle3_steps1_draft16_metrics.txt"
    real = {line.partition("{")[0]: line for line in sample.read_text().splitlines()}
    for name in ("gen_throughput", "spec_accept_length", "spec_accept_rate", "num_running_reqs"):
        line = next(t for t in text.splitlines() if t.startswith(f"sglang:{name}{{"))
        labels = real[f"sglang:{name}"].partition("{")[2].partition("}")[0]
        ours = line.partition("{")[2].partition("}")[0]
        keys = [pair.partition("=")[0] for pair in ours.split(",")]
        assert keys == [pair.partition("=")[0] for pair in labels.split(",")]


def test_flush_cache_resets_the_average(server: Running) -> None:
    server.ask("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 60}})
    for method in ("POST", "GET"):
        status, told = server.ask("/flush_cache", method=method)
        assert status == 200
        assert told.startswith("Cache flushed")
    _, info = server.ask("/server_info")
    assert "avg_spec_accept_length" not in info["internal_states"][0]


@pytest.mark.parametrize(
    ("path", "raw", "status", "words"),
    [
        ("/nowhere", None, 404, "no such route: /nowhere"),
        ("/generate", None, 405, "GET is not allowed on /generate"),
        ("/server_info", b"{}", 405, "POST is not allowed on /server_info"),
        ("/generate", b"{", 400, "not JSON"),
        ("/generate", b'{"text": "x", "sampling_params": {"temperature": 1}}', 400, "greedily"),
        (
            "/generate",
            b'{"text": "x", "sampling_params": {"max_new_tokens": 5000}}',
            400,
            "context",
        ),
        ("/v1/completions", b"{}", 400, "prompt is missing"),
    ],
)
def test_errors_have_one_form(
    server: Running, path: str, raw: bytes | None, status: int, words: str
) -> None:
    got, told = server.ask(path, raw=raw)
    assert got == status
    assert told["error"].keys() == {"message", "type", "code"}
    assert told["error"]["code"] == status
    assert words in told["error"]["message"]


def raw_exchange(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
        link.sendall(request)
        answer = b""
        while chunk := link.recv(65536):
            answer += chunk
        return answer


def test_a_body_too_large_or_of_unknown_length_is_refused_unread(server: Running) -> None:
    large = b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n"
    assert b" 413 " in raw_exchange(server.port, large).splitlines()[0]
    chunked = b"POST /generate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b" 411 " in raw_exchange(server.port, chunked).splitlines()[0]
    assert server.ask("/health")[0] == 200


def test_a_line_that_is_no_http_and_an_unknown_method_are_refused(server: Running) -> None:
    assert b'"error"' in raw_exchange(server.port, b"hello there my friend\r\n\r\n")
    brew = raw_exchange(server.port, b"BREW /generate HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 501 " in brew.splitlines()[0]


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_the_engine(server: Running, stream: bool) -> None:
    body = json.dumps(
        {"input_ids": [5], "stream": stream, "sampling_params": {"max_new_tokens": 1000}}
    ).encode()
    head = f"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    before = server.log.read_text().count("Abort request")
    with socket.create_connection(("127.0.0.1", server.port)) as link:
        link.sendall(head + body)
        time.sleep(0.1)
    until = time.monotonic() + 20
    while server.log.read_text().count("Abort request") == before:
        assert time.monotonic() < until, "the request was not dropped"
        time.sleep(0.05)
    assert server.ask("/health_generate")[0] == 200
