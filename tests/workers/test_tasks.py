"""From a queued row to a saved outcome, called as Celery calls it, with a fake engine."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from experiments import dispatch, lifecycle
from experiments.models import Run
from tests.workers.conftest import of_folder
from workers import lease, reaper, runner, tasks
from workers.plan import Deadlines, RunOutcome, RunPlan, Workload

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("data_dir", "sglang", "sent"),
]

MakeRun = Callable[..., Run]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of runs that were sent to the broker, of which there is none here."""
    ids: list[int] = []

    def send(pk: int, task: str = "", queue: str = "") -> bool:
        ids.append(pk)
        return True

    monkeypatch.setattr(dispatch, "_send", send)
    monkeypatch.setattr(dispatch, "_messages_waiting", lambda queue: 0)
    return ids


@pytest.fixture
def make_run(prompts: Path, settings: Any) -> MakeRun:
    settings.RUN_HEARTBEAT_SECONDS = 0.1
    investigation = lifecycle.create_investigation(title="Slow", question="Why?")

    def make(*server_args: str, queued: bool = True, workload: dict[str, Any] | None = None) -> Run:
        work = {"prompts": str(prompts), "max_new_tokens": 16, "prompts_per_repeat": 2}
        run = lifecycle.add_run(
            investigation=investigation,
            title="a run",
            engine="sglang",
            server_args=server_args,
            workload=Workload(**{**work, "repeats": 2, "warm_up_prompts": 0, **(workload or {})}),
            deadlines=Deadlines(launch=20, ready=30, request=20, stop=5),
        )
        if queued:
            dispatch.queue_run(run)
        return run

    return make


def in_background(run: Run) -> threading.Thread:
    from django.db import connection

    def work() -> None:
        try:
            tasks.measure(run.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def wait(done: Callable[[], Any], seconds: float = 20.0) -> Any:
    until = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)
    return found


def phase(run: Run, *names: str) -> bool:
    run.refresh_from_db()
    return run.phase in names


def test_a_queued_run_is_measured_and_saved(make_run: MakeRun, settings: Any) -> None:
    run = make_run()
    tasks.measure(run.pk)
    run.refresh_from_db()
    assert (run.state, run.reason, run.attempt) == ("done", "", 1)
    assert run.repeats.count() == 2
    assert run.repeats.get(index=1).tokens == 32
    assert run.worker.endswith(f":{os.getpid()}")
    folder = Path(settings.RUN_DIR) / run.plan["run"]
    assert (folder / reaper.SAVED).is_file()
    assert not (folder / reaper.OUTCOME).exists()
    assert not lease.is_held(folder / reaper.HELD)


