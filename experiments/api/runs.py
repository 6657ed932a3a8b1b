"""Runs: /runs over all investigations, and the runs of one."""

from __future__ import annotations

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
from experiments.queries.run_items import run_items
from experiments.queries.search import KINDS, narrowed
from experiments.scripted import finish_scripted_run

TAG = ["runs"]


def answered(run: Run) -> Any:
    """What is answered of one run."""
    return shapes.RunShape(run_items([run])[0]).data


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
    items = shapes.RunShape(run_items(found.rows), many=True).data
    return Response({"items": items, "next": found.next})


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
        row = find.investigation(slug)
        rows = narrowed(KINDS["run"], request.GET.get("filter", "")).filter(investigation=row)
        return _listed(request, rows)

    @extend_schema(
        operation_id="planRun",
        request=shapes.NewRun,
        responses={201: shapes.RunShape},
        tags=TAG,
    )
    def post(self, request: Any, slug: str) -> Response:
        """Plan a run for a worker; with `queue` it is sent at once."""
        values = find.checked(shapes.NewRun, request.data)
        row = find.investigation(slug)
        queue = values.pop("queue", False)
        work = workload_from(values.pop("workload", {}))
        with transaction.atomic():
            run = lifecycle.add_run(
                investigation=row, workload=work, **_links(row, values), **values
            )
            if queue:
                dispatch.queue_run(run)
        return self.tagged(answered(run), status=201)


class ScriptRuns(Endpoint):
    asks = {"POST": "worker"}

    @extend_schema(
        operation_id="startScriptRun",
        request=shapes.NewScriptRun,
        responses={201: shapes.RunShape},
        tags=TAG,
    )
    def post(self, request: Any, slug: str) -> Response:
        """Open a run that the caller measures: send points, repeats and a log, then finish it."""
        values = find.checked(shapes.NewScriptRun, request.data)
        row = find.investigation(slug)
        run = start_scripted_run(investigation=row, **_links(row, values), **values)
        return self.tagged(answered(run), status=201)


class RecordedRuns(Endpoint):
    @extend_schema(
        operation_id="recordRun",
        request=shapes.NewRecordedRun,
        responses={201: shapes.RunShape},
        tags=TAG,
    )
    def post(self, request: Any, slug: str) -> Response:
        """Enter a run from a write-up, with the figures that it states."""
        values = find.checked(shapes.NewRecordedRun, request.data)
        row = find.investigation(slug)
        figures = [RecordedRepeat(**repeat) for repeat in values.pop("repeats")]
        run = lifecycle.record_run(
            investigation=row, repeats=figures, **_links(row, values), **values
        )
        return self.tagged(answered(run), status=201)


class OneRun(Endpoint):
    @extend_schema(operation_id="readRun", responses=shapes.RunFull, tags=TAG)
    def get(self, request: Any, slug: str, number: int) -> Response:
        """One run with its arguments, repeats, verdict and findings."""
        find.run(slug, number)
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
        find.run(slug, number)
        return Response(shapes.RunStanding(queries.run_live(slug, number)).data)


class Queue(Endpoint):
    repeatable = False

    @extend_schema(operation_id="queueRun", request=Nothing, responses=shapes.RunShape, tags=TAG)
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Send a draft to the workers; one that is queued already stays so."""
        find.checked(Nothing, request.data)
        run = find.run(slug, number)
        dispatch.queue_run(run)
        return Response(answered(run))


class Cancel(Endpoint):
    repeatable = False

    @extend_schema(operation_id="cancelRun", request=Nothing, responses=shapes.RunShape, tags=TAG)
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Ask a run to stop: at once while it waits, by its worker while it runs."""
        find.checked(Nothing, request.data)
        run = find.run(slug, number)
        if run.by_script and run.state == Run.State.RUNNING:
            run = finish_scripted_run(run, state="cancelled", reason=f"cancelled by {self.by}")
        else:
            dispatch.cancel_run(run)
        return Response(answered(run))


class Repeat(Endpoint):
    @extend_schema(
        operation_id="repeatRun",
        request=shapes.Queueing,
        responses={201: shapes.RunShape},
        tags=TAG,
    )
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Plan the same run once more."""
        queue = find.checked(shapes.Queueing, request.data).get("queue", False)
        with transaction.atomic():
            run = lifecycle.repeat_run(find.run(slug, number))
            if queue:
                dispatch.queue_run(run)
        return self.tagged(answered(run), status=201)


class Branch(Endpoint):
    @extend_schema(
        operation_id="branchRun",
        request=shapes.NewBranch,
        responses={201: shapes.RunShape},
        tags=TAG,
    )
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Plan a run that follows this one and differs in what is given."""
        values = find.checked(shapes.NewBranch, request.data)
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
        return self.tagged(answered(run), status=201)


class Repeats(Endpoint):
    asks = {"POST": "worker"}
    repeatable = False

    @extend_schema(
        operation_id="sendRepeats",
        request=shapes.NewRepeats,
        responses=shapes.RunShape,
        tags=TAG,
    )
    def post(self, request: Any, slug: str, number: int) -> Response:
        """Send measured passes; they are numbered, so that sending again changes nothing."""
        values = find.checked(shapes.NewRepeats, request.data)
        run = find.run(slug, number)
        sent = [SentRepeat(**repeat) for repeat in values["repeats"]]
        add_repeats(run, first=min(values["first"], 1 << 30), repeats=sent)
        return Response(answered(run))


class FinishRun(Endpoint):
    asks = {"POST": "worker"}
    repeatable = False

    @extend_schema(
        operation_id="finishRun", request=shapes.Finish, responses=shapes.RunShape, tags=TAG
    )
    def post(self, request: Any, slug: str, number: int) -> Response:
        """End a run that the caller measured: its log is read, findings and verdicts follow."""
        values = find.checked(shapes.Finish, request.data)
        return Response(answered(finish_scripted_run(find.run(slug, number), **values)))
