"""A report: one frozen post-mortem of an investigation, its notes, its PDFs and its share links."""

from django.db import models
from django.urls import reverse


class Report(models.Model):
    """One version. At most one draft per investigation; what is published never changes."""

    class State(models.TextChoices):
        DRAFT = "draft", "draft"
        PUBLISHED = "published", "published"

    class Template(models.TextChoices):
        FULL = "full", "full"
        SHORT = "short", "short"

    class Page(models.TextChoices):
        A4 = "A4", "A4"
        LETTER = "Letter", "US Letter"

    investigation = models.ForeignKey(
        "Investigation", on_delete=models.CASCADE, related_name="reports"
    )
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    template = models.CharField(max_length=10, choices=Template, default=Template.FULL)
    page = models.CharField(max_length=10, choices=Page, default=Page.A4)
    left_out = models.JSONField(default=list, blank=True, help_text="keys of sections not shown")
    kept = models.JSONField(
        default=list, blank=True, help_text="keys of redactions that a person has let through"
    )
    sha256 = models.CharField(
        max_length=64, blank=True, help_text="of the document as canonical JSON, once published"
    )
    post_mortem = models.JSONField(
        default=dict, blank=True, help_text="the whole document, once published"
    )
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    published_by = models.CharField(max_length=150, blank=True)
    published_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["investigation", "number"], name="report_number_once"),
            models.UniqueConstraint(
                fields=["investigation"],
                condition=models.Q(state="draft"),
                name="report_one_draft",
            ),
        ]

    def __str__(self) -> str:
        return f"report {self.number} of {self.investigation.slug}"

    def get_absolute_url(self) -> str:
        if self.state == self.State.DRAFT:
            return reverse("report-page", args=[self.investigation.slug])
        return reverse("report-version", args=[self.investigation.slug, self.number])


class ReportNote(models.Model):
    """What a person adds to a section; shown as theirs, beside what was measured."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="remarks")
    section = models.CharField(max_length=40)
    text = models.TextField(help_text="Markdown")
    author = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.author} on {self.section}"


class Rendering(models.Model):
    """One PDF of one document, made by a worker; the row counts, the message only wakes."""

    class State(models.TextChoices):
        QUEUED = "queued", "waiting for a worker"
        RUNNING = "running", "being made"
        DONE = "done", "made"
        FAILED = "failed", "failed"

    document = models.ForeignKey("Blob", on_delete=models.PROTECT, related_name="renderings")
    page = models.CharField(max_length=10, choices=Report.Page, default=Report.Page.A4)
    maker = models.CharField(max_length=40, help_text="version of the program that makes it")
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED, db_index=True)
    step = models.CharField(max_length=80, blank=True)
    fraction = models.FloatField(default=0.0)
    claim = models.CharField(max_length=64, blank=True)
    attempt = models.PositiveIntegerField(default=0)
    queued_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    pdf = models.ForeignKey(
        "Blob", null=True, blank=True, on_delete=models.PROTECT, related_name="pdf_of"
    )
    problem = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["document", "page", "maker"], name="rendering_once")
        ]

    def __str__(self) -> str:
        return f"PDF of {self.document_id[:12]} on {self.page}"


class ShareLink(models.Model):
    """A link that shows one published report to whoever holds it; only its hash is kept."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="links")
    token_sha256 = models.CharField(max_length=64, unique=True)
    label = models.CharField(max_length=150, blank=True, help_text="for whom it was made")
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=150, blank=True)
    opened = models.PositiveIntegerField(default=0)
    opened_at = models.DateTimeField(null=True, blank=True)
    # Requests in the minute that began at window_at: what the rate limit counts.
    window_at = models.DateTimeField(null=True, blank=True)
    window_count = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"share link {self.pk} of report {self.report_id}"
