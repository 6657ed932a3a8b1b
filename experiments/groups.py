"""Runs that are made and queued one after another: sweeps, and comparisons taken in turns. What is
worth a run is decided by the library (`diagnosis.sweep`, `diagnosis.outlook`).

A group is a plan in one row. `advance` makes and queues its next run, and is called whenever one
has ended, and by the house-keeping in case nobody did: a crash in between loses nothing, and of two
who call it at once one makes the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from experiments import dispatch, lifecycle, secrets
from experiments.arguments import own_refusal, release_of
from experiments.lifecycle.place import lock
from experiments.lifecycle.text import needed
from experiments.models import Hypothesis, Investigation, Run, RunGroup
from experiments.queries.groups import given_up, look, measured_of, point_of
from experiments.refusal import Refused
from specdebug.diagnosis.sweep import MOST_POINTS, Dropped, Point, Sweep, Value, plan_sweep
from specdebug.reference.release import DEFAULT as REFERENCE_RELEASE
from workers.plan import Deadlines, Workload

# Two in a row that fail are no accident of one setting: it may be the model's path.
FAILURES_IN_A_ROW = 2
MOST_ROUNDS = 20
# Where a start takes seconds, runs are taken in turns; where it takes minutes, the control is
# measured again at the end.
CHEAP_STARTS = ("reference", "attached")


@dataclass(frozen=True)
class Common:
    """What all runs of a group share."""

    engine: str
    server_args: tuple[str, ...]
    workload: Workload
    env: Mapping[str, str]
    engine_release: str = ""
    strict: bool = False


def planned(common: Common, settings: Sequence[Mapping[str, Value]]) -> Sweep:
    """What a sweep over `settings` would measure and what it would leave out; Refused where it can
    be none."""
    try:
        return plan_sweep(
            common.server_args,
            settings,
            release=release_of(common.engine_release or _release_of(common.engine)),
            concurrency=common.workload.concurrency,
            env=common.env,
            own=partial(own_refusal, common.engine),
        )
    except ValueError as no:
        raise Refused(str(no)) from None


def add_sweep(
    *,
    investigation: Investigation,
    title: str,
    common: Common,
    settings: Sequence[Mapping[str, Value]],
    baseline: Run | None = None,
    hypothesis: Hypothesis | None = None,
    stop_early: bool = True,
) -> RunGroup:
    """Plan a sweep over `settings` and queue its first run.

    `stop_early`: leave out what the cost account shows cannot beat the best so far or `baseline`.
    """
    common = _without_keys(common)
    found = planned(common, settings)
    if not found.points:
        raise Refused("nothing is left to measure", [f"{d.name}: {d.why}" for d in found.dropped])
    return _add(
        RunGroup.Kind.SWEEP,
        investigation=investigation,
        title=title,
        common=common,
        points=found.points,
        dropped=found.dropped,
        order=None,
        baseline=baseline,
        hypothesis=hypothesis,
        more={"stop_early": stop_early},
    )


def add_comparison(
    *,
    investigation: Investigation,
    title: str,
    common: Common,
    variants: Mapping[str, Sequence[str]],
    rounds: int = 1,
    baseline: Run | None = None,
    hypothesis: Hypothesis | None = None,
) -> RunGroup:
    """Plan the control (`common.server_args`) beside `variants` (name -> arguments) and begin.

    Where starts are cheap all are taken in turns, `rounds` times; elsewhere one after another.
    Either way the control comes again at the end, so that what drifted in between shows.
    """
    if not variants:
        raise Refused("a comparison needs at least one variant beside the control")
    if not 1 <= rounds <= MOST_ROUNDS or len(variants) >= MOST_POINTS:
        raise Refused(f"a comparison has 1 to {MOST_ROUNDS} rounds")
    common = _without_keys(common)
    named = {name: secrets.hidden(args, {})[0] for name, args in variants.items()}
    arms = {"control": common.server_args, **named}
    points = [
        Point(name, {}, tuple(args), common.workload.concurrency, None, "")
        for name, args in arms.items()
    ]
    return _add(
        RunGroup.Kind.COMPARISON,
        investigation=investigation,
        title=title,
        common=common,
        points=points,
        dropped=(),
        order=turns(len(points), rounds, in_turns=common.engine in CHEAP_STARTS),
        baseline=baseline,
        hypothesis=hypothesis,
        more={"rounds": rounds},
    )


def _without_keys(common: Common) -> Common:
    server_args, env = secrets.hidden(common.server_args, common.env)
    return replace(common, server_args=server_args, env=env)


def turns(points: int, rounds: int, *, in_turns: bool) -> list[int]:
    """The order of a comparison, the control being point 0.

    In turns: control, variants, control, variants ..., control. Else each point `rounds` times in a
    row, and the control once more at the end.
    """
    everybody = range(points)
    if in_turns:
        return [*(point for _ in range(rounds) for point in everybody), 0]
    return [*(point for point in everybody for _ in range(rounds)), 0]


def _add(
    kind: RunGroup.Kind,
    *,
    investigation: Investigation,
    title: str,
    common: Common,
    points: Sequence[Point],
    dropped: Sequence[Dropped],
    order: list[int] | None,
    baseline: Run | None,
    hypothesis: Hypothesis | None,
    more: Mapping[str, Any],
) -> RunGroup:
    for row in (baseline, hypothesis):
        if row is not None and row.investigation_id != investigation.pk:
            raise Refused(f"{row.label} belongs to another investigation")
    with transaction.atomic():
        lock(investigation)
        last = RunGroup.objects.filter(investigation=investigation).aggregate(n=Max("number"))["n"]
        group = RunGroup.objects.create(
            investigation=investigation,
            number=(last or 0) + 1,
            kind=kind,
            title=needed(title, "title", 200),
            baseline=baseline,
            hypothesis=hypothesis,
            plan={
                "common": asdict(common) | {"server_args": list(common.server_args)},
                "points": [asdict(p) | {"server_args": list(p.server_args)} for p in points],
                "order": order,
                "made": [],  # which point the run at each place measures
                **more,
            },
            dropped=[asdict(one) for one in dropped],
        )
        # The first run is made here: a plan that cannot run is refused before it is kept.
        if advance(group.pk) is None:
            raise Refused(f"{group.label} has nothing to measure")
    group.refresh_from_db()
    return group


def _release_of(engine: str) -> str:
    if engine == "reference":
        return REFERENCE_RELEASE
    last = lifecycle.last_run_of(engine)
    return last.engine_release if last else ""


# ---- one after another ---------------------------------------------------------------------------


def advance(group_id: int) -> Run | None:
    """Make and queue the group's next run; None where one is on its way or none is left.

    Safe to call at any time and from several processes: the investigation's row is held meanwhile.
    """
    with transaction.atomic():
        group = RunGroup.objects.select_related("investigation").filter(pk=group_id).first()
        if group is None:
            return None
        lock(group.investigation)
        group.refresh_from_db()
        if group.state != RunGroup.State.RUNNING:
            return None
        runs = list(group.runs.order_by("group_place"))
        if any(run.state not in Run.ENDED for run in runs):
            return None
        if why := _why_stop(group, runs):
            _set(group, RunGroup.State.STOPPED, why)
            return None
        index, why = _choose(group, runs)
        if index is None:
            _set(group, RunGroup.State.DONE, why)
            return None
        return _make(group, runs, index)


def advance_after(run_id: int) -> None:
    """What follows the end of a run: its group's next one, where it belongs to one."""
    group = Run.objects.filter(pk=run_id).values_list("group_id", flat=True).first()
    if group is not None:
        advance(group)


