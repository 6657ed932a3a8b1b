"""`specdebug attach` to a live engine: figures into a run, through restarts, until it is ended."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from specdebug.client import cli
from specdebug.client.commands import attach_
from tests.api.conftest import Caller

METRICS = """# TYPE sglang:gen_throughput gauge
sglang:gen_throughput{model_name="m"} 61.5
sglang:spec_accept_length{model_name="m"} 2.5
sglang:num_running_reqs{model_name="m"} 3
"""


class Engine(BaseHTTPRequestHandler):
    """What an engine answers; while `away` it is being started again."""

    away = False

    def do_GET(self) -> None:
        paths = {"/metrics": METRICS, "/server_info": '{"tp_size": 8, "version": "0.5.10"}'}
        body = "" if self.away else paths.get(self.path, "")
        self.send_response(200 if body else 503)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def engine() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    Engine.away = False
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def rounds(monkeypatch: pytest.MonkeyPatch, events: dict[int, object]) -> None:
    """No waiting; before the n-th round what `events` names happens."""
    count = iter(range(1_000_000))

    def sleep(_: float) -> None:
        event = events.get(next(count))
        if isinstance(event, BaseException):
            raise event
        if event is not None:
            Engine.away = event == "away"

    monkeypatch.setattr(attach_.time, "sleep", sleep)


@pytest.mark.usefixtures("served", "inv")
def test_figures_come_in_through_a_restart_until_it_is_interrupted(
    api: Caller, engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds(monkeypatch, {1: "away", 4: "back", 6: KeyboardInterrupt()})
    words = ["attach", "slow-draft", "--server", engine, "--title", "peak hour", "--json"]
    assert cli.main(words) == 0
    told = capsys.readouterr()
    run = json.loads(told.out)
    assert (run["title"], run["state"]) == ("peak hour", "done")
    points = api.get("investigations/slow-draft/runs/0/points?metric=tok_s")
    # Rounds 2, 3 and 4 met an engine that was being started.
    assert points["steps"] == [0, 1, 5, 6]
    assert points["values"] == [61.5] * 4
    assert api.get("investigations/slow-draft/runs/0/points?metric=accept_len")["total"] == 4
    full = api.get("investigations/slow-draft/runs/0")
    assert any(entry["key"] == "tp_size" for entry in full["config"])


@pytest.mark.usefixtures("served", "inv")
def test_scrapes_that_were_not_answered_are_counted(
    engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds(monkeypatch, {0: "away", 2: KeyboardInterrupt()})
    assert cli.main(["attach", "slow-draft", "--server", engine]) == 0
    assert "2 scrapes were not answered" in capsys.readouterr().out


@pytest.mark.usefixtures("served", "inv")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a --server, a --log, or both"),
        (["--server", "x", "--every", "0.01"], "--every must be 0.2 or more"),
    ],
)
def test_attaching_to_nothing_is_refused(
    api: Caller, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["attach", "slow-draft", *words]) == 2
    assert said in capsys.readouterr().err
    assert api.get("investigations/slow-draft/runs")["items"] == []
