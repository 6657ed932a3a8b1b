"""Who measures a run: claimed, kept alive, finished and reaped by conditional UPDATEs alone.

No row is read and then written: each change names the state and the claim it expects, so that of
two workers, or of a worker and a reaper, exactly one wins. Not how a run is queued (dispatch).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from experiments.models import Prediction, Run
from workers.plan import Progress

# A run whose worker died is tried once more; twice in a row is no accident.
MOST_ATTEMPTS = 2


@dataclass(frozen=True)
class Beat:
    """alive: the claim still holds. cancel: a person asked for the run to stop."""

    alive: bool
    cancel: bool


def claim_run(
    run_id: int,
    *,
    token: str,
    worker: str,
    name: str = "",
    gpus: int | None = None,
    lacks: Iterable[str] = (),
) -> Run | None:
    """Take a queued run for the task that holds `token`; None when there is nothing to take.

    A worker that gives its `name` takes only what it can run: runs for it or for any worker, that
    need no more than its `gpus` (None: not known) and none of the engines it `lacks`. Claiming
    freezes the newest prediction of the run's hypothesis and binds that version to it.
    """
    now = timezone.now()
    with transaction.atomic():
        fit = Run.objects.filter(pk=run_id, state=Run.State.QUEUED).exclude(engine__in=lacks)
        if name:
            fit = fit.filter(needs_worker__in=("", name))
        if gpus is not None:
            fit = fit.filter(needs_gpus__lte=gpus)
        won = fit.update(
            state=Run.State.RUNNING,
            claim=token,
            worker=worker[:200],
            attempt=F("attempt") + 1,
            claimed_at=now,
            heartbeat_at=now,
            phase="preparing",
            phase_detail="",
            fraction=None,
            reason="",
        )
        if not won:
            return None
        run = Run.objects.select_related("investigation", "hypothesis").get(pk=run_id)
        if run.prediction_id is None:
            bind_prediction(run, now=now)
    return run


def bind_prediction(run: Run, *, now: datetime) -> None:
    """Freeze the newest prediction of the run's hypothesis, if any, and tie it to `run`."""
    newest = Prediction.objects.filter(hypothesis=run.hypothesis_id).order_by("-version").first()
    if run.hypothesis_id is None or newest is None:
        return
    Prediction.objects.filter(pk=newest.pk, frozen_at=None).update(frozen_at=now)
    Run.objects.filter(pk=run.pk, prediction=None).update(prediction=newest)
    run.prediction = newest


def beat(run_id: int, *, token: str, progress: Progress | None = None) -> Beat:
    """Say that the holder of `token` is alive and where it stands; learn whether to go on."""
    values: dict[str, Any] = {"heartbeat_at": timezone.now()}
    if progress is not None:
        values |= {
            "phase": progress.phase,
            "phase_detail": progress.detail[:200],
            "fraction": progress.fraction,
        }
    mine = Run.objects.filter(pk=run_id, state=Run.State.RUNNING, claim=token)
    if not mine.update(**values):
        return Beat(alive=False, cancel=False)
    return Beat(alive=True, cancel=mine.filter(cancel_requested_at__isnull=False).exists())


def finish_run(run_id: int, *, token: str, state: str, values: Mapping[str, Any]) -> bool:
    """End a claimed run with `state` and other column `values`; False when the claim is lost."""
    if state not in Run.ENDED:
        raise ValueError(f"{state!r} is no end of a run")
    mine = Run.objects.filter(pk=run_id, state=Run.State.RUNNING, claim=token)
    return bool(mine.update(state=state, **values))


def request_cancel(run: Run) -> str:
    """Stop a run: at once while it waits, by its worker while it runs; returns the state after.

    A run that has ended stays as it ended. Asking twice changes nothing.
    """
    now = timezone.now()
    rows = Run.objects.filter(pk=run.pk)
    waiting = (Run.State.DRAFT, Run.State.QUEUED)
    if not rows.filter(state__in=waiting).update(
        state=Run.State.CANCELLED, ended_at=now, cancel_requested_at=now, reason="cancelled"
    ):
        rows.filter(state=Run.State.RUNNING, cancel_requested_at=None).update(
            cancel_requested_at=now
        )
    run.refresh_from_db()
    return run.state


def reap_lost(*, now: datetime, host: str | None = None) -> list[int]:
    """Take runs away from workers that were not heard of for too long; returns the runs' ids.

    A run goes back to the queue once; the second time it is lost, with the reason. A run whose
    cancelling was asked for is cancelled. `host`: only runs whose worker name begins with it.
    """
    limit = settings.RUN_LOST_AFTER_SECONDS
    stale = Run.objects.filter(
        state=Run.State.RUNNING, heartbeat_at__lt=now - timedelta(seconds=limit)
    )
    if host:
        stale = stale.filter(worker__startswith=host)
    reaped = []
    for run in stale:
        silence = f"worker {run.worker or 'unknown'} has not been heard of for {limit} s"
        values: dict[str, Any]
        if run.cancel_requested_at:
            values = {
                "state": Run.State.CANCELLED,
                "ended_at": now,
                "reason": f"cancelled; its {silence}",
            }
        elif run.attempt < MOST_ATTEMPTS:
            values = {
                "state": Run.State.QUEUED,
                "queued_at": now,
                "claim": "",
                "heartbeat_at": None,
                "phase": "",
                "phase_detail": "",
                "fraction": None,
                "reason": f"queued again: {silence}",
            }
        else:
            values = {
                "state": Run.State.LOST,
                "ended_at": now,
                "reason": f"{silence}, for the second time; it is not tried again by itself",
            }
        held = Run.objects.filter(
            pk=run.pk, state=Run.State.RUNNING, claim=run.claim, heartbeat_at=run.heartbeat_at
        )
        if held.update(**values):
            reaped.append(run.pk)
    return reaped