def advance_all() -> list[int]:
    """Go on with every group that nobody has gone on with; the ids of the runs that were made."""
    waiting = RunGroup.objects.filter(state=RunGroup.State.RUNNING).exclude(
        runs__state__in=[Run.State.DRAFT, *Run.ACTIVE]
    )
    made = [advance(pk) for pk in waiting.values_list("pk", flat=True)]
    return [run.pk for run in made if run is not None]


def stop(group: RunGroup, *, reason: str) -> None:
    """Make no more runs, and ask the one on its way to stop. Stopping twice changes nothing."""
    RunGroup.objects.filter(pk=group.pk, state=RunGroup.State.RUNNING).update(
        state=RunGroup.State.STOPPED, reason=needed(reason, "reason", 400), ended_at=timezone.now()
    )
    for run in group.runs.exclude(state__in=Run.ENDED):
        dispatch.cancel_run(run)
    group.refresh_from_db()


def resume(group: RunGroup) -> Run | None:
    """Go on where it stopped; points whose run failed or was cancelled are measured again."""
    if (
        not RunGroup.objects.filter(pk=group.pk)
        .exclude(state=RunGroup.State.RUNNING)
        .update(state=RunGroup.State.RUNNING, reason="", ended_at=None)
    ):
        return None
    with transaction.atomic():
        lock(group.investigation)
        group.refresh_from_db()
        group.plan["resumed_at"] = len(group.plan["made"])
        group.save(update_fields=["plan"])
    made = advance(group.pk)
    group.refresh_from_db()
    return made


