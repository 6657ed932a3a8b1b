"""Workers: where they run, what they can run, when they were last heard of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from experiments.api.endpoint import Endpoint
from experiments.api.shapes import JsonObject
from experiments.models import Run, Worker


class WorkerShape(serializers.Serializer):
    """A worker that has registered itself. alive: heard of within the time a run may be silent."""

    name = serializers.CharField()
    host = serializers.CharField()
    version = serializers.CharField(allow_blank=True)
    alive = serializers.SerializerMethodField()
    gpu_count = serializers.IntegerField(allow_null=True)
    gpus = serializers.ListField(child=JsonObject())
    gpu_problem = serializers.CharField(allow_blank=True)
    lacks = JsonObject(help_text="engines that it cannot run, with the reason")
    started_at = serializers.DateTimeField()
    heartbeat_at = serializers.DateTimeField()

    def get_alive(self, row: Worker) -> bool:
        limit = timedelta(seconds=settings.RUN_LOST_AFTER_SECONDS)
        return row.stopped_at is None and row.heartbeat_at > timezone.now() - limit


class WorkersShape(serializers.Serializer):
    """queued, running: runs that wait for a worker, and that one has taken."""

    items = WorkerShape(many=True)
    queued = serializers.IntegerField()
    running = serializers.IntegerField()


class Workers(Endpoint):
    @extend_schema(operation_id="listWorkers", responses=WorkersShape, tags=["workers"])
    def get(self, request: Any) -> Response:
        """All workers and the length of the queue."""
        running = Run.objects.filter(state=Run.State.RUNNING, by_script=False).count()
        return Response(
            {
                "items": WorkerShape(Worker.objects.all(), many=True).data,
                "queued": Run.objects.filter(state=Run.State.QUEUED).count(),
                "running": running,
            }
        )
