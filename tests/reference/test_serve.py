"""The process from start to end: arguments, port, weights, log, signals."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specdebug.reference import serve, variants
from tests.reference.running import COMMAND, ROOT, SPECULATIVE, Running, free_port, start


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


def test_arguments_are_judged_without_torch() -> None:
    code = "import sys, specdebug.reference.serve as s; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=True)


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
