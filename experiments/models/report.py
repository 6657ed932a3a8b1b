"""A report: one frozen post-mortem of an investigation, with its hash."""

from django.db import models


class Report(models.Model):
    class State(models.TextChoices):
        DRAFT = "draft", "draft"
        PUBLISHED = "published", "published"

    investigation = models.ForeignKey(
        "Investigation", on_delete=models.CASCADE, related_name="reports"
    )
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    sha256 = models.CharField(max_length=64, help_text="of the post-mortem as canonical JSON")
    post_mortem = models.JSONField()
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["investigation", "number"], name="report_number_once")
        ]

    def __str__(self) -> str:
        return f"report {self.number} of {self.investigation.slug}"
