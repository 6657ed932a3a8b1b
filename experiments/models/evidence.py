"""Evidence: files kept by content hash, and where each was used."""

from django.db import models


class Blob(models.Model):
    """One content, stored once under its hash in the data folder."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    size = models.PositiveBigIntegerField(help_text="bytes")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.sha256[:12]} ({self.size} bytes)"


class Evidence(models.Model):
    """A file that belongs to an investigation or to one of its runs."""

    investigation = models.ForeignKey(
        "Investigation", on_delete=models.CASCADE, related_name="evidence"
    )
    run = models.ForeignKey(
        "Run", null=True, blank=True, on_delete=models.CASCADE, related_name="evidence"
    )
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="uses")
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=40, help_text="as recognised by content")
    problem = models.TextField(blank=True, help_text="why it could not be read, if so")
    added_by = models.CharField(max_length=150, blank=True)
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "evidence"
        constraints = [
            models.UniqueConstraint(
                fields=["run", "blob", "name"],
                condition=models.Q(run__isnull=False),
                name="evidence_once",
            ),
            # Two constraints, since SQLite cannot take empty runs for equal in one.
            models.UniqueConstraint(
                fields=["investigation", "blob", "name"],
                condition=models.Q(run__isnull=True),
                name="loose_evidence_once",
            ),
        ]

    def __str__(self) -> str:
        return self.name
