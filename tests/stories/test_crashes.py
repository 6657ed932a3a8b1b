"""kill -9 of engine, worker and web during a run: it ends or is resumed, nothing hangs."""

import os
import signal
import time
from typing import Any

import httpx
import pytest

from tests.killing import kill
from tests.stories.conftest import Running

pytestmark = pytest.mark.story

STATES = "select number, state, reason, attempt from experiments_run where id = ?"


def queue_one(running: Running, repeats: int = 2, tokens: int = 32) -> int:
    """The replay's four runs with a small workload; returns the first run's id."""
    work = ("--repeats", str(repeats), "--prompts", "2", "--tokens", str(tokens))
    running.manage("replay", *work)
    return int(running.runs()[0]["id"])


def state(running: Running, pk: int) -> dict[str, Any]:
    return running.rows(STATES, pk)[0]


def engine_at_work(running: Running) -> int:
    found: list[int] = running.wait(running.engines, 60, "an engine")
    return found[0]


def kill_those_of(running: Running, words: str) -> None:
    """Kill -9 the processes of one service, without its leash."""
    found = [
        pid
        for pid, command in running.processes()
        if words in command and "workers.leash" not in command
    ]
    assert found, f"no process of {words}"
    kill(found)


def gone(pid: int, seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_a_killed_engine_fails_its_run_with_a_reason_and_the_next_run_goes_on(
    running: Running, browser: httpx.Client
) -> None:
    first = queue_one(running)
    os.kill(engine_at_work(running), signal.SIGKILL)
    running.wait(lambda: state(running, first)["state"] == "failed", 60, "the failure")
    assert "SIGKILL" in state(running, first)["reason"]
    second = int(running.runs()[1]["id"])
    running.wait(lambda: state(running, second)["state"] == "done", 120, "the next run")
    slug = running.replay_slug()
    page = browser.get(f"/i/{slug}/r/0/")
    assert "failed" in page.text
    assert "SIGKILL" in page.text


def test_a_killed_worker_takes_its_engine_along_and_the_run_is_resumed_once(
    running: Running,
) -> None:
    first = queue_one(running)
    engine = engine_at_work(running)
    kill_those_of(running, "-Q measure")
    assert gone(engine), "the engine outlived its worker"
    running.wait(lambda: state(running, first)["attempt"] == 2, 300, "the second attempt")
    running.wait(lambda: state(running, first)["state"] == "done", 120, "the end of the run")
    assert state(running, first)["attempt"] == 2


def test_a_killed_web_process_does_not_disturb_the_run(running: Running) -> None:
    first = queue_one(running)
    engine_at_work(running)
    kill_those_of(running, "-m gunicorn")
    running.wait(lambda: state(running, first)["state"] == "done", 120, "the end of the run")
    assert state(running, first)["attempt"] == 1


def test_a_cancel_from_the_page_stops_the_run_and_its_engine(
    running: Running, browser: httpx.Client
) -> None:
    # Long enough not to be over before a first page has been opened.
    first = queue_one(running, repeats=100, tokens=256)
    engine = engine_at_work(running)
    slug = running.replay_slug()
    address = f"/i/{slug}/r/0/"
    token = browser.get(address).text.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    for _ in range(2):  # a double click
        answer = browser.post(
            f"{address}cancel/",
            data={"csrfmiddlewaretoken": token},
            headers={"Referer": running.base},
        )
        assert answer.status_code == 200
    running.wait(lambda: state(running, first)["state"] == "cancelled", 30, "the cancel")
    assert gone(engine)
