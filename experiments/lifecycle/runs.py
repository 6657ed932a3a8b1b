"""Runs before and beside the measuring: planned, branched, repeated, recorded, cancelled.

Who measures a run is decided in `claims`; how it gets to a worker in `dispatch`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from experiments import arguments, bulk, checkup, secrets, store, summaries
from experiments.claims import bind_prediction
from experiments.lifecycle.new_run import new_run, plan_outside
from experiments.lifecycle.text import needed
from experiments.lifecycle.workers import must_be_known
from experiments.models import Hypothesis, Investigation, Repeat, Run
from experiments.refusal import Refused
from specdebug.reference.release import DEFAULT as REFERENCE_RELEASE
from specdebug.sglang import preflight
from workers import engines, prompt_files
from workers.plan import Deadlines, RunPlan, Workload

ENGINES = ("reference", "sglang", "sglang-cpu", "attached")
MOST_ARGUMENTS = 400
LONGEST_ARGUMENT = 8192
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# Where prompts come from: an uploaded file of the record, by its content.
UPLOADED = "file:"
_HASH = re.compile(r"[0-9a-f]{64}")
CLIENTS = ("specdebug", "bench-serving")
FASTEST = 100_000.0
# The launcher chooses the address itself; a second one would point the client at nothing.
_OURS = ("--host", "--port")


def add_run(
    *,
    investigation: Investigation,
    title: str,
    server_args: Sequence[str],
    engine: str = "reference",
    engine_release: str = "",
    env: Mapping[str, str] | None = None,
    workload: Workload | None = None,
    deadlines: Deadlines | None = None,
    hypothesis: Hypothesis | None = None,
    baseline: Run | None = None,
    follows: Run | None = None,
    repeats_run: Run | None = None,
    note: str = "",
    after: float | None = None,
    strict: bool = False,
    worker: str | None = None,
) -> Run:
    """Plan one configuration under one workload; a draft until `dispatch.queue_run` queues it.

    `server_args` are the engine's own flags as asked, without interpreter, host and port. `strict`:
    it is not measured where an argument would not be in force as asked. `worker`: the name of the
    one that alone may measure it, "" for any; None: as for the run that it repeats or follows.
    """
    check_plan(engine, server_args, env or {}, workload or Workload())
    server_args, env = secrets.hidden(server_args, env or {})
    if worker is None:
        # What is compared is measured on the same machine, where one was chosen.
        worker = next((r.needs_worker for r in (repeats_run, follows) if r), "")
    else:
        must_be_known(worker)
    # The run's own name, which names its folder too, is given with its number.
    plan = RunPlan(
        run="",
        engine=engine,
        server_args=tuple(server_args),
        folder="",
        env=dict(env),
        workload=workload or Workload(),
        deadlines=deadlines or Deadlines.usual(engine),
        strict=strict,
    )
    with transaction.atomic():
        run = new_run(
            investigation=investigation,
            title=title,
            engine=engine,
            engine_release=engine_release,
            note=note,
            plan=_as_row(plan),
            hypothesis=hypothesis,
            baseline=baseline,
            follows=follows,
            repeats_run=repeats_run,
            after=after,
            needs_worker=worker,
        )
        if engine != "attached":
            _predict(run, plan)
        return run


def _predict(run: Run, plan: RunPlan) -> None:
    """What the release will make of the arguments, known before anything is started."""
    requested = arguments.requested_of(plan.server_args)
    release = str(requested.get("engine_release") or run.engine_release)
    source = "as stated in the plan"
    if run.engine == "reference" and not release:
        release, source = REFERENCE_RELEASE, "the release that the reference engine follows"
    run.engine_release = release[:40]
    last = None if release else last_run_of(run.engine)
    if last is not None:
        release, source = last.engine_release, f"as in {last}, the last run of this engine"
    known = arguments.release_of(release)
    own = arguments.own_refusal(run.engine, plan.server_args)
    foreseen = preflight.foresee(
        plan.server_args, release=known, source=source, env=plan.env, own=own
    )
    run.preflight = foreseen.as_dict() | {"strict": plan.strict}
    run.save(update_fields=["engine_release", "preflight"])
    bulk.insert(arguments.entries(run, requested, None, release=known, env=plan.env))
    checkup.preflight(run, release=release)


def last_run_of(engine: str) -> Run | None:
    """The newest run of an engine whose release is known."""
    rows = Run.objects.filter(engine=engine, recorded=False, state=Run.State.DONE)
    return rows.exclude(engine_release="").order_by("-ended_at").first()


def _as_row(plan: RunPlan) -> dict[str, Any]:
    return plan.as_json() | {"server_args": list(plan.server_args)}


def check_plan(
    engine: str, server_args: Sequence[str], env: Mapping[str, str], workload: Workload
) -> None:
    if engine not in ENGINES:
        raise Refused(f"{engine!r} is no engine; choose one of {', '.join(ENGINES)}")
    if len(server_args) > MOST_ARGUMENTS:
        raise Refused(f"{len(server_args)} server arguments; at most {MOST_ARGUMENTS} are taken")
    for place_, argument in enumerate(server_args, start=1):
        if "\0" in argument or len(argument) > LONGEST_ARGUMENT:
            raise Refused(f"server argument {place_} holds a zero byte or is too long")
        if engine != "attached" and argument.split("=", 1)[0] in _OURS:
            raise Refused(f"server argument {argument!r}: host and port are chosen by the worker")
    for name, value in env.items():
        if not _ENV_NAME.fullmatch(name):
            raise Refused(f"{name!r} is no name of an environment variable")
        if "\0" in value or len(value) > LONGEST_ARGUMENT:
            raise Refused(f"the value of {name} holds a zero byte or is too long")
    for field, least, most in (
        ("max_new_tokens", 1, 65536),
        ("prompts_per_repeat", 1, 10000),
        ("repeats", 1, 100),
        ("warm_up_prompts", 0, 1000),
        ("concurrency", 1, 4096),
    ):
        value = getattr(workload, field)
        if not isinstance(value, int) or not least <= value <= most:
            raise Refused(f"workload {field} is {value!r}; it must lie between {least} and {most}")
    if not (math.isfinite(workload.temperature) and workload.temperature >= 0):
        raise Refused(f"workload temperature is {workload.temperature!r}; it must be 0 or more")
    rate = workload.request_rate
    if rate is not None and not (math.isfinite(rate) and 0 < rate <= FASTEST):
        raise Refused(
            f"workload request_rate is {rate!r}; it must lie above 0 and up to {FASTEST} a second"
        )
    if workload.client not in CLIENTS:
        raise Refused(f"{workload.client!r} is no client; choose one of {', '.join(CLIENTS)}")
    _check_prompts(workload.prompts)


def _check_prompts(name: str) -> None:
    """A shipped set, an uploaded file by its hash, or a file where the operator allows them."""
    if name in prompt_files.shipped():
        return
    if name.startswith(UPLOADED):
        digest = name.removeprefix(UPLOADED)
        if _HASH.fullmatch(digest) and store.path_of(digest).is_file():
            return
        raise Refused(f"prompts {name!r}: there is no such file in the record")
    path = Path(name)
    allowed = [Path(folder).resolve() for folder in settings.PROMPT_DIRS]
    if path.is_absolute() and any(path.resolve().is_relative_to(folder) for folder in allowed):
        return
    sets = ", ".join(prompt_files.shipped())
    where = " or ".join(map(str, allowed)) or "a folder that the operator allows"
    raise Refused(
        f"prompts {name!r} are neither a shipped set ({sets}), nor {UPLOADED}SHA256 of an uploaded "
        f"file, nor a file in {where} (SPECDEBUG_PROMPTS)"
    )


def plan_of(run: Run) -> RunPlan:
    """The run's plan as the worker takes it; the folder is where this machine keeps its runs."""
    if not run.plan.get("server_args") and run.recorded:
        raise Refused(f"{run.label} was recorded from a write-up and has no plan to repeat")
    plan = RunPlan.from_json({"folder": "", **run.plan})
    return replace(plan, folder=str(settings.RUN_DIR / plan.run))


