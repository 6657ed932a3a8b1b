"""What a run's GPUs did: the summaries on its page, and the samples behind its charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments import store
from experiments.models import DecodeSample, Evidence, Repeat, Run
from specdebug.measure.gpu_samples import KIND, GpuSamples, GpuSummary

LARGEST = 64 << 20


@dataclass(frozen=True)
class GpuCourse:
    """One run's GPUs over its time. spans: the measured repeats, in seconds since the epoch."""

    run: Run
    samples: GpuSamples
    decode: Sequence[DecodeSample]
    spans: Sequence[tuple[float, float]]


def gpu_summaries(run: Run) -> list[GpuSummary]:
    """The summaries kept with the run; empty where nothing was sampled."""
    try:
        return [GpuSummary.from_json(row) for row in run.gpus or ()]
    except TypeError:
        return []  # of another release of ours, or from an import: the file still is evidence


@dataclass(frozen=True)
class GpuPart:
    """The GPU part of a run's page: a summary a GPU, and the course where its samples are kept."""

    summaries: Sequence[GpuSummary]
    course: GpuCourse | None


def gpu_part(run: Run) -> GpuPart:
    """What a run's page tells of its GPUs: no query for a run without, 4 for one with samples."""
    summaries = gpu_summaries(run)
    if not summaries:
        return GpuPart((), None)
    try:
        return GpuPart(summaries, gpu_course(run.investigation.slug, run.number))
    except Evidence.DoesNotExist:
        return GpuPart(summaries, None)


def gpu_course(slug: str, number: int) -> GpuCourse:
    """The samples of a run with its decode lines: 4 queries.

    Raises Run.DoesNotExist, and Evidence.DoesNotExist where it has no samples that can be read.
    """
    run = Run.objects.only("pk", "number", "investigation").get(
        investigation__slug=slug, number=number
    )
    row = Evidence.objects.filter(run=run, kind=KIND).select_related("blob").order_by("-pk").first()
    if row is None or row.blob.size > LARGEST:
        raise Evidence.DoesNotExist
    try:
        samples = GpuSamples.unpacked(store.path_of(row.blob_id).read_bytes())
    except (OSError, ValueError):
        raise Evidence.DoesNotExist from None
    spans = [
        (repeat.started_at.timestamp(), repeat.started_at.timestamp() + repeat.seconds)
        for repeat in Repeat.objects.filter(run=run)
        if repeat.started_at is not None and repeat.seconds is not None
    ]
    decode = tuple(DecodeSample.objects.filter(run=run, t__isnull=False, tok_s__isnull=False))
    return GpuCourse(run, samples, decode, spans)
