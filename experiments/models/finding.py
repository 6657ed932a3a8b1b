"""A finding: a named fault with its evidence and a life of its own."""

from django.db import models


class Finding(models.Model):
    class Severity(models.TextChoices):
        CRITICAL = "critical", "critical"
        HIGH = "high", "high"
        MEDIUM = "medium", "medium"
        INFO = "info", "info"

    class Confidence(models.TextChoices):
        CERTAIN = "certain", "certain"
        LIKELY = "likely", "likely"
        POSSIBLE = "possible", "possible"

    class State(models.TextChoices):
        OPEN = "open", "open"
        FIXED = "fixed", "fixed, verified"
        SET_ASIDE = "set-aside", "set aside"
        # Looked at again, with more evidence or a better rule, no run shows it any more.
        WITHDRAWN = "withdrawn", "withdrawn"

    investigation = models.ForeignKey(
        "Investigation", on_delete=models.CASCADE, related_name="findings"
    )
    code = models.CharField(max_length=60)
    severity = models.CharField(max_length=10, choices=Severity)
    confidence = models.CharField(max_length=10, choices=Confidence)
    statement = models.TextField()
    fix = models.TextField(blank=True)
    settled_by = models.TextField(blank=True)
    # [{"source", "line", "text"}] as the library gave it for the run that showed it last.
    evidence = models.JSONField(default=list, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.OPEN, db_index=True)
    opened_in = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="findings_opened"
    )
    seen_in = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="findings_seen"
    )
    fixed_in = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="findings_fixed"
    )
    set_aside_by = models.CharField(max_length=150, blank=True)
    set_aside_reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            # One fault has one life per investigation; it can be fixed and reopened, not doubled.
            models.UniqueConstraint(fields=["investigation", "code"], name="finding_once")
        ]

    def __str__(self) -> str:
        return f"{self.code} ({self.state})"


class FindingEvent(models.Model):
    """One turn in a finding's life."""

    class Kind(models.TextChoices):
        OPENED = "opened", "opened"
        SEEN = "seen", "seen again"
        FIXED = "fixed", "fixed, verified"
        REOPENED = "reopened", "reopened"
        SET_ASIDE = "set-aside", "set aside"
        WITHDRAWN = "withdrawn", "withdrawn"

    finding = models.ForeignKey(Finding, on_delete=models.CASCADE, related_name="events")
    kind = models.CharField(max_length=10, choices=Kind)
    run = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="finding_events"
    )
    statement = models.TextField(blank=True)
    by = models.CharField(max_length=150, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            # Looking at the same run again tells nothing new.
            models.UniqueConstraint(fields=["finding", "kind", "run"], name="finding_event_once")
        ]

    def __str__(self) -> str:
        return f"{self.finding.code} {self.kind}"