def plan_for_worker(run: Run) -> RunPlan:
    """The plan with its keys put back and an uploaded prompt file by its path: for the engine
    alone, never to be kept or shown. Raises Refused where a key is not on this machine."""
    plan = secrets.revealed(plan_of(run))
    name = plan.workload.prompts
    if name.startswith(UPLOADED):
        path = str(store.path_of(name.removeprefix(UPLOADED)))
        plan = replace(plan, workload=replace(plan.workload, prompts=path))
    return plan


def edit_run(run: Run, *, title: str | None = None, note: str | None = None) -> Run:
    """Change a run's title or note; its plan stays what was queued (branch it to change that)."""
    if title is not None:
        run.title = needed(title, "title", 200)
    if note is not None:
        run.note = note
    run.save(update_fields=["title", "note"])
    return run


def branch_run(
    run: Run,
    *,
    title: str,
    server_args: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    workload: Workload | None = None,
    hypothesis: Hypothesis | None = None,
    note: str = "",
    strict: bool | None = None,
    worker: str | None = None,
) -> Run:
    """A new draft that follows `run` and differs from it in what is given."""
    plan = plan_of(run)
    return add_run(
        investigation=run.investigation,
        title=title,
        server_args=plan.server_args if server_args is None else server_args,
        engine=plan.engine,
        engine_release=run.engine_release,
        env=plan.env if env is None else env,
        workload=workload or plan.workload,
        deadlines=plan.deadlines,
        hypothesis=hypothesis,
        baseline=run.baseline or run.investigation.baseline,
        follows=run,
        note=note,
        strict=plan.strict if strict is None else strict,
        worker=worker,
    )


