"""The workers: who is alive, what each may run, and why a queued run waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from experiments.models import Run, Worker


def alive(worker: Worker, *, now: datetime | None = None) -> bool:
    """Heard of within the time after which a run counts as lost, and not stopped."""
    limit = (now or timezone.now()) - timedelta(seconds=settings.RUN_LOST_AFTER_SECONDS)
    return worker.stopped_at is None and worker.heartbeat_at > limit


def why_not(worker: Worker, run: Run) -> str:
    """Why a worker may not claim a run, as the end of a sentence; "" where it may."""
    if run.needs_worker and run.needs_worker != worker.name:
        return f"the plan is for {run.needs_worker} alone"
    if run.engine in worker.lacks:
        return str(worker.lacks[run.engine])
    if worker.gpu_count is not None and worker.gpu_count < run.needs_gpus:
        return f"it has {worker.gpu_count} GPU{'' if worker.gpu_count == 1 else 's'}"
    return ""


def able(run: Run, workers: Iterable[Worker]) -> list[Worker]:
    """Those that may claim a run, dead ones included."""
    return [worker for worker in workers if not why_not(worker, run)]


def choices(run: Run) -> list[tuple[str, str]]:
    """Each worker by name, with why it would not measure the run, "" where it would: 1 query."""
    found = []
    for worker in Worker.objects.order_by("name"):
        unbound = Run(engine=run.engine, needs_gpus=run.needs_gpus)
        why = why_not(worker, unbound) or ("" if alive(worker) else "not running")
        found.append((worker.name, why))
    return found


def worker_names() -> list[str]:
    """The workers that have ever told of themselves, by name."""
    return list(Worker.objects.order_by("name").values_list("name", flat=True))


def needs_in_words(run: Run) -> str:
    """What a run needs of its worker: "the engine sglang and 8 GPUs"."""
    parts = [f"the engine {run.engine}"]
    if run.needs_gpus:
        parts.append(f"{run.needs_gpus} GPU{'' if run.needs_gpus == 1 else 's'}")
    if run.needs_worker:
        parts.append(f"the worker {run.needs_worker}")
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def waits_in_vain(run: Run, workers: Sequence[Worker], *, now: datetime | None = None) -> str:
    """Why no worker that is alive can run a queued run, as one sentence; "" where one can, and
    where no worker has ever told of itself."""
    if run.state != Run.State.QUEUED or not workers:
        return ""
    living = [worker for worker in workers if alive(worker, now=now)]
    if able(run, living):
        return ""
    said = [f"{worker.name}: {why_not(worker, run)}" for worker in living]
    said += [f"{worker.name} could and is not running" for worker in able(run, workers)]
    if run.needs_worker and run.needs_worker not in {worker.name for worker in workers}:
        said.append(f"{run.needs_worker} is not known")
    because = "; ".join(said) or "none is running"
    return f"No worker that is alive can run it: it needs {needs_in_words(run)}. {because}."


def why_it_waits(run: Run) -> str:
    """`waits_in_vain` for one run: a query for a queued run, none for others."""
    if run.state != Run.State.QUEUED:
        return ""
    return waits_in_vain(run, list(Worker.objects.all()))


@dataclass(frozen=True)
class WorkerRow:
    """One worker. runs: what it measures now."""

    worker: Worker
    alive: bool
    runs: Sequence[Run]


@dataclass(frozen=True)
class WaitingRun:
    """One queued run with the worst there is to say about it, "" where its turn will come."""

    run: Run
    problem: str


@dataclass(frozen=True)
class WorkersPage:
    """All workers, the queue in its order, and running runs whose worker is not in the list."""

    workers: Sequence[WorkerRow]
    waiting: Sequence[WaitingRun]
    elsewhere: Sequence[Run]

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits: else nothing here changes within seconds."""
        return bool(self.waiting or self.elsewhere or any(row.runs for row in self.workers))


def workers_page(*, now: datetime | None = None) -> WorkersPage:
    """Who is there, what runs and what waits: 2 queries."""
    now = now or timezone.now()
    workers = list(Worker.objects.all())
    active = list(
        Run.objects.filter(state__in=Run.ACTIVE, by_script=False)
        .select_related("investigation")
        .defer("server_info", "argv", "env", "untried", "shown")
        .order_by("queued_at", "pk")
    )
    running = [run for run in active if run.state == Run.State.RUNNING]
    rows = [
        WorkerRow(worker, alive(worker, now=now), [r for r in running if _by(r) == worker.name])
        for worker in workers
    ]
    names = {worker.name for worker in workers}
    waiting = [
        WaitingRun(run, waits_in_vain(run, workers, now=now))
        for run in active
        if run.state == Run.State.QUEUED
    ]
    return WorkersPage(rows, waiting, [run for run in running if _by(run) not in names])


def _by(run: Run) -> str:
    """The name of the worker that has a run: it claims as NAME:PID."""
    return run.worker.rpartition(":")[0]
