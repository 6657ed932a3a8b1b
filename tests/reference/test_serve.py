"""The real process: start, every route, what it refuses, and how it ends."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specdebug.reference import serve, variants

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "specdebug.reference.serve"]
SPECULATIVE = [
    *("--model-path", str(variants.TARGET), "--speculative-algorithm", "EAGLE3"),
    *("--speculative-draft-model-path", str(variants.DRAFT), "--speculative-num-steps", "3"),
    *("--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "16"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Running:
    """A started server and its log."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def ask(
        self, path: str, body: Any = None, method: str | None = None, raw: bytes | None = None
    ) -> tuple[int, Any]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        try:
            link.request(method or ("GET" if content is None else "POST"), path, content)
            answer = link.getresponse()
            text = answer.read().decode()
        finally:
            link.close()
        kind = answer.getheader("Content-Type") or ""
        return answer.status, json.loads(text) if kind == "application/json" else text

    def wait(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log.read_text()
            try:
                if self.ask("/health")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        pytest.fail("not healthy within 60 s:\n" + self.log.read_text())


def start(log: Path, *flags: str) -> Running:
    port = free_port()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*COMMAND, *flags, "--port", str(port)], cwd=ROOT, stdout=out, stderr=out
        )
    return Running(process, port, log)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    log = tmp_path_factory.mktemp("serve") / "server.log"
    running = start(log, *SPECULATIVE, "--enable-metrics", "--decode-log-interval", "10")
    try:
        running.wait()
        yield running
    finally:
        running.process.kill()
        running.process.wait()


# ---- start-up ------------------------------------------------------------------------------------


def test_the_log_opens_with_the_banner_and_tells_the_start_in_order(server: Running) -> None:
    lines = server.log.read_text().splitlines()
    assert lines[0].startswith("specdebug reference engine: a tiny model on the CPU")
    assert "speculative_num_draft_tokens is adjusted" in "\n".join(lines[:6])
    marks = [
        "server_args=ServerArgs(",
        "Load weight begin. avail mem=",
        "type=LlamaForCausalLM,",
        "type=LlamaForCausalLMEagle3,",
        "holds -1: capturing the embedding",
        "KV Cache is allocated. #tokens: 1024",
        "Memory pool end. avail mem=",
        "max_total_num_tokens=1024,",
        "Uvicorn running on http://127.0.0.1:",
        "Prefill batch, #new-seq: 1,",
        "The server is fired up and ready to roll!",
    ]
    places = [next(i for i, line in enumerate(lines) if mark in line) for mark in marks]
    assert places == sorted(places)


def test_an_unknown_flag_ends_with_2_and_its_name_at_once() -> None:
    ended = subprocess.run(
        [*COMMAND, "--model-path", "x", "--no-such-flag"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert "--no-such-flag" in ended.stderr


@pytest.fixture
def main(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., list[str]]]:
    """Run the server's main in this process, for starts that must fail; returns its stderr."""
    before = {sign: signal.getsignal(sign) for sign in (signal.SIGTERM, signal.SIGINT)}

    def run(*flags: str) -> list[str]:
        assert serve.main(list(flags)) == 1
        return capsys.readouterr().err.splitlines()

    yield run
    for sign, handler in before.items():
        signal.signal(sign, handler)


def test_a_missing_model_or_draft_is_told_in_one_line(main: Callable[..., list[str]]) -> None:
    said = main("--model-path", "/nowhere/at/all")
    assert said[1:] == [
        "--model-path /nowhere/at/all: no such folder; give the folder of a checkpoint"
    ]
    said = main(*["/no" if flag == str(variants.DRAFT) else flag for flag in SPECULATIVE])
    assert said[1].startswith("--speculative-draft-model-path /no: no such folder")


def test_partial_speculative_flags_end_as_in_the_release(main: Callable[..., list[str]]) -> None:
    said = main(*SPECULATIVE[:6], "--speculative-num-draft-tokens", "16")
    assert said[-1] == "AssertionError"


def test_a_broken_draft_ends_with_one_line_that_names_file_and_key(
    main: Callable[..., list[str]], tmp_path: Path
) -> None:
    folder = variants.write_draft(tmp_path / "draft", [1, 5, 12])
    flags = [str(folder) if flag == str(variants.DRAFT) else flag for flag in SPECULATIVE]
    port = free_port()
    said = main(*flags, "--port", str(port))
    assert f"{folder}/config.json: eagle_config.eagle_aux_hidden_state_layer_ids" in said[-1]
    with socket.socket() as probe:  # and the port is free again
        probe.bind(("127.0.0.1", port))


def test_a_taken_port_is_told_before_the_weights_load(
    main: Callable[..., list[str]], server: Running
) -> None:
    said = main("--model-path", str(variants.TARGET), "--port", str(server.port))
    assert "address already in use" in said[-1]
    assert not [line for line in said if "Load weight begin" in line]


# ---- routes --------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_plain_server_from_start_to_signal(tmp_path: Path, sign: signal.Signals) -> None:
    running = start(tmp_path / "log", "--model-path", str(variants.TARGET))
    try:
        seen: list[int] = []
        until = time.monotonic() + 60
        while time.monotonic() < until and 200 not in seen:
            try:
                seen.append(running.ask("/health")[0])
            except OSError:
                time.sleep(0.005)
        # 503 between the port and the weights may be too short to be seen.
        assert set(seen) <= {200, 503}
        assert seen[-1] == 200
        status, told = running.ask("/metrics")
        assert (status, "--enable-metrics" in told["error"]["message"]) == (404, True)
        running.ask("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 81}})
        decode = [line for line in running.log.read_text().splitlines() if "Decode batch" in line]
        assert decode
        assert not [line for line in decode if "accept" in line]
        running.process.send_signal(sign)
        assert running.process.wait(timeout=20) == 0
        assert "Finished server process" in running.log.read_text()
        with pytest.raises(OSError, match=r"refused"):
            running.ask("/health")
    finally:
        running.process.kill()
        running.process.wait()


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