def test_a_redelivered_task_starts_nothing(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    tasks.measure(run.pk)
    monkeypatch.setattr(runner, "measure", lambda *_, **__: pytest.fail("measured again"))
    tasks.measure(run.pk)
    draft = make_run(queued=False)
    tasks.measure(draft.pk)
    draft.refresh_from_db()
    assert draft.state == "draft"
    tasks.measure(987654321)


def test_two_tasks_for_one_run_measure_it_once(make_run: MakeRun) -> None:
    run = make_run()
    first, second = in_background(run), in_background(run)
    first.join()
    second.join()
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("done", 1)
    assert run.repeats.count() == 2


def test_two_runs_never_measure_at_once_on_one_machine(make_run: MakeRun) -> None:
    runs = [make_run(), make_run()]
    threads = [in_background(run) for run in runs]
    for thread in threads:
        thread.join()
    for run in runs:
        run.refresh_from_db()
        assert run.state == "done"
    first, second = sorted(runs, key=lambda run: run.claimed_at or timezone.now())
    assert first.ended_at is not None
    assert second.claimed_at is not None
    assert first.ended_at <= second.claimed_at


def test_a_busy_machine_leaves_the_run_queued(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> None:
    monkeypatch.setattr(tasks, "MACHINE_PATIENCE", 0.2)
    run = make_run()
    with lease.hold(
        data_dir / "run" / f"measure.{socket.gethostname()}.lock", patience=0, give_up=lambda: True
    ) as free:
        assert free
        tasks.measure(run.pk)
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("queued", 0)


def test_the_page_learns_phase_and_progress_while_it_runs(make_run: MakeRun) -> None:
    run = make_run("--token-seconds", "0.05")
    thread = in_background(run)
    wait(lambda: phase(run, "measuring"))
    wait(lambda: run.refresh_from_db() or "repeat 2 of 2" in run.phase_detail)
    assert run.fraction is not None
    assert 0.5 < run.fraction < 1
    thread.join()


@pytest.mark.parametrize("at", ["loading", "measuring"])
def test_a_cancel_request_ends_the_run_and_its_engine(make_run: MakeRun, at: str) -> None:
    run = make_run("--token-seconds", "0.2", "--load-seconds", "1", "--grandchild")
    thread = in_background(run)
    wait(lambda: phase(run, at))
    assert dispatch.cancel_run(run) == "running"
    thread.join(15)
    run.refresh_from_db()
    assert (run.state, run.reason) == ("cancelled", "Cancelled on request.")


def test_a_run_that_was_given_away_is_stopped_and_not_saved(
    make_run: MakeRun, settings: Any
) -> None:
    run = make_run("--token-seconds", "0.2")
    thread = in_background(run)
    wait(lambda: phase(run, "measuring"))
    Run.objects.filter(pk=run.pk).update(claim="another", worker="elsewhere:1")
    thread.join(15)
    assert not thread.is_alive()
    run.refresh_from_db()
    assert (run.state, run.claim) == ("running", "another")
    assert not list(Path(settings.RUN_DIR).glob("*/outcome*.json"))


def test_a_shutdown_of_the_worker_puts_the_run_back_into_the_queue(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sent: list[int]
) -> None:
    run = make_run("--token-seconds", "0.2", "--grandchild")
    thread = in_background(run)
    wait(lambda: phase(run, "measuring"))
    monkeypatch.setattr(tasks, "_shutting_down", bytearray(1))
    tasks._end()
    thread.join(15)
    run.refresh_from_db()
    assert (run.state, run.attempt, run.claim) == ("queued", 0, "")
    assert run.reason == "queued again: its worker was stopped"
    assert sent == [run.pk, run.pk]
    assert not of_folder(tmp_path)
    monkeypatch.setattr(tasks, "_shutting_down", bytearray(1))
    Run.objects.filter(pk=run.pk).update(plan=run.plan | {"server_args": []})
    tasks.measure(run.pk)
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("done", 1)


def test_a_signal_to_a_pools_child_cancels_the_run_and_then_ends_the_child(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("--token-seconds", "0.2")
    monkeypatch.setattr(tasks, "_in_pool", True)
    ended: list[str] = []

    def end(number: int, frame: Any) -> None:
        ended.append(Run.objects.get(pk=run.pk).state)

    def send() -> None:
        from django.db import connection

        wait(lambda: phase(run, "measuring"))
        connection.close()
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        sender = threading.Thread(target=send)
        sender.start()
        tasks.measure(run.pk)
        sender.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    run.refresh_from_db()
    assert (run.state, run.reason) == ("cancelled", "The task was ended by a signal.")
    assert ended == ["cancelled"]


def test_a_server_that_fails_is_a_failed_run_with_its_log_as_evidence(make_run: MakeRun) -> None:
    run = make_run("--crash-at-load")
    tasks.measure(run.pk)
    run.refresh_from_db()
    assert run.state == "failed"
    assert "FileNotFoundError: no weights in m" in run.reason
    assert run.exit_code == 3
    assert run.evidence.filter(name="server.log").count() == 1


def test_a_bug_of_the_runner_fails_the_run_instead_of_losing_it(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> RunOutcome:
        raise LookupError("ours")

    monkeypatch.setattr(runner, "measure", broken)
    run = make_run()
    tasks.measure(run.pk)
    run.refresh_from_db()
    assert run.state == "failed"
    assert "The worker itself failed (LookupError: ours)" in run.reason


def test_a_plan_that_is_none_fails_the_run(make_run: MakeRun) -> None:
    run = make_run()
    Run.objects.filter(pk=run.pk).update(plan={"run": "x"})
    tasks.measure(run.pk)
    run.refresh_from_db()
    assert run.state == "failed"
    assert "could not be prepared" in run.reason


def test_an_outcome_waits_for_a_locked_record(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    answers = iter([OperationalError("database is locked"), None])
    real = tasks.intake.take_outcome

    def locked_once(*args: Any, **kwargs: Any) -> Any:
        if problem := next(answers, None):
            raise problem
        return real(*args, **kwargs)

    monkeypatch.setattr(tasks.intake, "take_outcome", locked_once)
    tasks.measure(run.pk)
    run.refresh_from_db()
    assert run.state == "done"


def test_an_outcome_that_found_no_record_is_taken_in_by_the_reaper(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    run = make_run()
    monkeypatch.setattr(tasks, "SAVE_PATIENCE", 0.0)
    with monkeypatch.context() as away:

        def gone(*_: Any, **__: Any) -> None:
            raise OperationalError("server closed the connection unexpectedly")

        away.setattr(tasks.intake, "take_outcome", gone)
        tasks.measure(run.pk)
    run.refresh_from_db()
    assert run.state == "running"
    assert list(Path(settings.RUN_DIR).glob("*/outcome.json"))
    tasks.reap()
    run.refresh_from_db()
    assert run.state == "done"
    assert run.repeats.count() == 2
    assert not list(Path(settings.RUN_DIR).glob("*/outcome.json"))
    tasks.reap()  # nothing is left to do


def test_a_full_disk_loses_the_file_and_not_the_outcome(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reaper, "keep", full)
    run = make_run()
    tasks.measure(run.pk)
    run.refresh_from_db()
    assert (run.state, run.repeats.count()) == ("done", 2)


def test_an_outcome_that_cannot_be_saved_ends_the_run_and_stays_on_disk(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("no such column")

    monkeypatch.setattr(tasks.intake, "take_outcome", broken)
    run = make_run()
    tasks.measure(run.pk)
    run.refresh_from_db()
    assert run.state == "failed"
    assert "could not be saved (no such column)" in run.reason
    (kept,) = Path(settings.RUN_DIR).glob("*/outcome.refused.json")
    assert str(kept) in run.reason
    assert json.loads(kept.read_text())["outcome"]["state"] == "done"


def test_the_reaper_queues_a_lost_run_once_and_sends_it_again(
    make_run: MakeRun, sent: list[int]
) -> None:
    run = make_run()
    long_ago = timezone.now() - timedelta(minutes=5)
    for attempt, state in ((1, "queued"), (2, "lost")):
        assert lifecycle.claim_run(run.pk, token="t", worker="gone:1") is not None
        Run.objects.filter(pk=run.pk).update(heartbeat_at=long_ago)
        sent.clear()
        tasks.reap()
        run.refresh_from_db()
        assert (run.state, run.attempt) == (state, attempt)
        assert sent == ([run.pk] if state == "queued" else [])
        tasks.reap()
        assert len(sent) <= 1  # its message is on its way


def test_a_second_attempt_finds_a_fresh_folder_and_the_first_ones_files_aside(
    make_run: MakeRun, settings: Any
) -> None:
    run = make_run()
    folder = Path(settings.RUN_DIR) / run.plan["run"]
    folder.mkdir(parents=True)
    (folder / "server.log").write_text("of the first attempt\n")
    tasks.measure(run.pk)
    assert "first attempt" not in (folder / "server.log").read_text()
    assert (folder.with_name(f"{folder.name}.1") / "server.log").read_text().startswith("of the")


def test_the_plan_that_is_measured_is_the_rows(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    seen: list[RunPlan] = []

    def look(plan: RunPlan, **_: Any) -> RunOutcome:
        seen.append(plan)
        return RunOutcome.without_measuring(
            "failed", "looked", host="h", started_at=1.0, ended_at=2.0
        )

    monkeypatch.setattr(runner, "measure", look)
    run = make_run("--model-path", "m")
    tasks.measure(run.pk)
    assert seen[0].server_args == ("--model-path", "m")
    assert seen[0].folder == str(Path(settings.RUN_DIR) / run.plan["run"])
