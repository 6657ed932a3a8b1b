"""A real worker, a real broker, a real engine process: what signals and deaths leave of a run."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from experiments import dispatch, lifecycle
from experiments.lifecycle import workers
from experiments.models import Run, Worker
from tests.house import House, opened, wait
from workers import processes, tasks
from workers.plan import Deadlines, Workload

pytestmark = [
    pytest.mark.story,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("sglang"),
]


@pytest.fixture
def house(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    data_dir: Path,
) -> Iterator[House]:
    with opened(data_dir, tmp_path_factory.mktemp("b"), monkeypatch) as here:
        yield here


@pytest.fixture
def run(prompts: Path, db: None) -> Run:
    """A draft that measures for a minute unless it is stopped."""
    return lifecycle.add_run(
        investigation=lifecycle.create_investigation(title="Slow", question="Why?"),
        title="a long run",
        engine="sglang",
        server_args=["--grandchild", "--token-seconds", "0.02"],
        workload=Workload(
            prompts=str(prompts), max_new_tokens=10, prompts_per_repeat=4, repeats=75
        ),
        deadlines=Deadlines(launch=20, ready=30, request=20, stop=5),
    )


def state(run: Run) -> str:
    run.refresh_from_db()
    return run.state


def measuring(run: Run) -> bool:
    run.refresh_from_db()
    return run.phase == "measuring"


def shorten(run: Run) -> None:
    """Make the rest of the story short: the next attempt measures a single repeat."""
    run.refresh_from_db()
    run.plan["workload"]["repeats"] = 1
    Run.objects.filter(pk=run.pk).update(plan=run.plan)


def send_again(run: Run) -> None:
    """What the reaper does once some time has passed."""
    Run.objects.filter(pk=run.pk).update(queued_at=timezone.now() - timedelta(minutes=1))
    assert dispatch.send_waiting(now=timezone.now()) == [run.pk]


def silence(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=1))


def child_of(worker: subprocess.Popen[bytes]) -> int:
    (child,) = (p.pid for p in processes.table().values() if p.parent == worker.pid)
    return child


def test_a_stopped_worker_gives_its_run_back_and_the_next_worker_measures_it(
    house: House, run: Run
) -> None:
    worker = house.start_worker()
    dispatch.queue_run(run)
    wait(lambda: measuring(run))
    assert len(house.engines()) == 4
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    assert state(run) == "queued"
    assert (run.reason, run.attempt) == ("queued again: its worker was stopped", 0)
    assert house.engines() == []
    shorten(run)
    house.start_worker()
    wait(lambda: state(run) == "done")
    assert run.attempt == 1
    assert run.repeats.count() == 1


def test_kill_9_of_the_worker_ends_the_engine_and_the_run_is_tried_once_more(
    house: House, run: Run
) -> None:
    worker = house.start_worker()
    dispatch.queue_run(run)
    wait(lambda: measuring(run))
    worker.kill()
    worker.wait()
    wait(lambda: not house.engines(), 5)
    assert state(run) == "running"
    silence(run)
    tasks.reap()
    assert state(run) == "queued"
    assert "has not been heard of" in run.reason
    shorten(run)
    house.start_worker()
    wait(lambda: state(run) == "done")
    assert run.attempt == 2


def test_kill_9_of_the_child_alone_starts_nothing_twice(house: House, run: Run) -> None:
    worker = house.start_worker()
    dispatch.queue_run(run)
    wait(lambda: measuring(run))
    os.kill(child_of(worker), signal.SIGKILL)
    wait(lambda: not house.engines(), 5)
    # The broker delivers the message again at once; the row is still claimed, so nothing starts.
    time.sleep(2)
    assert house.engines() == []
    assert state(run) == "running"
    shorten(run)
    silence(run)
    tasks.reap()
    wait(lambda: state(run) == "done")
    assert run.attempt == 2


def test_a_revoked_task_cancels_its_run_with_a_reason(house: House, run: Run) -> None:
    worker = house.start_worker()
    dispatch.queue_run(run)
    wait(lambda: measuring(run))
    os.kill(child_of(worker), signal.SIGTERM)  # what revoke(terminate=True) sends
    wait(lambda: state(run) == "cancelled", 20)
    assert run.reason == "The task was ended by a signal."
    assert house.engines() == []
    assert worker.poll() is None


def test_with_the_broker_away_a_run_stays_queued_and_is_sent_when_it_is_back(
    house: House, run: Run
) -> None:
    assert house.broker is not None
    house.broker.kill()
    house.broker.wait()
    house.socket.unlink()
    begin = time.monotonic()
    assert dispatch.queue_run(run)
    assert time.monotonic() - begin < 5  # somebody waits for the page
    assert state(run) == "queued"
    Run.objects.filter(pk=run.pk).update(queued_at=timezone.now() - timedelta(minutes=1))
    assert dispatch.send_waiting(now=timezone.now()) == []
    house.start_broker()
    shorten(run)
    house.start_worker()
    send_again(run)
    assert dispatch.send_waiting(now=timezone.now()) == []  # its message is there
    wait(lambda: state(run) == "done")


def test_a_worker_registers_and_gets_what_is_for_it_alone(
    house: House, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = workers.Told("another", "another", 1, lacks={"sglang": "no interpreter"})
    workers.hear_of(told, started_at=timezone.now(), now=timezone.now())
    monkeypatch.setenv("SPECDEBUG_WORKER_NAME", "here")
    worker = house.start_worker()
    here = wait(lambda: Worker.objects.filter(name="here").first())
    assert (here.pid, here.lacks.get("sglang")) == (worker.pid, None)
    shorten(run)
    dispatch.queue_run(run)
    assert dispatch.queues_for(run, list(Worker.objects.all())) == ["measure.here"]
    wait(lambda: state(run) == "done")
    assert run.worker.startswith("here:")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    here.refresh_from_db()
    assert here.stopped_at is not None
