"""Taking up an advice: its hypothesis registered with the prediction, and the run that tests it.

The run is a draft; queueing it is `dispatch`. Asked twice, the same pair comes back.
"""

from __future__ import annotations

from django.db import transaction

from experiments.lifecycle.hypotheses import add_hypothesis, register_prediction
from experiments.lifecycle.place import lock
from experiments.lifecycle.runs import branch_run, plan_of
from experiments.models import Hypothesis, Investigation, Run
from experiments.refusal import Refused
from specdebug.diagnosis.next_run import NextRun, without_speculation
from specdebug.diagnosis.sweep import with_flags

# A pair whose run has not come to its end is not made a second time.
WAITING = (Run.State.DRAFT, Run.State.QUEUED, Run.State.RUNNING)


def take_up(*, investigation: Investigation, plan: NextRun, by: str) -> tuple[Hypothesis, Run]:
    """Register the hypothesis of `plan` and add its run as a draft, all of it or nothing.

    Refused where the run that it starts from has no arguments to start with.
    """
    if investigation.state != Investigation.State.OPEN:
        raise Refused(f"the investigation is {investigation.state}; reopen it first")
    with transaction.atomic():
        lock(investigation)
        again = (
            Run.objects.filter(
                investigation=investigation,
                hypothesis__claim=plan.claim,
                title=plan.title,
                state__in=WAITING,
            )
            .select_related("hypothesis")
            .first()
        )
        if again is not None and again.hypothesis is not None:
            return again.hypothesis, again
        of, baseline = _run(investigation, plan.of), _run(investigation, plan.baseline)
        if not of.plan.get("server_args"):
            raise Refused(
                f"{of.label} was entered without its server arguments, so nothing can be started "
                "from it; plan the run by hand and choose a hypothesis for it"
            )
        kept = plan_of(of)
        args = without_speculation(kept.server_args) if plan.plain else list(kept.server_args)
        hypothesis = add_hypothesis(
            investigation=investigation, claim=plan.claim, mechanism=plan.mechanism, author=by
        )
        register_prediction(
            hypothesis=hypothesis,
            metric=plan.metric,
            baseline=baseline,
            direction=plan.direction,
            low=plan.low,
            high=plan.high,
        )
        run = branch_run(
            of,
            title=plan.title,
            server_args=list(with_flags(args, plan.flags)),
            env={**kept.env, **plan.env},
            hypothesis=hypothesis,
        )
        return hypothesis, run


def _run(investigation: Investigation, label: str) -> Run:
    row = next((r for r in investigation.runs.all() if r.label == label), None)
    if row is None:
        raise Refused(f"there is no {label} in this investigation any more")
    return row
