"""A hypothesis: a claim with a prediction registered before the run, and two verdicts after it."""

from django.db import models
from django.urls import reverse


class Hypothesis(models.Model):
    investigation = models.ForeignKey(
        "Investigation", on_delete=models.CASCADE, related_name="hypotheses"
    )
    number = models.PositiveIntegerField(help_text="H1, H2 ... within the investigation")
    claim = models.CharField(max_length=400)
    mechanism = models.TextField(blank=True)
    author = models.CharField(max_length=150, blank=True)
    position = models.FloatField(help_text="place on the timeline")
    recorded = models.BooleanField(
        default=False, help_text="entered afterwards, from a write-up, and not registered live"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    # A wall-clock time for the event, None where only the order is known.
    at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(
                fields=["investigation", "number"], name="hypothesis_number_once"
            )
        ]

    def __str__(self) -> str:
        return f"H{self.number}: {self.claim}"

    def get_absolute_url(self) -> str:
        return reverse("hypothesis", args=[self.investigation.slug, self.number])

    @property
    def label(self) -> str:
        return f"H{self.number}"


class HypothesisLink(models.Model):
    class Kind(models.TextChoices):
        FOLLOWS_FROM = "follows-from", "follows from"
        RULES_OUT = "rules-out", "rules out"
        REPLACES = "replaces", "replaces"

    origin = models.ForeignKey(Hypothesis, on_delete=models.CASCADE, related_name="links")
    kind = models.CharField(max_length=20, choices=Kind)
    other = models.ForeignKey(Hypothesis, on_delete=models.CASCADE, related_name="linked_from")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["origin", "kind", "other"], name="link_once")
        ]

    def __str__(self) -> str:
        return f"{self.origin.label} {self.get_kind_display()} {self.other.label}"


class Prediction(models.Model):
    """One version of a prediction. Frozen when its first run starts; an edit is a new version."""

    class Direction(models.TextChoices):
        UP = "up", "rises"
        DOWN = "down", "falls"
        WITHIN = "within", "lies within an interval"

    hypothesis = models.ForeignKey(Hypothesis, on_delete=models.CASCADE, related_name="predictions")
    version = models.PositiveIntegerField(default=1)
    metric = models.CharField(max_length=40, default="tok_s")
    baseline = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.PROTECT, related_name="predicted_against"
    )
    direction = models.CharField(max_length=10, choices=Direction, default=Direction.UP)
    # Bounds of the ratio run / baseline for `within`; the margin is the smallest ratio change that
    # would matter (0.02 = 2 %).
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    margin = models.FloatField(default=0.02)
    registered_at = models.DateTimeField(auto_now_add=True)
    frozen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["version"]
        constraints = [
            models.UniqueConstraint(
                fields=["hypothesis", "version"], name="prediction_version_once"
            )
        ]

    def __str__(self) -> str:
        against = f" against {self.baseline.label}" if self.baseline else ""
        if self.direction == self.Direction.WITHIN:
            return f"{self.metric} within {self.low} to {self.high} times{against}"
        return f"{self.metric} {self.get_direction_display()}{against}"


class AppliedCheck(models.Model):
    """How one will know that the change was really applied, decided before the run."""

    class Kind(models.TextChoices):
        EFFECTIVE_EQUALS = "effective-equals", "effective argument equals"
        LOG_PRESENT = "log-present", "log line present"
        LOG_ABSENT = "log-absent", "log line absent"
        CAPTURED_LAYERS = "captured-layers", "captured layers equal"

    hypothesis = models.ForeignKey(Hypothesis, on_delete=models.CASCADE, related_name="checks")
    kind = models.CharField(max_length=20, choices=Kind)
    key = models.CharField(
        max_length=200, blank=True, help_text="argument name, or text of the line"
    )
    expected = models.JSONField(null=True, blank=True)
    registered_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.key or self.get_kind_display()} = {self.expected!r}"


class Verdict(models.Model):
    """Both verdicts of a hypothesis after one run; the newest row per run is in force."""

    class Applied(models.TextChoices):
        YES = "yes", "applied"
        NO = "no", "not applied"
        UNKNOWN = "unknown", "not known whether applied"

    class Outcome(models.TextChoices):
        SUPPORTED = "supported", "supported"
        REFUTED = "refuted", "refuted"
        UNDECIDED = "undecided", "undecided"

    hypothesis = models.ForeignKey(Hypothesis, on_delete=models.CASCADE, related_name="verdicts")
    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="verdicts")
    prediction = models.ForeignKey(
        Prediction, null=True, blank=True, on_delete=models.PROTECT, related_name="verdicts"
    )
    applied = models.CharField(max_length=10, choices=Applied)
    applied_reason = models.CharField(max_length=600)
    outcome = models.CharField(max_length=10, choices=Outcome)
    outcome_reason = models.CharField(max_length=600)
    # "" for the rules; a person's name when a person overruled, whose reason stands in the reasons.
    decided_by = models.CharField(max_length=150, blank=True)
    in_force = models.BooleanField(default=True)
    decided_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["hypothesis", "run"],
                condition=models.Q(in_force=True),
                name="one_verdict_in_force",
            )
        ]

    def __str__(self) -> str:
        return f"{self.hypothesis.label} after {self.run.label}: {self.applied}, {self.outcome}"