def repeat_run(run: Run, *, title: str = "") -> Run:
    """The same plan once more, linked as a repeat; it tests the same hypothesis."""
    plan = plan_of(run)
    return add_run(
        investigation=run.investigation,
        title=title or f"{run.title} (again)"[:200],
        server_args=plan.server_args,
        engine=plan.engine,
        engine_release=run.engine_release,
        env=plan.env,
        workload=plan.workload,
        deadlines=plan.deadlines,
        hypothesis=run.hypothesis,
        baseline=run.baseline,
        follows=run.follows,
        repeats_run=run,
        strict=plan.strict,
    )


@dataclass(frozen=True)
class RecordedRepeat:
    """One figure of a write-up: output tokens per second, and what else it states."""

    tok_s: float
    accept_len: float | None = None
    accept_rate: float | None = None  # as the release logs it


def record_run(
    *,
    investigation: Investigation,
    title: str,
    repeats: Iterable[RecordedRepeat],
    engine: str = "sglang",
    engine_release: str = "",
    concurrency: int | None = None,
    server_args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    hypothesis: Hypothesis | None = None,
    baseline: Run | None = None,
    follows: Run | None = None,
    host: str = "",
    note: str = "",
    at: datetime | None = None,
    after: float | None = None,
) -> Run:
    """Enter a run whose figures come from a write-up; it is marked as recorded for good.

    step_ms is derived where the accept length is stated: 1000 * accept_len * concurrency / tok_s.
    """
    figures = list(repeats)
    for figure in figures:
        for value in (figure.tok_s, figure.accept_len, figure.accept_rate):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise Refused(f"the figure {value!r} is not above zero")
    running = 1 if concurrency is None else concurrency
    # Nothing is started from a write-up, so its keys are needed by nobody.
    server_args, env = engines.replace_secrets(server_args, env or {}, lambda _: engines.REMOVED)
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
            after=after,
            at=at,
            recorded=True,
            state=Run.State.DONE,
            host=host[:200],
            argv=list(server_args),
            env=dict(env),
        )
        bind_prediction(run, now=timezone.now())
        for index, figure in enumerate(figures):
            length = figure.accept_len
            Repeat.objects.create(
                run=run,
                index=index,
                tok_s=figure.tok_s,
                accept_len=length,
                accept_rate=figure.accept_rate,
                step_ms=None if length is None else 1000 * length * running / figure.tok_s,
            )
        summaries.from_repeats(run)
    return run


def workload_from(values: Mapping[str, Any], base: Workload | None = None) -> Workload:
    """A workload from named values over `base`; refused where a name is unknown."""
    known = asdict(base or Workload())
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise Refused(f"unknown workload setting {', '.join(unknown)}; known: {', '.join(known)}")
    return Workload(**(known | dict(values)))
