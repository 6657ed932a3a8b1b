"""kill -9 in every phase of a run, with a real broker, worker and engine: the engine goes within
seconds, a redelivered task starts nothing, and the run is tried again once and no more."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from experiments import dispatch, lifecycle
from experiments.models import Investigation, Run
from experiments.refusal import Refused
from tests.house import House, opened, wait
from workers import processes, tasks
from workers.plan import Deadlines, Workload

pytestmark = [
    pytest.mark.story,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("sglang"),
]
SLOW = ("--grandchild", "--ignore-sigterm")
# What makes each phase last, and whether an engine runs in it.
PHASES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    # Between the spawn of its leash and health: this engine never says a word.
    "launching": ((*SLOW, "--silent"), {}),
    "loading": ((*SLOW, "--load-seconds", "60"), {}),
    "warming up": ((*SLOW, "--token-seconds", "1"), {"warm_up_prompts": 1}),
    "measuring": ((*SLOW, "--token-seconds", "1"), {"warm_up_prompts": 0}),
    "stopping": (SLOW, {"max_new_tokens": 1, "repeats": 1}),
}


@pytest.fixture
def house(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> Iterator[House]:
    with opened(data_dir, tmp_path_factory.mktemp("b"), monkeypatch) as here:
        yield here


@pytest.fixture
def investigation(db: None) -> Investigation:
    return lifecycle.create_investigation(title="Slow", question="Why?")


def planned(investigation: Investigation, phase: str, prompts: Path) -> Run:
    args, changes = PHASES[phase]
    work = {"max_new_tokens": 30, "prompts_per_repeat": 4, "repeats": 2, "warm_up_prompts": 1}
    return lifecycle.add_run(
        investigation=investigation,
        title=phase,
        engine="sglang",
        server_args=args,
        workload=Workload(prompts=str(prompts), **{**work, **changes}),
        deadlines=Deadlines(launch=90, ready=90, request=90, stop=60),
    )


def child_of(worker_pid: int) -> int:
    found = [p.pid for p in processes.table().values() if p.parent == worker_pid and not p.zombie]
    assert len(found) == 1, found
    return found[0]


def in_phase(run: Run, phase: str) -> bool:
    run.refresh_from_db()
    assert run.state != Run.State.FAILED, run.reason
    return run.phase == phase and run.state == Run.State.RUNNING


def tried_again(run: Run) -> bool:
    """Whether a worker has taken the run a second time; cleans up meanwhile, as beat does."""
    tasks.reap()
    time.sleep(1)
    return Run.objects.get(pk=run.pk).attempt == 2


def test_kill_9_in_every_phase_ends_the_engine_and_starts_no_second_one(
    house: House, investigation: Investigation, prompts: Path
) -> None:
    worker = house.start_worker()
    for phase in PHASES:
        run = planned(investigation, phase, prompts)
        dispatch.queue_run(run)
        if phase == "launching":  # over in a moment; the engine's being there is its end
            wait(house.engines)
        else:
            wait(lambda run=run, phase=phase: in_phase(run, phase))
        before = set(house.engines())
        assert before, phase
        os.kill(child_of(worker.pid), signal.SIGKILL)
        begin = time.monotonic()
        wait(lambda: not house.engines(), 5)
        assert time.monotonic() - begin < 5, phase
        # The message comes again at once; the row is still claimed, so that nothing starts.
        time.sleep(1.5)
        assert house.engines() == [], phase
        run.refresh_from_db()
        assert (run.state, run.attempt) == (Run.State.RUNNING, 1), phase
        # Lost: queued again, once; the second attempt is stopped quickly.
        old = timezone.now() - timedelta(minutes=1)
        run.plan["deadlines"]["stop"] = 1
        Run.objects.filter(pk=run.pk).update(heartbeat_at=old, plan=run.plan)
        wait(lambda run=run: tried_again(run))
        with contextlib.suppress(Refused):  # the quick one may have ended by itself
            dispatch.cancel_run(run)
        wait(lambda run=run: Run.objects.get(pk=run.pk).state in Run.ENDED)
        wait(lambda: not house.engines(), 10)
        assert Run.objects.get(pk=run.pk).attempt == 2, phase
    assert worker.poll() is None


def test_a_run_that_loses_its_worker_twice_is_lost(
    house: House, investigation: Investigation, prompts: Path
) -> None:
    worker = house.start_worker()
    run = planned(investigation, "measuring", prompts)
    dispatch.queue_run(run)
    for attempt in (1, 2):
        wait(lambda n=attempt: in_phase(run, "measuring") and run.attempt == n)
        os.kill(child_of(worker.pid), signal.SIGKILL)
        wait(lambda: not house.engines(), 5)
        old = timezone.now() - timedelta(minutes=1)
        Run.objects.filter(pk=run.pk).update(heartbeat_at=old)
        tasks.reap()
    run.refresh_from_db()
    assert (run.state, run.attempt) == (Run.State.LOST, 2)
    assert "for the second time" in run.reason
    time.sleep(1)
    assert house.engines() == []
