"""A run: one configuration measured under one workload: its plan, its state, its figures."""

from django.db import models
from django.urls import reverse


class Run(models.Model):
    class State(models.TextChoices):
        DRAFT = "draft", "draft"
        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "failed"
        CANCELLED = "cancelled", "cancelled"
        LOST = "lost", "lost"

    ACTIVE = (State.QUEUED, State.RUNNING)
    ENDED = (State.DONE, State.FAILED, State.CANCELLED, State.LOST)

    # The constraint on its number is an index of it, too; so for other keys without one here.
    investigation = models.ForeignKey(
        "Investigation", on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    number = models.PositiveIntegerField(help_text="R0, R1 ... within the investigation")
    title = models.CharField(max_length=200)
    note = models.TextField(blank=True)
    position = models.FloatField(help_text="place on the timeline")
    at = models.DateTimeField(null=True, blank=True, help_text="None where only the order is known")
    recorded = models.BooleanField(
        default=False, help_text="figures taken from a write-up, not measured by a worker"
    )

    by_script = models.BooleanField(
        default=False, help_text="measured and sent by a program outside, not by a worker"
    )

    # Links
    hypothesis = models.ForeignKey(
        "Hypothesis", null=True, blank=True, on_delete=models.SET_NULL, related_name="runs"
    )
    prediction = models.ForeignKey(
        "Prediction",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="runs",
        help_text="the version that was in force when the run was claimed",
    )
    baseline = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="variants"
    )
    follows = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="followed_by"
    )
    repeats_run = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="repeated_by"
    )
    group = models.ForeignKey(
        "RunGroup",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="runs",
        db_index=False,
    )
    group_place = models.PositiveIntegerField(
        null=True, blank=True, help_text="place in the group's order, 0-based"
    )

    # Plan and life. Only conditional UPDATEs in `lifecycle` change the state.
    engine = models.CharField(max_length=20, default="reference")
    engine_release = models.CharField(max_length=40, blank=True)
    plan = models.JSONField(default=dict, blank=True, help_text="workers.plan.RunPlan as JSON")
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT, db_index=True)
    phase = models.CharField(max_length=20, blank=True)
    phase_detail = models.CharField(max_length=200, blank=True)
    fraction = models.FloatField(null=True, blank=True)
    reason = models.TextField(blank=True, help_text="why it failed, was cancelled or lost")
    attempt = models.PositiveIntegerField(default=0, help_text="times a worker has claimed it")
    claim = models.CharField(max_length=64, blank=True, help_text="token of the claiming task")
    worker = models.CharField(max_length=200, blank=True)
    # Noted when it is queued: only a worker that has them may claim it.
    needs_gpus = models.PositiveIntegerField(default=0, help_text="GPUs on one host")
    needs_worker = models.CharField(max_length=100, blank=True, help_text="by name; empty: any")
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    queued_at = models.DateTimeField(null=True, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    ready_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    # What really ran
    host = models.CharField(max_length=200, blank=True)
    argv = models.JSONField(default=list, blank=True, help_text="exact command line")
    env = models.JSONField(default=dict, blank=True)
    versions = models.JSONField(default=dict, blank=True)
    server_info = models.JSONField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    series_key = models.CharField(
        max_length=64, blank=True, db_index=True, help_text="identity of configuration and host"
    )
    gpus = models.JSONField(
        null=True, blank=True, help_text="measure.gpu_samples.GpuSummary as JSON; None: no samples"
    )

    preflight = models.JSONField(
        null=True, blank=True, help_text="what the release was expected to make of the arguments"
    )
    provenance = models.JSONField(
        default=dict, blank=True, help_text="source checkout, checkpoints, GPUs, as the worker saw"
    )
    accept_lengths = models.JSONField(
        default=list, blank=True, help_text="[{name, value, formula, verifies}]"
    )

    # When findings and verdicts were drawn from it, and why that failed where it did.
    checked_at = models.DateTimeField(null=True, blank=True)
    check_problem = models.TextField(blank=True)
    # What the library found in this run alone, as it gave it: findings in the form of
    # docs/check-json.md, and [{"code", "missing"}] for what could not be judged. The life of a
    # finding over runs is folded from these.
    shown = models.JSONField(default=list, blank=True)
    untried = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["investigation", "number"], name="run_number_once"),
            models.UniqueConstraint(fields=["group", "group_place"], name="run_group_place_once"),
        ]
        # The end of the timeline is where each new run goes.
        indexes = [models.Index(fields=["investigation", "position"], name="run_by_place")]

    def __str__(self) -> str:
        return f"{self.label}: {self.title}"

    def get_absolute_url(self) -> str:
        return reverse("run", args=[self.investigation.slug, self.number])

    @property
    def label(self) -> str:
        return f"R{self.number}"


class Repeat(models.Model):
    """One measured pass; the figures' definitions are in docs/metrics.md. None: not known."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="repeats", db_index=False)
    index = models.PositiveIntegerField()
    started_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    requests = models.PositiveIntegerField(null=True, blank=True)
    tokens = models.PositiveIntegerField(null=True, blank=True, help_text="output tokens")
    verify_ct = models.PositiveIntegerField(null=True, blank=True, help_text="verify passes")
    accept_histogram = models.JSONField(null=True, blank=True)
    tok_s = models.FloatField(help_text="output tokens per second of wall time")
    accept_len = models.FloatField(null=True, blank=True, help_text="bonus token included")
    accept_rate = models.FloatField(
        null=True,
        blank=True,
        help_text="as a write-up states it; the formula depends on the release",
    )
    step_ms = models.FloatField(null=True, blank=True)
    output_sha256 = models.CharField(max_length=64, blank=True)
    prompts_sha256 = models.CharField(max_length=64, blank=True, help_text="of the prompts' ids")

    class Meta:
        ordering = ["index"]
        constraints = [models.UniqueConstraint(fields=["run", "index"], name="repeat_once")]

    def __str__(self) -> str:
        return f"{self.run.label} repeat {self.index}"


class DecodeSample(models.Model):
    """One decode line of the engine's log."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="samples", db_index=False)
    line = models.PositiveIntegerField(help_text="1-based line of the run's log")
    rank = models.CharField(max_length=40, blank=True, help_text="as printed, empty with one rank")
    t = models.FloatField(null=True, blank=True, help_text="seconds since the epoch, log clock")
    tok_s = models.FloatField(null=True, blank=True)
    accept_len = models.FloatField(null=True, blank=True)
    accept_rate = models.FloatField(null=True, blank=True)
    running = models.PositiveIntegerField(null=True, blank=True)
    queue = models.PositiveIntegerField(null=True, blank=True)
    in_repeat = models.BooleanField(default=True, help_text="False: warm-up or idle stretch")

    class Meta:
        ordering = ["line"]
        constraints = [models.UniqueConstraint(fields=["run", "line"], name="sample_once")]

    def __str__(self) -> str:
        return f"{self.run.label} line {self.line}"
