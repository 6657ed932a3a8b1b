"""The next experiments worth their time: what each settles, costs and predicts, and the call that
registers its hypothesis and queues its run."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from experiments import dispatch, queries
from experiments.api import find
from experiments.api.endpoint import Endpoint
from experiments.lifecycle.advice import take_up
from experiments.refusal import Refused
from experiments.reports import document as documents
from experiments.reports.taking_up import Offer, offer, offers

TAG = ["conclusions"]


class CostShape(serializers.Serializer):
    """Minutes from earlier starts of the same engine here: their median, the dearest, how many.
    on_gpus: they are GPU minutes."""

    minutes = serializers.FloatField()
    most = serializers.FloatField()
    n = serializers.IntegerField()
    on_gpus = serializers.BooleanField()


class AdviceShape(serializers.Serializer):
    """One experiment. cost: null where nothing was started here yet. claim: of the hypothesis that
    taking it up would register, "" where a person has to plan it; why_not: why."""

    key = serializers.CharField()
    action = serializers.CharField()
    settles = serializers.CharField()
    effort = serializers.CharField()
    prediction = serializers.CharField(allow_blank=True)
    worth = serializers.FloatField()
    run = serializers.CharField(allow_null=True)
    num_steps = serializers.IntegerField(allow_null=True)
    cost = CostShape(allow_null=True)
    claim = serializers.CharField(allow_blank=True)
    startable = serializers.BooleanField()
    why_not = serializers.CharField(allow_blank=True)


class AdvicesShape(serializers.Serializer):
    """The best first."""

    items = AdviceShape(many=True)


class TakenShape(serializers.Serializer):
    """What taking an advice up made, or had made before. queued: this call sent it to a worker."""

    hypothesis = serializers.CharField()
    run = serializers.CharField()
    claim = serializers.CharField()
    queued = serializers.BooleanField()


class Advice(Endpoint):
    @extend_schema(operation_id="readAdvice", responses=AdvicesShape, tags=TAG)
    def get(self, request: Any, slug: str) -> Response:
        """The next experiments worth their time, the best first, each with what it costs here and
        whether `take` can start it."""
        page = queries.investigation_page(slug)
        told = documents.document(page).told["advice"]
        known = {one.advice.key: one for one in offers(page)}
        return self.tagged({"items": [_shown(row, known.get(row["key"])) for row in told]})


class TakeAdvice(Endpoint):
    # Asked again while its run has not ended, it comes to the same run without any key.
    repeatable = False

    @extend_schema(operation_id="takeAdvice", request=None, responses=TakenShape, tags=TAG)
    def post(self, request: Any, slug: str, key: str) -> Response:
        """Register the hypothesis with its prediction and queue its run: one pair, however often
        it is asked for before the run has ended."""
        investigation = find.investigation(slug)
        chosen = offer(queries.investigation_page(slug), key)
        if chosen.plan is None:
            raise Refused("nothing can be started from this advice; it needs a person's hand")
        hypothesis, run = take_up(investigation=investigation, plan=chosen.plan, by=self.by)
        queued = dispatch.queue_run(run)
        return Response(
            {
                "hypothesis": hypothesis.label,
                "run": run.label,
                "claim": hypothesis.claim,
                "queued": bool(queued),
            }
        )


def _shown(row: dict[str, Any], found: Offer | None) -> dict[str, Any]:
    cost = None if found is None or found.cost is None else found.cost
    return {
        **row,
        "cost": None
        if cost is None or found is None
        else {
            "minutes": cost.gpu_minutes,
            "most": cost.most,
            "n": cost.n,
            "on_gpus": found.on_gpus,
        },
        "claim": found.plan.claim if found is not None and found.plan is not None else "",
        "startable": found is not None and found.startable,
        "why_not": "" if found is None else found.why_not,
    }
