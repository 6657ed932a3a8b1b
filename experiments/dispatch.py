"""How a run gets to a worker: queued in the record first, sent on commit, sent again where the
message was lost; it measures nothing and imports no worker."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from amqp.exceptions import ChannelError
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from kombu import Connection
from kombu.exceptions import OperationalError

from experiments.claims import request_cancel
from experiments.models import Rendering, Run, Worker
from experiments.queries.workers import able
from experiments.refusal import Refused
from specdebug.celery import app
from specdebug.sglang import ranks

log = logging.getLogger(__name__)

TASK = "workers.tasks.measure"
QUEUE = "measure"
LEASING = ("sglang",)  # engines that take whole GPUs; workers.engines has the same in `gpus`
RENDER, HOUSE = "workers.tasks.render_report", "house"
# A message younger than this may still be on its way, or with a worker that waits for its machine.
SEND_AGAIN_AFTER_SECONDS = 15


def queue_run(run: Run) -> bool:
    """Queue a draft; False when it is queued or running already.

    The row counts and the message only wakes a worker: with the broker away the row stays queued
    and `send_waiting` sends it later. Raises Refused for a run that has ended.
    """
    won = Run.objects.filter(pk=run.pk, state=Run.State.DRAFT, recorded=False).update(
        state=Run.State.QUEUED, queued_at=timezone.now(), reason="", needs_gpus=gpus_of(run)
    )
    run.refresh_from_db()
    if won:
        pk = run.pk
        transaction.on_commit(lambda: _send_run(pk))
        return True
    if run.state in Run.ACTIVE:
        return False
    raise Refused(f"{run.label} is {run.get_state_display()}; repeat it to measure it again")


def gpus_of(run: Run) -> int:
    """GPUs on one host that a run's plan needs."""
    if run.engine not in LEASING:
        return 0
    return ranks.gpus_needed(ranks.command_of(run.plan.get("server_args", [])))


def cancel_run(run: Run) -> str:
    """Ask a run to stop: at once while it waits, by its worker while it runs; the state after."""
    return request_cancel(run)


def give_back(run_id: int, *, token: str, reason: str) -> bool:
    """Put a run back into the queue, its worker having to leave; False when the claim is lost.

    It counts as no attempt: those are limited to stop a run that kills its workers. A run whose
    cancelling was asked for is cancelled.
    """
    now = timezone.now()
    mine = Run.objects.filter(pk=run_id, state=Run.State.RUNNING, claim=token)
    if mine.filter(cancel_requested_at__isnull=False).update(
        state=Run.State.CANCELLED, ended_at=now, reason="cancelled"
    ):
        return True
    won = mine.update(
        state=Run.State.QUEUED,
        queued_at=now,
        claim="",
        heartbeat_at=None,
        attempt=F("attempt") - 1,
        phase="",
        phase_detail="",
        fraction=None,
        reason=f"queued again: {reason}",
    )
    if won:
        transaction.on_commit(lambda: _send_run(run_id))
    return bool(won)


def send_again(ids: Iterable[int]) -> None:
    """Send those of these runs that are queued: their messages went with the workers that had
    taken them."""
    for pk in Run.objects.filter(pk__in=ids, state=Run.State.QUEUED).values_list("pk", flat=True):
        _send_run(pk)


def send_waiting(*, now: datetime) -> list[int]:
    """Send queued runs again that no message is there for; the runs' ids, oldest first.

    Nobody can ask a broker which runs it knows. An empty queue though holds none, and what a worker
    has already taken is harmless to send twice: of two tasks one gets the claim.
    """
    waiting = Run.objects.filter(
        state=Run.State.QUEUED, queued_at__lt=now - timedelta(seconds=SEND_AGAIN_AFTER_SECONDS)
    ).order_by("queued_at", "pk")
    rows = list(waiting.only("pk", "engine", "needs_gpus", "needs_worker"))
    workers = list(Worker.objects.all()) if rows else []
    depths: dict[str, int | None] = {}
    sent = []
    for run in rows:
        queues = queues_for(run, workers)
        for queue in queues:
            if queue not in depths:
                depths[queue] = _messages_waiting(queue)
        if _send_to([queue for queue in queues if depths[queue] == 0], run.pk):
            sent.append(run.pk)
    return sent


def queue_of(name: str) -> str:
    """The queue of one worker alone."""
    return f"{QUEUE}.{name}"


def queues_for(run: Run, workers: Sequence[Worker]) -> list[str]:
    """Where a run's message goes: to all, or to each worker alone that can run it.

    Several messages for one run do no harm, for one task gets the claim. None where no worker that
    was ever heard of can: the row waits until there is one.
    """
    fit = able(run, workers)
    if len(fit) == len(workers):
        return [QUEUE]
    return [queue_of(worker.name) for worker in fit]


def _send_run(pk: int) -> bool:
    run = Run.objects.only("pk", "engine", "needs_gpus", "needs_worker").filter(pk=pk).first()
    if run is None:
        return False
    return _send_to(queues_for(run, list(Worker.objects.all())), pk)


def _send_to(queues: Sequence[str], pk: int) -> bool:
    """To each of the queues; whether one of them took it."""
    took = [_send(pk, queue=queue) for queue in queues]
    return any(took)


def send_rendering(row: Rendering) -> None:
    """Wake a worker for a PDF that waits, once the row is there to be seen."""
    if row.state == Rendering.State.QUEUED:
        pk = row.pk
        transaction.on_commit(lambda: _send(pk, RENDER, HOUSE))


def send_renderings(ids: Iterable[int]) -> list[int]:
    """Send PDFs again that no message is there for; their ids."""
    waiting = list(ids)
    if not waiting or _messages_waiting(HOUSE) != 0:
        return []
    return [pk for pk in waiting if _send(pk, RENDER, HOUSE)]


def _send(pk: int, task: str = TASK, queue: str = QUEUE) -> bool:
    """False where the broker is away; the row is still queued then."""
    try:
        with _connection() as connection:
            app.send_task(task, args=[pk], queue=queue, retry=False, connection=connection)
    except (OperationalError, OSError) as problem:
        log.warning("%s %s stays queued, the broker does not answer: %s", task, pk, problem)
        return False
    return True


def _messages_waiting(queue: str = QUEUE) -> int | None:
    """Messages in a queue that no worker has taken; None where the broker is away."""
    try:
        with _connection() as connection:
            channel: Any = connection.default_channel
            return int(channel.queue_declare(queue, passive=True).message_count)
    except ChannelError:
        return 0  # an empty queue is none for Redis
    except (OperationalError, OSError) as problem:
        log.warning("the broker does not answer: %s", problem)
        return None


def _connection() -> Connection:
    """A connection that fails at once: somebody waits for this answer on a page."""
    options = {**app.conf.broker_transport_options, "max_retries": 1, "interval_start": 0}
    return app.connection_for_write(transport_options=options)
