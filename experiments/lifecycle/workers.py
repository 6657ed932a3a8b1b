"""Workers as they tell of themselves, and which of them may run what; it measures nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from experiments.models import Run, Worker
from experiments.queries.workers import alive
from experiments.refusal import Refused


@dataclass(frozen=True)
class Told:
    """What a worker says of itself. gpu_count: None where it cannot be known. lacks: engine ->
    why it cannot be run there."""

    name: str
    host: str
    pid: int
    version: str = ""
    gpu_count: int | None = None
    gpus: Sequence[Mapping[str, Any]] = ()
    gpu_problem: str = ""
    lacks: Mapping[str, str] = field(default_factory=dict)


def hear_of(told: Told, *, started_at: datetime, now: datetime) -> None:
    """A worker registers or is heard of again; a second one of its name takes the row over."""
    Worker.objects.update_or_create(
        name=told.name[:100],
        defaults={
            "host": told.host[:200],
            "pid": told.pid,
            "version": told.version[:40],
            "gpu_count": told.gpu_count,
            "gpus": [dict(gpu) for gpu in told.gpus],
            "gpu_problem": told.gpu_problem,
            "lacks": dict(told.lacks),
            "started_at": started_at,
            "heartbeat_at": now,
            "stopped_at": None,
        },
    )


def say_good_bye(*, name: str, pid: int, now: datetime) -> None:
    """A worker stops in order; nothing where another one has taken the name over."""
    Worker.objects.filter(name=name, pid=pid, stopped_at=None).update(stopped_at=now)


def forget(worker: Worker) -> None:
    """Take a worker that is gone from the list. Raises Refused for one that was just heard of."""
    if worker.stopped_at is None and alive(worker):
        raise Refused(f"{worker.name} is alive; stop it first")
    worker.delete()


def must_be_known(name: str) -> None:
    """Raises Refused, with those that are known, for the name of no worker; "" is any worker."""
    if name and not Worker.objects.filter(name=name).exists():
        known = ", ".join(Worker.objects.values_list("name", flat=True)) or "none yet"
        raise Refused(f"there is no worker {name!r}; known are: {known}")


def bind(run: Run, name: str) -> None:
    """Let only the worker of this name measure the run, any worker where it is empty.

    Raises Refused for an unknown worker, and for a run that is measured already.
    """
    must_be_known(name)
    waiting = Run.objects.filter(pk=run.pk, state__in=(Run.State.DRAFT, Run.State.QUEUED))
    if not waiting.update(needs_worker=name):
        raise Refused(f"{run.label} is no draft and not queued; a worker has it or had it")
    run.needs_worker = name
