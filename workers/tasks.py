"""Celery's entry points: claim, call, save. The one place where the GPU side meets the record."""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from celery import shared_task
from celery.signals import (
    celeryd_after_setup,
    worker_process_init,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, connection
from django.utils import timezone

from experiments import dispatch, dropped, groups, intake, lifecycle
from experiments.lifecycle import renderings, workers
from experiments.models import Run
from experiments.refusal import ClaimLost, Refused
from workers import engines, lease, presence, reaper, runner
from workers.heart import Beat, Heart
from workers.plan import Progress, RunOutcome, RunPlan

log = logging.getLogger(__name__)

# How long a task waits for the machine before it lets the message go; the row stays queued and is
# sent again.
MACHINE_PATIENCE = 30.0
# How long a record that cannot be reached is asked again before the outcome is left to `reap`.
SAVE_PATIENCE = 60.0
# A layout that takes longer is ended with its process; the row is taken over, at most twice.
RENDER_LIMIT = 300

# Set by the worker's main process, read by the child that measures: shared memory, made before the
# children are forked.
_shutting_down = mmap.mmap(-1, 1)
_by_signal = False
_in_pool = False  # whether this process is a worker's child, made to run tasks
_presence: presence.Presence | None = None  # in a measuring worker's main process


@shared_task(name="workers.tasks.measure")
def measure(run_id: int) -> None:
    """Measure a queued run; does nothing for a run that another task has or that is not queued."""
    with _machine(run_id) as free:
        token = secrets.token_hex(16)
        able = presence.look().ability
        run = None
        if free:
            run = lifecycle.claim_run(
                run_id,
                token=token,
                worker=f"{able.worker}:{os.getpid()}",
                name=able.worker,
                gpus=able.gpus,
                lacks=able.lacks,
            )
        if run is None:
            return
        reaper.sweep(settings.RUN_DIR)  # an engine without a worker would be measured along
        try:
            plan = lifecycle.plan_for_worker(run)
            reaper.fresh_folder(Path(plan.folder))
        except (Refused, OSError, KeyError, TypeError) as problem:
            _fail(run_id, token, f"The run could not be prepared: {problem}")
            return
        _carry_out(run_id, token, plan)


@shared_task(name="workers.tasks.reap")
def reap() -> None:
    """Clean up after dead workers: engines, outcomes, claims, lost messages. Safe at any time."""
    try:
        for swept in reaper.sweep(settings.RUN_DIR):
            log.warning("ended the server that a dead worker left: %s", swept)
        for found in reaper.unsaved(settings.RUN_DIR):
            _save(found.run_id, found.token, found.outcome, found.path)
        if lost := lifecycle.reap_lost(now=timezone.now()):
            log.warning("runs that have lost their worker: %s", lost)
            dispatch.send_again(lost)
        groups.advance_all()
        dispatch.send_waiting(now=timezone.now())
        dispatch.send_renderings(renderings.waiting(now=timezone.now()))
    except (OperationalError, InterfaceError) as problem:
        log.warning("the record cannot be reached: %s", problem)
        connection.close()


@shared_task(name="workers.tasks.render_report", time_limit=RENDER_LIMIT)
def render_report(rendering_id: int) -> None:
    """Make a report's PDF; does nothing where another task has it or it is made."""
    # Here, so that a worker that only measures does not load the report's packages.
    from experiments.reports import making

    making.make(rendering_id)


@shared_task(name="workers.tasks.prune")
def prune() -> None:
    """Let go of old drafts' PDFs, and of files that nothing has needed for a day."""
    try:
        if gone := renderings.prune(now=timezone.now()):
            log.info("dropped %s PDFs of old drafts", gone)
        dropped.sweep()
    except (OperationalError, InterfaceError, OSError) as problem:
        log.warning("nothing was tidied up: %s", problem)
        connection.close()


@worker_ready.connect
def _begin(**_: Any) -> None:
    reaper.sweep(settings.RUN_DIR)


@celeryd_after_setup.connect
def _also_by_name(instance: Any, **_: Any) -> None:
    """A worker that measures also takes what is sent to it alone, and tells of itself."""
    if dispatch.QUEUE in instance.app.amqp.queues.consume_from:
        instance.app.amqp.queues.select_add(dispatch.queue_of(presence.name()))
        worker_ready.connect(_appear)


# SQLite notes the locks of a process in its memory, which a fork copies: a pool's child that is
# born while the other thread writes would take the record for locked, for good. So there is no
# birth during a write, and no connection left open after it.
_no_birth = threading.Lock()
os.register_at_fork(
    before=_no_birth.acquire,
    after_in_parent=_no_birth.release,
    after_in_child=_no_birth.release,
)


def _appear(**_: Any) -> None:
    global _presence
    started_at = timezone.now()

    def tell(seen: presence.Seen) -> None:
        told = workers.Told(
            name=seen.ability.worker,
            host=seen.host,
            pid=seen.pid,
            version=seen.version,
            gpu_count=seen.ability.gpus,
            gpus=seen.gpus,
            gpu_problem=seen.problem,
            lacks=seen.ability.lacks,
        )
        with _no_birth:
            try:
                workers.hear_of(told, started_at=started_at, now=timezone.now())
            except Error as problem:
                log.warning("this worker could not register: %s", problem)
            finally:
                connection.close()

    _presence = presence.Presence(tell, done=lambda: connection.close())
    _presence.start()


@worker_shutdown.connect
def _disappear(**_: Any) -> None:
    if _presence is None:
        return
    _presence.stop()
    with contextlib.suppress(Error):  # the record is away: the page says so in half a minute
        workers.say_good_bye(name=presence.name(), pid=os.getpid(), now=timezone.now())
    connection.close()


@worker_process_init.connect
def _born(**_: Any) -> None:
    global _in_pool
    _in_pool = True


@worker_shutting_down.connect
def _end(**_: Any) -> None:
    _shutting_down[0] = 1


# ---- the steps -----------------------------------------------------------------------------------


@contextlib.contextmanager
def _machine(run_id: int) -> Iterator[bool]:
    """Whether this machine is free for the run; one that runs elsewhere needs none of it."""
    engine = Run.objects.filter(pk=run_id, state=Run.State.QUEUED).values_list("engine", flat=True)
    known = engines.ENGINES.get(engine[0]) if engine else None
    if known is not None and not known.launches:
        yield True
        return
    # By host: workers of several hosts may share a data folder.
    path = settings.DATA_DIR / "run" / f"measure.{socket.gethostname()}.lock"
    with lease.hold(path, patience=MACHINE_PATIENCE, give_up=lambda: bool(_leaving())) as free:
        yield free and bool(engine)


def _carry_out(run_id: int, token: str, plan: RunPlan) -> None:
    folder = Path(plan.folder)
    with (
        lease.hold(folder / reaper.HELD, patience=5, give_up=lambda: False),
        _until_signalled(),
        Heart(
            lambda progress: _beat(run_id, token, progress),
            every=settings.RUN_HEARTBEAT_SECONDS,
            done=lambda: connection.close(),  # this name means another one in each thread
            leaving=_leaving,
        ) as heart,
    ):
        outcome = _measured(plan, heart)
        if heart.lost:
            return
        if _shutting_down[0] and outcome.state == "cancelled":
            # Stopped with its worker: it is measured again when a worker is there again.
            dispatch.give_back(run_id, token=token, reason="its worker was stopped")
            return
        path: Path | None = None
        try:
            path = reaper.keep(folder, run_id=run_id, token=token, outcome=outcome)
        except OSError as problem:
            log.error("%s: the outcome could not be kept as a file: %s", plan.run, problem)
        _save(run_id, token, outcome, path, patience=SAVE_PATIENCE)


def _measured(plan: RunPlan, heart: Heart) -> RunOutcome:
    started_at = time.time()
    try:
        return runner.measure(plan, on_progress=heart.tell, should_stop=heart.should_stop)
    except Exception as bug:  # ours: the run must not hang on it
        log.exception("%s: the runner failed", plan.run)
        return RunOutcome.without_measuring(
            "failed",
            f"The worker itself failed ({type(bug).__name__}: {bug}); its log has the trace.",
            host=socket.gethostname(),
            started_at=started_at,
            ended_at=time.time(),
        )


def _beat(run_id: int, token: str, progress: Progress) -> Beat | None:
    try:
        return lifecycle.beat(run_id, token=token, progress=progress)
    except Error as problem:
        log.warning("run %s: no heartbeat, the record cannot be reached: %s", run_id, problem)
        connection.close()
        return None


def _save(
    run_id: int, token: str, outcome: RunOutcome, path: Path | None, *, patience: float = 0.0
) -> None:
    """Into the record, trying for `patience` seconds; what is left in `path` is tried again later.

    Whatever else goes wrong ends the run as failed: it must not be measured again for that.
    """
    until = time.monotonic() + patience
    while True:
        try:
            intake.take_outcome(run_id, token=token, outcome=outcome)
        except (OperationalError, InterfaceError) as problem:
            log.warning("run %s: its outcome waits, the record says: %s", run_id, problem)
            connection.close()
            if time.monotonic() > until:
                return
            time.sleep(1)
            continue
        except ClaimLost as lost:
            log.warning("run %s: %s", run_id, lost)
            name = reaper.REFUSED
        except Exception as bug:
            log.exception("run %s: its outcome could not be saved", run_id)
            where = f"; it lies in {path.with_name(reaper.REFUSED)}" if path else ""
            _fail(run_id, token, f"The outcome could not be saved ({bug}){where}.")
            name = reaper.REFUSED
        else:
            name = reaper.SAVED
        if path is not None:
            reaper.settle(path, name)
        _go_on(run_id)
        return


def _go_on(run_id: int) -> None:
    """The next run of a sweep or comparison; what goes wrong here is made good by `reap`."""
    try:
        groups.advance_after(run_id)
    except (Refused, Error) as problem:
        log.warning("run %s: its group did not go on: %s", run_id, problem)
        connection.close()


def _fail(run_id: int, token: str, reason: str) -> None:
    values = {"reason": reason[:2000], "ended_at": timezone.now()}
    lifecycle.finish_run(run_id, token=token, state=Run.State.FAILED, values=values)


# ---- the worker's own end ------------------------------------------------------------------------


def _leaving() -> str:
    """Why this worker must stop, "" while it may go on."""
    if _shutting_down[0]:
        return "The worker was stopped."
    return "The task was ended by a signal." if _by_signal else ""


@contextlib.contextmanager
def _until_signalled() -> Iterator[None]:
    """In a pool's child, let SIGTERM end the run in order before it ends the process."""
    global _by_signal
    if not _in_pool or threading.current_thread() is not threading.main_thread():
        yield  # not ours to handle: the worker itself, or a program around it
        return

    def note(number: int, frame: FrameType | None) -> None:
        global _by_signal
        _by_signal = True

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if _by_signal:
            _by_signal = False
            os.kill(os.getpid(), signal.SIGTERM)  # whoever sent it waits for our end
