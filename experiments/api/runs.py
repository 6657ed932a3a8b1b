"""Runs: /runs over all investigations, and the runs of one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from experiments import dispatch, lifecycle, queries
from experiments.api import find, schema
from experiments.api import run_shapes as shapes
from experiments.api.endpoint import Endpoint
from experiments.api.hypotheses import VerdictShape
from experiments.api.investigations import Nothing
from experiments.api.paging import piece
from experiments.lifecycle.place import lock
from experiments.lifecycle.runs import RecordedRepeat, workload_from
from experiments.lifecycle.scripted import SentRepeat, add_repeats, start_scripted_run
from experiments.models import Run
from experiments.queries.run_items import RunItem, new_item, run_items
from experiments.queries.search import KINDS, narrowed
from experiments.scripted import finish_scripted_run

TAG = ["runs"]


# Bound once: to copy its two dozen fields for each answer costs more than to fill them.
_ONE = shapes.RunShape()


def answered(run: Run | RunItem) -> Any:
    """What is answered of one run."""
    return _ONE.to_representation(run if isinstance(run, RunItem) else run_items([run])[0])


def full(slug: str, number: int) -> dict[str, Any]:
    """The same with everything that belongs to it."""
    page = queries.run_page(slug, number)
    facts = page.facts
    return {
        "run": answered(page.run),
        "note": page.run.note,
        "argv": page.run.argv,
        "env": page.run.env,
        "versions": page.run.versions,
        "workload": page.run.plan.get("workload", {}),
        "config": shapes.ConfigShape(facts.config.values(), many=True).data,
        "changes": shapes.ChangeShape(facts.changes, many=True).data,
        "repeats": shapes.RepeatShape(facts.repeats, many=True).data,
        "ratio": facts.ratio,
        "verdict": None if facts.verdict is None else VerdictShape(facts.verdict).data,
        "findings": [f.finding.code for f in page.findings],
        "untried": page.run.untried,
        "check_problem": page.run.check_problem,
    }


def _links(row: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The rows that a new run refers to, in place of their labels."""
    found: dict[str, Any] = {}
    for name in ("baseline", "follows"):
        if name in values:
            found[name] = find.run_in(row, name, values.pop(name))
    if "hypothesis" in values:
        found["hypothesis"] = find.hypothesis_in(row, "hypothesis", values.pop("hypothesis"))
    return found


def _listed(request: Any, rows: Any) -> Response:
    found = piece(KINDS["run"], rows, request.GET)
    items = [_ONE.to_representation(item) for item in run_items(found.rows)]
    return Response({"items": items, "next": found.next})


_Handler = Callable[..., Run | RunItem]


def _post(
    operation_id: str, shape: type[Any], *, status: int = 200
) -> Callable[[_Handler], Callable[..., Response]]:
    """A POST about one run: the body is checked by `shape`, the handler gets its values and the
    address and returns the run, which is answered. Without an ETag: that of a run is of the whole
    that its own address tells."""

    def made(handler: _Handler) -> Callable[..., Response]:
        @extend_schema(
            operation_id=operation_id,
            request=shape,
            responses={status: shapes.RunShape},
            tags=TAG,
        )
        @functools.wraps(handler)
        def post(self: Endpoint, request: Any, slug: str, **place: int) -> Response:
            run = handler(self, find.checked(shape, request.data), slug, **place)
            return Response(answered(run), status=status)

        return post

    return made


class AllRuns(Endpoint):
    @extend_schema(
        operation_id="listAllRuns", parameters=schema.LIST, responses=shapes.RunPiece, tags=TAG
    )
    def get(self, request: Any) -> Response:
        """Runs of all investigations; order by `metrics.NAME` puts those that lack it last."""
        return _listed(request, narrowed(KINDS["run"], request.GET.get("filter", "")))


class Runs(Endpoint):
    @extend_schema(
        operation_id="listRuns", parameters=schema.LIST, responses=shapes.RunPiece, tags=TAG
    )
    def get(self, request: Any, slug: str) -> Response:
        """The runs of an investigation, or those that a filter leaves."""
        row = find.opened(slug)
        rows = narrowed(KINDS["run"], request.GET.get("filter", "")).filter(investigation=row)
        return _listed(request, rows)

    @_post("planRun", shapes.NewRun, status=201)
    def post(self, values: dict[str, Any], slug: str) -> Run:
        """Plan a run for a worker; with `queue` it is sent at once."""
        row = find.opened(slug)
        queue = values.pop("queue", False)
        work = workload_from(values.pop("workload", {}))
        with transaction.atomic():
            run = lifecycle.add_run(
                investigation=row, workload=work, **_links(row, values), **values
            )
            if queue:
                dispatch.queue_run(run)
        return run


