"""One summary row per metric for the runs that were measured before such rows were kept."""

from collections import defaultdict
from statistics import fmean

from django.db import migrations

METRICS = ("tok_s", "accept_len", "step_ms")


def summarise(apps, schema_editor):
    Repeat = apps.get_model("experiments", "Repeat")
    MetricSummary = apps.get_model("experiments", "MetricSummary")
    repeats = defaultdict(list)
    for row in Repeat.objects.all().iterator():
        repeats[row.run_id].append(row)
    rows = []
    for run_id, own in repeats.items():
        for name in METRICS:
            values = [v for row in own if (v := getattr(row, name)) is not None]
            if not values:
                continue
            value = fmean(values)
            counts = [(r.tokens, r.requests, r.verify_ct) for r in own]
            if name == "accept_len" and all(None not in c for c in counts) and sum(
                c[2] for c in counts
            ):
                value = sum(c[0] - c[1] for c in counts) / sum(c[2] for c in counts)
            rows.append(
                MetricSummary(
                    run_id=run_id,
                    name=name,
                    value=value,
                    measured=True,
                    count=len(values),
                    low=min(values),
                    high=max(values),
                )
            )
    MetricSummary.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)


class Migration(migrations.Migration):
    dependencies = [("experiments", "0003_programs")]
    operations = [migrations.RunPython(summarise, migrations.RunPython.noop)]
