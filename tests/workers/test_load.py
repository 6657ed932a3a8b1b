"""Prompts and requests against a small HTTP server in this process."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from workers import load
from workers.load import Client, arrivals, run_repeat
from workers.plan import Repeat, RunEnded, Workload
from workers.prompt_files import Prompt

Answers = dict[str, Callable[[dict[str, Any]], tuple[int, bytes]]]
PROMPTS = [Prompt("a", {"text": "one"}), Prompt("b", {"input_ids": [1, 2]})]
WORK = Workload(max_new_tokens=4, warm_up_prompts=0)


@pytest.fixture
def answers() -> Answers:
    """What each path answers; a path that is not in it is 404."""
    return {}


@pytest.fixture
def client(answers: Answers) -> Iterator[Client]:
    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            known = answers.get(self.path)
            status, data = known(json.loads(body or b"{}")) if known else (404, b"{}")
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            # A client that has read enough hangs up.
            with contextlib.suppress(ConnectionError):
                self.wfile.write(data)

        do_GET = do_POST = handle_any

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = Client(f"http://127.0.0.1:{server.server_port}", request_seconds=2)
    try:
        yield found
    finally:
        found.close()
        server.shutdown()
        server.server_close()


def generated(meta: dict[str, Any], **more: Any) -> Callable[[Any], tuple[int, bytes]]:
    body = {"text": "x", "meta_info": {"prompt_tokens": 2, "completion_tokens": 4, **meta}, **more}
    return lambda _: (200, json.dumps(body).encode())


def repeat(client: Client, workload: Workload = WORK, **changes: Any) -> Repeat:
    options: dict[str, Any] = {
        "index": 0,
        "should_stop": lambda: "",
        "died": lambda: "",
        "on_answer": lambda _: None,
    }
    return run_repeat(client, PROMPTS, workload, **{**options, **changes})


# ---- requests ------------------------------------------------------------------------------------


def test_a_request_carries_the_workload_and_brings_the_counts(
    client: Client, answers: Answers
) -> None:
    asked: list[dict[str, Any]] = []

    def generate(body: dict[str, Any]) -> tuple[int, bytes]:
        asked.append(body)
        return generated({"spec_verify_ct": 2, "spec_accept_histogram": [1, 1]})(body)

    answers["/generate"] = generate
    found = repeat(client, Workload(max_new_tokens=4, temperature=0.0, ignore_eos=True))
    sampling = {"max_new_tokens": 4, "temperature": 0.0, "ignore_eos": True}
    assert asked == [
        {"text": "one", "sampling_params": sampling},
        {"input_ids": [1, 2], "sampling_params": sampling},
    ]
    first, second = found.requests
    assert (first.prompt, second.prompt) == ("a", "b")
    assert (first.prompt_tokens, first.completion_tokens) == (2, 4)
    assert (first.spec_verify_ct, first.accept_histogram) == (2, (1, 1))
    assert first.output_sha256 == second.output_sha256 != ""
    assert 0 < first.seconds <= found.seconds


def test_newer_releases_name_their_counts_otherwise(client: Client, answers: Answers) -> None:
    answers["/generate"] = generated(
        {"spec_verify_ct": 2, "spec_correct_drafts_histogram": [0, 2], "spec_num_correct_drafts": 2}
    )
    assert repeat(client).requests[0].accept_histogram == (0, 2)


def test_outputs_are_told_apart_by_their_ids_before_their_text(
    client: Client, answers: Answers
) -> None:
    answers["/generate"] = generated({}, output_ids=[1, 2])
    one = repeat(client).requests[0].output_sha256
    answers["/generate"] = generated({}, output_ids=[1, 3])
    other = repeat(client).requests[0].output_sha256
    assert one != other


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (400, b'{"error": {"message": "too long"}}', "Prompt a: the server answered 400: too long"),
        (422, b'{"detail": [{"msg": "x"}]}', 'Prompt a: the server answered 422: [{"msg": "x"}]'),
        (500, b"Internal Server Error", "the server answered 500: Internal Server Error"),
        (503, b"", "the server answered 503: nothing"),
        (200, b"<html>", "this is no answer of /generate: <html>"),
        (200, b'{"choices": []}', 'this is no answer of /generate: {"choices": []}'),
        (200, b"[]", "this is no answer of /generate: []"),
        (200, b'{"text": "x", "meta_info": {"completion_tokens": null}}', "no answer of /generate"),
        (500, b"\xff" * 5000, "the server answered 500"),
    ],
)
def test_a_bad_answer_is_one_sentence(
    client: Client, answers: Answers, status: int, body: bytes, reason: str
) -> None:
    answers["/generate"] = lambda _: (status, body)
    with pytest.raises(RunEnded) as caught:
        repeat(client)
    assert caught.value.state == "failed"
    assert reason in caught.value.reason
    assert len(caught.value.reason) < 400


def test_an_answer_without_end_is_refused(
    client: Client, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "LARGEST_ANSWER", 1 << 20)
    answers["/generate"] = lambda _: (200, b" " * (2 << 20))
    with pytest.raises(RunEnded, match="larger than 1 MiB"):
        repeat(client)


def test_no_answer_in_time_names_the_prompt(client: Client, answers: Answers) -> None:
    quick = Client(client.url, request_seconds=0.2)

    def slow(_: Any) -> tuple[int, bytes]:
        time.sleep(0.6)
        return 200, b"{}"

    answers["/generate"] = slow
    with pytest.raises(RunEnded, match=r"Prompt a: no answer within 0\.2 s"):
        repeat(quick)
    quick.close()


def test_a_request_that_breaks_off_is_explained_by_the_servers_death(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nobody = Client("http://127.0.0.1:9")
    looks = iter(["", "", "The server was ended by SIGKILL."])
    with pytest.raises(RunEnded, match="ended by SIGKILL"):
        repeat(nobody, died=lambda: next(looks))
    monkeypatch.setattr(load, "DYING_SECONDS", 0.1)
    with pytest.raises(RunEnded, match="Prompt a: the request failed"):
        repeat(nobody)
    nobody.close()


def test_a_stop_does_not_wait_for_the_answer(client: Client, answers: Answers) -> None:
    def slow(_: Any) -> tuple[int, bytes]:
        time.sleep(1.5)
        return 200, b"{}"

    answers["/generate"] = slow
    begin = time.monotonic()
    with pytest.raises(RunEnded) as caught:
        repeat(client, should_stop=lambda: "Now." if time.monotonic() > begin + 0.2 else "")
    assert (caught.value.state, caught.value.reason) == ("cancelled", "Now.")
    assert time.monotonic() - begin < 1.2


def test_after_a_failure_no_further_prompt_is_asked(client: Client, answers: Answers) -> None:
    asked: list[Any] = []

    def refuse(body: Any) -> tuple[int, bytes]:
        asked.append(body)
        return 400, b"{}"

    answers["/generate"] = refuse
    with pytest.raises(RunEnded):
        run_repeat(
            client,
            [Prompt(str(n), {"text": "x"}) for n in range(500)],
            WORK,
            index=0,
            should_stop=lambda: "",
            died=lambda: "",
            on_answer=lambda _: None,
        )
    time.sleep(0.3)
    count = len(asked)
    assert count < 500
    time.sleep(0.1)
    assert len(asked) == count


# ---- beside the requests -------------------------------------------------------------------------


def test_the_cache_is_flushed_again_until_the_server_is_idle(
    client: Client, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "LOOK_SECONDS", 0.01)
    assert not client.flush_cache()  # no such route
    states = iter([400, 400, 200])
    answers["/flush_cache"] = lambda _: (next(states), b"")
    assert client.flush_cache()
    answers["/flush_cache"] = lambda _: (400, b"")
    assert not client.flush_cache()


def test_server_info_has_two_names_and_no_nan(client: Client, answers: Answers) -> None:
    assert client.server_info() is None
    answers["/get_server_info"] = lambda _: (200, b'{"a": NaN, "b": -Infinity, "c": 1}')
    assert client.server_info() == {"a": None, "b": None, "c": 1}
    answers["/server_info"] = lambda _: (200, b'{"new": true}')
    assert client.server_info() == {"new": True}
    answers["/server_info"] = lambda _: (200, b"[1]")
    assert client.server_info() is None


def test_metrics_are_empty_where_there_are_none(client: Client, answers: Answers) -> None:
    assert client.metrics() == ""
    answers["/metrics"] = lambda _: (200, b"sglang:x 1\n")
    assert client.metrics() == "sglang:x 1\n"


def test_up_is_what_health_says(client: Client, answers: Answers) -> None:
    assert client.is_up() == "/health answered 404"
    answers["/health"] = lambda _: (200, b"")
    assert client.is_up() == ""
    nobody = Client("http://127.0.0.1:9")
    assert "refused" in nobody.is_up()
    nobody.close()


# ---- arrivals ------------------------------------------------------------------------------------


def test_without_a_rate_everything_is_due_at_once() -> None:
    assert arrivals(3, None, seed=1) == [0.0, 0.0, 0.0]


def test_arrivals_are_a_poisson_process_of_that_rate_and_the_same_for_one_seed() -> None:
    dues = arrivals(4001, 20.0, seed=7)
    gaps = [b - a for a, b in itertools.pairwise(dues)]
    mean = sum(gaps) / len(gaps)
    assert dues[0] == 0.0
    assert 0.045 < mean < 0.055
    # An exponential distribution's spread is its mean; even distances have none.
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert 0.9 < spread / mean < 1.1
    assert dues == arrivals(4001, 20.0, seed=7)
    assert dues != arrivals(4001, 20.0, seed=8)


def test_requests_are_sent_when_they_are_due_and_not_before(
    client: Client, answers: Answers
) -> None:
    came: list[float] = []

    def answer(body: Any) -> tuple[int, bytes]:
        came.append(time.monotonic())
        return generated({})(body)

    answers["/generate"] = answer
    workload = replace(WORK, concurrency=2, request_rate=2.0, seed=3)
    due = arrivals(2, 2.0, seed=3000)[1]
    assert due > 0.1, "choose another seed"
    found = repeat(client, workload)
    assert came[1] - came[0] > 0.8 * due
    assert found.seconds >= due


def test_what_the_server_said_of_a_request_is_kept(client: Client, answers: Answers) -> None:
    answers["/generate"] = generated({"spec_verify_ct": 2, "e2e_latency": 0.5})
    assert repeat(client).requests[0].meta["e2e_latency"] == 0.5
