"""An investigation: a question with a goal, open until the goal is met or someone signs why not."""

from django.conf import settings
from django.db import models
from django.urls import reverse


class Investigation(models.Model):
    class State(models.TextChoices):
        OPEN = "open", "open"
        RESOLVED = "resolved", "resolved"
        ABANDONED = "abandoned", "abandoned"

    class Goal(models.TextChoices):
        BEAT_BASELINE = "beat-baseline", "at least the baseline times a factor"
        AT_LEAST = "at-least", "at least a figure"
        AT_MOST = "at-most", "at most a figure"

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200)
    question = models.TextField()
    context = models.TextField(blank=True, help_text="Markdown: the set-up, who, where.")
    state = models.CharField(max_length=10, choices=State, default=State.OPEN)

    # The goal: `goal_metric` of the best run against `goal_value`, which is a factor of the
    # baseline for beat-baseline and a figure in the metric's unit otherwise.
    goal_metric = models.CharField(max_length=40, default="tok_s")
    goal_kind = models.CharField(max_length=20, choices=Goal, default=Goal.BEAT_BASELINE)
    goal_value = models.FloatField(default=1.0)
    baseline = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="baseline_of_goal"
    )

    # Resolving against the rules needs a name and a reason; every report shows them.
    exception_reason = models.TextField(blank=True)
    exception_by = models.CharField(max_length=150, blank=True)

    # What is known outside the runs, e.g. {"training": {"val_accuracy": 0.747, ...}}; the same
    # form as the notes of `specdebug check`.
    notes = models.JSONField(default=dict, blank=True)
    # Findings in the files that belong to no run, in the form of docs/check-json.md.
    shown = models.JSONField(default=list, blank=True)
    # Set for investigations that the program itself loads, so that loading twice changes nothing.
    source = models.CharField(max_length=40, blank=True, db_index=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-updated_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["source"], condition=~models.Q(source=""), name="source_once"
            )
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("investigation", args=[self.slug])
