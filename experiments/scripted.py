"""The end of a run that a program outside measured: its log becomes evidence, and the same readers,
findings and verdicts follow as for a worker's run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

from django.db import transaction

from experiments import intake, streams
from experiments.lifecycle.text import needed
from experiments.models import Run
from experiments.refusal import Refused
from workers.plan import Exit, RunOutcome

LONGEST_REASON = 2000


def finish_scripted_run(
    run: Run,
    *,
    state: Literal["done", "failed", "cancelled"] = "done",
    reason: str = "",
    server_info: Mapping[str, Any] | None = None,
    versions: Mapping[str, str] | None = None,
    exit_code: int | None = None,
) -> Run:
    """End the run with what was sent for it; ending it again in the same way changes nothing.

    Raises Refused for another end than the one it has, and for a failure without a reason.
    """
    if not run.by_script:
        raise Refused(f"{run.label} is measured by a worker, which ends it")
    if state not in ("done", "failed", "cancelled"):
        raise Refused(f"{state!r} is no end of a run; choose done, failed or cancelled")
    if state == "failed":
        reason = needed(reason, "reason of the failure", LONGEST_REASON)
    run.refresh_from_db()
    if run.state in Run.ENDED:
        if run.state == state:
            return run
        raise Refused(f"{run.label} is {run.get_state_display()} already")
    path = streams.log_path(run)
    started = (run.claimed_at or run.created_at).timestamp()
    release = {"engine": run.engine_release} if run.engine_release else {}
    outcome = RunOutcome(
        state=state,
        phase="finished",
        reason=reason[:LONGEST_REASON],
        argv=tuple(run.argv),
        env=run.env,
        versions=release | dict(versions or {}),
        host=run.host,
        started_at=started,
        ready_at=None,
        ended_at=time.time(),
        log=str(path) if path.is_file() else "",
        server_info=server_info,
        exit=None if exit_code is None else Exit(code=exit_code, asked=state == "cancelled"),
    )
    # A piece of the log that comes in this very moment belongs to it or is refused.
    with transaction.atomic():
        return intake.take_outcome(run.pk, token=run.claim, outcome=outcome).run
