"""What a run's GPUs did, from the worker's file to the run's row; it judges nothing."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from specdebug.measure.gpu_samples import FILE, KIND, GpuSamples, summarise
from workers.plan import RunOutcome

log = logging.getLogger(__name__)


def summary_of(outcome: RunOutcome) -> list[dict[str, Any]] | None:
    """A summary per GPU over the measured repeats; None where nothing was sampled or where the file
    cannot be read, which must not cost the run's figures."""
    if (FILE, KIND) not in outcome.files or not outcome.folder:
        return None
    spans = [(repeat.started_at, repeat.started_at + repeat.seconds) for repeat in outcome.repeats]
    try:
        found = GpuSamples.unpacked((Path(outcome.folder) / FILE).read_bytes())
    except (OSError, ValueError) as problem:
        log.warning("the GPU samples of %s cannot be read: %s", outcome.folder, problem)
        return None
    return [gpu.as_json() for gpu in summarise(found, spans)]
