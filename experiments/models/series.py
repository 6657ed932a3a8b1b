"""What programs log into a run: points by metric, packed, and one summary row per metric."""

from django.db import models


class MetricSummary(models.Model):
    """One metric of one run as one figure, which is what runs are searched and ordered by.

    value: the mean over the run's repeats where `measured` (accept_len: pooled), else the value of
    the last point. count: repeats or points behind it. low, high: smallest and largest of them.
    """

    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="metrics", db_index=False)
    name = models.CharField(max_length=80)
    value = models.FloatField()
    measured = models.BooleanField(default=False)
    count = models.PositiveBigIntegerField(default=1)
    low = models.FloatField()
    high = models.FloatField()
    last_step = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "metric summaries"
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="metric_once")]
        indexes = [models.Index(fields=["name", "value"], name="metric_by_value")]

    def __str__(self) -> str:
        return f"{self.run_id} {self.name} = {self.value:.4g}"


class PointStream(models.Model):
    """One program that logs into a run, and how many rows of it have been taken."""

    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="streams", db_index=False)
    writer = models.CharField(max_length=64)
    next_row = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "writer"], name="stream_once")]

    def __str__(self) -> str:
        return f"{self.writer} has sent {self.next_row} rows"


class PointChunk(models.Model):
    """Points of one metric in the order of arrival, packed as little-endian (step, time, value):
    a 64-bit integer, seconds since the epoch and the value as doubles, 24 bytes a point."""

    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="chunks", db_index=False)
    name = models.CharField(max_length=80)
    count = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["run", "name"], name="chunk_of_metric")]

    def __str__(self) -> str:
        return f"{self.count} points of {self.name}"