class ScriptRuns(Endpoint):
    asks = {"POST": "worker"}

    @_post("startScriptRun", shapes.NewScriptRun, status=201)
    def post(self, values: dict[str, Any], slug: str) -> RunItem:
        """Open a run that the caller measures: send points, repeats and a log, then finish it."""
        row = find.opened(slug)
        made = start_scripted_run(investigation=row, **_links(row, values), **values)
        return new_item(*made)


class RecordedRuns(Endpoint):
    @_post("recordRun", shapes.NewRecordedRun, status=201)
    def post(self, values: dict[str, Any], slug: str) -> Run:
        """Enter a run from a write-up, with the figures that it states."""
        row = find.opened(slug)
        figures = [RecordedRepeat(**repeat) for repeat in values.pop("repeats")]
        return lifecycle.record_run(
            investigation=row, repeats=figures, **_links(row, values), **values
        )


class OneRun(Endpoint):
    @extend_schema(operation_id="readRun", responses=shapes.RunFull, tags=TAG)
    def get(self, request: Any, slug: str, number: int) -> Response:
        """One run with its arguments, repeats, verdict and findings."""
        find.measured(slug, number)
        return self.tagged(full(slug, number))

    @extend_schema(
        operation_id="editRun", request=shapes.RunEdit, responses=shapes.RunFull, tags=TAG
    )
    def patch(self, request: Any, slug: str, number: int) -> Response:
        """Change title or note."""
        values = find.checked(shapes.RunEdit, request.data, partial=True)
        with transaction.atomic():
            run = find.run(slug, number)
            lock(run.investigation)
            self.unchanged(full(slug, number))
            lifecycle.edit_run(run, **values)
        return self.tagged(full(slug, number))


class StandingOf(Endpoint):
    asks = {"GET": "read or worker"}

    @extend_schema(operation_id="followRun", responses=shapes.RunStanding, tags=TAG)
    def get(self, request: Any, slug: str, number: int) -> Response:
        """Where a run stands, in at most two queries."""
        find.measured(slug, number)
        return Response(shapes.RunStanding(queries.run_live(slug, number)).data)


class Queue(Endpoint):
    repeatable = False

    @_post("queueRun", Nothing)
    def post(self, values: dict[str, Any], slug: str, number: int) -> Run:
        """Send a draft to the workers; one that is queued already stays so."""
        run = find.run(slug, number)
        dispatch.queue_run(run)
        return run


class Cancel(Endpoint):
    repeatable = False

    @_post("cancelRun", Nothing)
    def post(self, values: dict[str, Any], slug: str, number: int) -> Run:
        """Ask a run to stop: at once while it waits, by its worker while it runs."""
        run = find.run(slug, number)
        if run.by_script and run.state == Run.State.RUNNING:
            run = finish_scripted_run(run, state="cancelled", reason=f"cancelled by {self.by}")
        else:
            dispatch.cancel_run(run)
        return run


class Repeat(Endpoint):
    @_post("repeatRun", shapes.Queueing, status=201)
    def post(self, values: dict[str, Any], slug: str, number: int) -> Run:
        """Plan the same run once more."""
        queue = values.get("queue", False)
        with transaction.atomic():
            run = lifecycle.repeat_run(find.run(slug, number))
            if queue:
                dispatch.queue_run(run)
        return run


class Branch(Endpoint):
    @_post("branchRun", shapes.NewBranch, status=201)
    def post(self, values: dict[str, Any], slug: str, number: int) -> Run:
        """Plan a run that follows this one and differs in what is given."""
        origin = find.run(slug, number)
        queue = values.pop("queue", False)
        links = _links(origin.investigation, values)
        work = values.pop("workload", None)
        plan = lifecycle.plan_of(origin)
        workload = None if work is None else workload_from(work, plan.workload)
        with transaction.atomic():
            run = lifecycle.branch_run(origin, workload=workload, **links, **values)
            if queue:
                dispatch.queue_run(run)
        return run


class Repeats(Endpoint):
    asks = {"POST": "worker"}
    repeatable = False

    @_post("sendRepeats", shapes.NewRepeats)
    def post(self, values: dict[str, Any], slug: str, number: int) -> Run:
        """Send measured passes; they are numbered, so that sending again changes nothing."""
        run = find.run(slug, number)
        sent = [SentRepeat(**repeat) for repeat in values["repeats"]]
        add_repeats(run, first=min(values["first"], 1 << 30), repeats=sent)
        return run


class FinishRun(Endpoint):
    asks = {"POST": "worker"}
    repeatable = False

    @_post("finishRun", shapes.Finish)
    def post(self, values: dict[str, Any], slug: str, number: int) -> Run:
        """End a run that the caller measured: its log is read, findings and verdicts follow."""
        return finish_scripted_run(find.run(slug, number), **values)