def _set(group: RunGroup, state: RunGroup.State, reason: str) -> None:
    group.state, group.reason, group.ended_at = state, reason, timezone.now()
    group.save(update_fields=["state", "reason", "ended_at", "skipped"])


def _why_stop(group: RunGroup, runs: Sequence[Run]) -> str:
    """Why nothing more is to be made, judged by the runs since it was last resumed."""
    recent = [r for r in runs if (r.group_place or 0) >= group.plan.get("resumed_at", 0)]
    cancelled = next((r for r in recent if r.state == Run.State.CANCELLED), None)
    if cancelled is not None:
        return f"{cancelled.label} was cancelled; resume to measure it again and go on"
    last = recent[-FAILURES_IN_A_ROW:]
    if len(last) == FAILURES_IN_A_ROW and all(r.state != Run.State.DONE for r in last):
        return (
            f"{' and '.join(r.label for r in last)} failed one after the other: {last[-1].reason}"
        )
    return ""


def _choose(group: RunGroup, runs: Sequence[Run]) -> tuple[int | None, str]:
    """The point to measure next, or None and why none is left."""
    if group.kind == RunGroup.Kind.COMPARISON:
        return _next_turn(group, runs)
    told = look(group, runs)
    if group.plan.get("stop_early", True):
        group.skipped = {str(index): why for index, why in told.cannot_win.items()}
        group.save(update_fields=["skipped"])
        if told.next is not None:
            return told.next, ""
        count = len(told.cannot_win)
        left = "" if not count else f"; {count} left out, because they cannot win any more"
        return None, f"every setting that could win is measured{left}{_failed(group, runs)}"
    done = set(measured_of(group, runs)) | given_up(group, runs)
    index = next((i for i in range(len(group.plan["points"])) if i not in done), None)
    return index, f"every setting is measured{_failed(group, runs)}"


def _failed(group: RunGroup, runs: Sequence[Run]) -> str:
    """What failed and has no figure, as the end of a sentence that says what was measured."""
    count = len(given_up(group, runs) - set(measured_of(group, runs)))
    return f", but for {count} that failed" if count else ""


def _next_turn(group: RunGroup, runs: Sequence[Run]) -> tuple[int | None, str]:
    """The next in the order; a turn that failed is taken again once the group is resumed."""
    order = list(group.plan["order"])
    since = group.plan.get("resumed_at", 0)
    for run, point in zip(runs, group.plan["made"], strict=True):
        failed_before = run.state != Run.State.DONE and (run.group_place or 0) < since
        if not failed_before and point in order:
            order.remove(point)
    return (order[0], "") if order else (None, "every turn is measured")


def _make(group: RunGroup, runs: Sequence[Run], index: int) -> Run:
    point = point_of(group, index)
    common = group.plan["common"]
    work = Workload(**common["workload"])
    if point.concurrency is not None:
        work = Workload(**asdict(work) | {"concurrency": point.concurrency})
    first = next(
        (r for r, made in zip(runs, group.plan["made"], strict=True) if made == index), None
    )
    control = runs[0] if group.kind == RunGroup.Kind.COMPARISON and runs else None
    run = lifecycle.add_run(
        investigation=group.investigation,
        title=f"{group.title}: {point.name}"[:200],
        server_args=point.server_args,
        engine=common["engine"],
        engine_release=common["engine_release"],
        env=common["env"],
        workload=work,
        deadlines=Deadlines.usual(common["engine"]),
        hypothesis=group.hypothesis if index or control is None else None,
        baseline=group.baseline or (control if index else None),
        repeats_run=first,
        strict=common["strict"],
    )
    run.group, run.group_place = group, len(group.plan["made"])
    run.save(update_fields=["group", "group_place"])
    group.plan["made"].append(index)
    group.save(update_fields=["plan"])
    dispatch.queue_run(run)
    return run
