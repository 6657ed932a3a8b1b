"""Runs that belong together: a comparison taken in turns, or a sweep over settings."""

from django.db import models
from django.urls import reverse


class RunGroup(models.Model):
    """A plan for several runs that are made and queued one after another.

    `plan` holds {"points": [{"name", "values", "server_args", "workload"}], "order": [index of a
    point, ...], "settings": what all runs share}; `dropped` the settings that were left out before
    they cost anything, [{"values", "why", "as"}]; `skipped` those left out on the way,
    {index of a point: why}.
    """

    class Kind(models.TextChoices):
        COMPARISON = "comparison", "comparison"
        SWEEP = "sweep", "sweep"

    class State(models.TextChoices):
        RUNNING = "running", "running"
        STOPPED = "stopped", "stopped"
        DONE = "done", "done"

    investigation = models.ForeignKey(
        "Investigation", on_delete=models.CASCADE, related_name="groups"
    )
    number = models.PositiveIntegerField(help_text="1, 2 ... within the investigation")
    kind = models.CharField(max_length=12, choices=Kind)
    title = models.CharField(max_length=200)
    baseline = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    hypothesis = models.ForeignKey(
        "Hypothesis", null=True, blank=True, on_delete=models.SET_NULL, related_name="groups"
    )
    plan = models.JSONField(default=dict)
    dropped = models.JSONField(default=list, blank=True)
    skipped = models.JSONField(default=dict, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING, db_index=True)
    reason = models.TextField(blank=True, help_text="why it stands or ended as it is")
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["investigation", "number"], name="group_number_once")
        ]

    def __str__(self) -> str:
        return f"{self.label}: {self.title}"

    def get_absolute_url(self) -> str:
        return reverse("sweep", args=[self.investigation.slug, self.number])

    @property
    def label(self) -> str:
        return f"{'S' if self.kind == self.Kind.SWEEP else 'C'}{self.number}"
