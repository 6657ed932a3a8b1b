"""An event on the timeline that is no run and no hypothesis: an observation, a fix, a belief."""

from django.db import models


class Event(models.Model):
    class Kind(models.TextChoices):
        OBSERVATION = "observation", "observation"
        SOURCE = "source", "source reading"
        FIX = "fix", "fix"
        BELIEF = "belief", "what was believed"
        NOTE = "note", "note"

    investigation = models.ForeignKey(
        "Investigation", on_delete=models.CASCADE, related_name="events"
    )
    kind = models.CharField(max_length=20, choices=Kind, default=Kind.NOTE)
    title = models.CharField(max_length=200)
    text = models.TextField(blank=True, help_text="Markdown")
    position = models.FloatField(help_text="place on the timeline")
    at = models.DateTimeField(null=True, blank=True, help_text="None where only the order is known")
    run = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="events"
    )
    hypothesis = models.ForeignKey(
        "Hypothesis", null=True, blank=True, on_delete=models.SET_NULL, related_name="events"
    )
    author = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["position"]

    def __str__(self) -> str:
        return self.title
