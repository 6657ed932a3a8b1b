"""Series that are watched over time, what they alarmed about, and curves that people add."""

from django.conf import settings
from django.db import models
from django.urls import reverse


class WatchedSeries(models.Model):
    """One configuration on one host whose runs are watched: a control that never changes.

    `key` is the configuration's identity (`checkup.identity`), which `Run.series_key` holds too.
    """

    key = models.CharField(max_length=64, unique=True)
    title = models.CharField(max_length=200)
    started_from = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="watched_as"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "watched series"

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("control", args=[self.pk])


class Alert(models.Model):
    """One change in a watched series. A cause alarms once: later runs that show it add nothing."""

    class Kind(models.TextChoices):
        REGRESSION = "regression", "regression"
        IMPROVEMENT = "improvement", "improvement"

    series = models.ForeignKey(WatchedSeries, on_delete=models.CASCADE, related_name="alerts")
    kind = models.CharField(max_length=12, choices=Kind)
    # The first run of the new level as far as is known; a later look may move it by a few runs.
    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="alerts")
    sentence = models.CharField(max_length=400)
    opened_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_by = models.CharField(max_length=150, blank=True)
    reason = models.CharField(max_length=400, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["series", "kind", "run"], name="alert_once")]

    def __str__(self) -> str:
        return f"{self.series}: {self.kind}"


class AcceptanceCurve(models.Model):
    """A reference curve of accept lengths that a person added; the shipped ones are no rows."""

    target = models.CharField(max_length=100, help_text="part of the target's path or served name")
    method = models.CharField(max_length=20, blank=True)
    accept_len = models.JSONField(help_text='{"1": 1.83, ...} by number of draft tokens')
    about = models.CharField(max_length=200, blank=True)
    source = models.CharField(max_length=300)
    added_by = models.CharField(max_length=150, blank=True)
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["target", "pk"]

    def __str__(self) -> str:
        return f"{self.target}: {self.source}"
