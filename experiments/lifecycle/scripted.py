"""Runs that a program outside measures: opened by it, given figures and a log, and finished.

The same rows as a worker's run, so that findings and verdicts come the same way; only the claim is
missing, since no worker holds it. How points and log arrive: `streams`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from experiments import arguments, bulk, secrets, summaries
from experiments.claims import bind_prediction
from experiments.lifecycle.new_run import new_run, plan_outside
from experiments.lifecycle.runs import check_plan
from experiments.lifecycle.text import needed
from experiments.models import ConfigEntry, Hypothesis, Investigation, Repeat, Run
from experiments.refusal import Refused
from workers.plan import Workload

MOST_CONFIG = 400
MOST_REPEATS = 1000
ENGINE_NAME = 20


@dataclass(frozen=True)
class SentRepeat:
    """One measured pass as a program states it; tok_s is output tokens per second of wall time.

    accept_len counts the bonus token; step_ms is derived where the accept length is stated.
    """

    tok_s: float
    accept_len: float | None = None
    step_ms: float | None = None
    seconds: float | None = None
    requests: int | None = None
    tokens: int | None = None
    verify_ct: int | None = None
    started_at: datetime | None = None


def start_scripted_run(
    *,
    investigation: Investigation,
    title: str,
    config: Mapping[str, Any] | None = None,
    server_args: Sequence[str] = (),
    engine: str = "attached",
    engine_release: str = "",
    env: Mapping[str, str] | None = None,
    concurrency: int | None = None,
    hypothesis: Hypothesis | None = None,
    baseline: Run | None = None,
    follows: Run | None = None,
    host: str = "",
    note: str = "",
) -> tuple[Run, dict[str, Any]]:
    """Open a run that its sender measures; it is running until `finish_scripted_run`. Returns it
    with its arguments by name.

    `config`: parameters as the sender names them; `server_args`: the engine's own flags, which are
    read as for any run. The newest prediction of the hypothesis is frozen, as by a worker's claim.
    """
    engine = needed(engine, "engine", ENGINE_NAME)
    wanted = _config(config or {})
    check_plan("attached", server_args, env or {}, Workload())
    if concurrency is not None and not 1 <= concurrency <= 4096:
        raise Refused(f"concurrency is {concurrency!r}; it must lie between 1 and 4096")
    server_args, env = secrets.hidden(server_args, env or {})
    asked = arguments.requested_of(server_args) if server_args else {}
    params = {k: v for k, v in (asked | wanted).items() if k not in arguments.SECRETS}
    now = timezone.now()
    with transaction.atomic():
        run = new_run(
            investigation=investigation,
            title=title,
            engine=engine,
            engine_release=engine_release,
            note=note,
            plan=plan_outside(engine, server_args, env, concurrency),
            hypothesis=hypothesis,
            baseline=baseline,
            follows=follows,
            by_script=True,
            state=Run.State.RUNNING,
            phase="measuring",
            claimed_at=now,
            host=host[:200],
            argv=list(server_args),
            env=dict(env),
        )
        if hypothesis is not None:
            bind_prediction(run, now=now)
        bulk.insert(
            ConfigEntry(run=run, key=key, requested=value, was_requested=True)
            for key, value in params.items()
        )
    return run, params


def _config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with names that can be searched; refused where one cannot be kept."""
    if len(config) > MOST_CONFIG:
        raise Refused(f"{len(config)} parameters; at most {MOST_CONFIG} are kept")
    for key, value in config.items():
        if not key or len(key) > 80 or "\0" in key:
            raise Refused(f"{key[:90]!r} is no name of a parameter: 1 to 80 characters")
        if isinstance(value, float) and not math.isfinite(value):
            raise Refused(f"parameter {key!r} is {value!r}; JSON has no such number")
        if len(repr(value)) > 10_000:
            raise Refused(f"parameter {key!r} is too long; attach it as a file")
    return dict(config)


def add_repeats(run: Run, *, first: int, repeats: Sequence[SentRepeat]) -> int:
    """Take measured passes numbered from `first`; the number of the next one.

    Passes that were taken already are skipped, so that sending again changes nothing; one that was
    sent with another figure is refused.
    """
    if len(repeats) > MOST_REPEATS:
        raise Refused(f"{len(repeats)} repeats in one call; at most {MOST_REPEATS} are taken")
    for index, repeat in enumerate(repeats, start=first):
        _check_repeat(index, repeat)
    with transaction.atomic():
        row = Run.objects.select_for_update().get(pk=run.pk)
        if not row.by_script:
            raise Refused(f"{run.label} is measured by a worker; its repeats come from there")
        known = {r.index: r for r in Repeat.objects.filter(run=row)}
        if first > len(known):
            raise Refused(f"repeat {first} came, repeat {len(known)} is expected")
        if row.state in Run.ENDED and first + len(repeats) > len(known):
            raise Refused(f"{run.label} is {row.get_state_display()}; it takes nothing more")
        running = int(row.plan.get("workload", {}).get("concurrency") or 1)
        for index, repeat in enumerate(repeats, start=first):
            old = known.get(index)
            if old is not None and old.tok_s != repeat.tok_s:
                raise Refused(
                    f"repeat {index} was sent with {old.tok_s:.6g} tok/s before; a figure that was "
                    "taken stays, send a new repeat"
                )
            if old is None:
                _new_repeat(row, index, repeat, running).save(force_insert=True)
        summaries.from_repeats(row)
        return max(len(known), first + len(repeats))


def _new_repeat(run: Run, index: int, sent: SentRepeat, running: int) -> Repeat:
    step_ms = sent.step_ms
    if step_ms is None and sent.accept_len is not None:
        step_ms = 1000 * sent.accept_len * running / sent.tok_s
    return Repeat(
        run=run,
        index=index,
        started_at=sent.started_at,
        seconds=sent.seconds,
        requests=sent.requests,
        tokens=sent.tokens,
        verify_ct=sent.verify_ct,
        tok_s=sent.tok_s,
        accept_len=sent.accept_len,
        step_ms=step_ms,
    )


def _check_repeat(index: int, sent: SentRepeat) -> None:
    for name in ("tok_s", "accept_len", "step_ms", "seconds"):
        value = getattr(sent, name)
        if value is not None and not (math.isfinite(value) and 0 < value < 1e12):
            raise Refused(f"repeat {index}: {name} is {value!r}; it must be above zero")
    if sent.accept_len is not None and sent.accept_len < 1:
        raise Refused(
            f"repeat {index}: accept_len is {sent.accept_len!r}; with the bonus token it is 1 or "
            "more"
        )
    for name in ("requests", "tokens", "verify_ct"):
        value = getattr(sent, name)
        if value is not None and not 0 < value < 1 << 31:
            raise Refused(f"repeat {index}: {name} is {value!r}; it must be above zero")
