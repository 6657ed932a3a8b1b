"""What a run was asked to use, what it really used, and what changed against the run before."""

from django.db import models


class ConfigEntry(models.Model):
    """One argument of one run, requested and effective side by side."""

    class Origin(models.TextChoices):
        EXPLICIT = "explicit", "as asked"
        DEFAULT = "default", "chosen by the release"
        OVERRIDE = "override", "overridden by the engine"
        UNKNOWN = "unknown", "not known"

    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="config", db_index=False)
    key = models.CharField(max_length=80)
    requested = models.JSONField(null=True, blank=True)
    was_requested = models.BooleanField(default=False)
    effective = models.JSONField(null=True, blank=True)
    effective_known = models.BooleanField(default=False)
    predicted = models.BooleanField(
        default=False, help_text="effective value is predicted by rule, not yet seen"
    )
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.UNKNOWN)
    why = models.TextField(blank=True)
    line = models.PositiveIntegerField(null=True, blank=True, help_text="line of the run's log")

    class Meta:
        ordering = ["key"]
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="config_key_once")]
        # Runs are searched by their parameters.
        indexes = [models.Index(fields=["key"], name="config_by_key")]
        verbose_name_plural = "config entries"

    def __str__(self) -> str:
        return f"{self.run.label} {self.key}: {self.requested!r} -> {self.effective!r}"

    @property
    def differs(self) -> bool:
        return self.was_requested and self.effective_known and self.requested != self.effective


class ConfigChange(models.Model):
    """One thing that a run changed against the run it follows."""

    class Kind(models.TextChoices):
        ARGUMENT = "argument", "server argument"
        DRAFT_CONFIG = "draft-config", "draft config"
        PATCH = "patch", "source patch"
        ENVIRONMENT = "environment", "environment"
        VERSION = "version", "version"

    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="changes")
    kind = models.CharField(max_length=20, choices=Kind)
    key = models.CharField(max_length=120)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.run.label} {self.key}: {self.before!r} -> {self.after!r}"
