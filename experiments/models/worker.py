"""A worker that registered itself: where it runs, what it can run, when it was last heard of."""

from django.db import models


class Worker(models.Model):
    """One worker by its own name; a worker that starts again takes its row over."""

    name = models.CharField(max_length=100, unique=True)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    version = models.CharField(max_length=40, blank=True, help_text="of specdebug")
    gpu_count = models.PositiveIntegerField(
        null=True, blank=True, help_text="GPUs it may lease; None: not known, nothing is refused"
    )
    gpus = models.JSONField(
        default=list, blank=True, help_text="each as workers.gpus.as_json gives it, with its lease"
    )
    gpu_problem = models.TextField(blank=True, help_text="why its GPUs are not known")
    lacks = models.JSONField(
        default=dict, blank=True, help_text="engines it cannot run, with the reason"
    )
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, blank=True, help_text="when it said good-bye")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
