"""GPU figures once a second while a run lasts, in a thread of its own; what they say is decided
elsewhere."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from specdebug.measure.gpu_samples import (
    FIELDS,
    MOST_TIMES,
    NOTHING,
    GpuColumn,
    GpuSamples,
    Sample,
    merged,
    thinned,
)
from workers import gpus
from workers.gpus import Gpu, GpuLost, NoGpus, Nvml

log = logging.getLogger(__name__)

EVERY_SECONDS = 1.0
# A GPU that is gone or a driver that hangs must not hold up the end of a run.
END_SECONDS = 5.0


class Telemetry:
    """Samples of `chosen` while the block lasts; without NVML there are none, and no error."""

    def __init__(self, chosen: Sequence[Gpu], *, every: float | None = None) -> None:
        self.chosen = tuple(chosen)
        self._every = EVERY_SECONDS if every is None else every
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._columns: list[dict[str, list[int | None]]] = [
            {name: [] for name in FIELDS} for _ in self.chosen
        ]
        self._times: list[float] = []
        self._lost: dict[str, float] = {}
        self._per = 1  # moments that go into a kept one
        self._pending: list[tuple[float, list[Sample]]] = []
        self._thread = threading.Thread(target=self._live, name="telemetry", daemon=True)

    def __enter__(self) -> Telemetry:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the thread; safe to call twice and before it was started."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(END_SECONDS)

    def samples(self) -> GpuSamples:
        """What was sampled so far, a copy."""
        with self._lock:
            return GpuSamples(
                list(self._times),
                [
                    GpuColumn(
                        gpu.index,
                        gpu.uuid,
                        gpu.name,
                        {name: list(values) for name, values in columns.items()},
                        self._lost.get(gpu.uuid),
                    )
                    for gpu, columns in zip(self.chosen, self._columns, strict=True)
                ],
                self._every * self._per,
            )

    def keep(self, path: Path) -> bool:
        """Write the samples; False where there are none. Raises OSError."""
        found = self.samples()
        if not found.times:
            return False
        fresh = path.with_name(f".{path.name}")
        fresh.write_bytes(found.packed())
        fresh.replace(path)
        return True

    def _live(self) -> None:
        try:
            with gpus.nvml() as asked:
                begin = time.monotonic()
                rounds = 0
                while not self._stop.is_set():
                    self._look(asked)
                    # By the clock and not after each other, so that a slow answer shifts nothing.
                    rounds = max(rounds + 1, int((time.monotonic() - begin) / self._every))
                    self._stop.wait(begin + rounds * self._every - time.monotonic())
        except NoGpus as problem:
            log.info("no GPU samples: %s", problem.reason)
        except Exception:
            # Figures beside a measurement are not worth the measurement.
            log.exception("no more GPU samples")

    def _look(self, asked: Nvml) -> None:
        at = time.time()
        row = [self._ask(asked, gpu, at) for gpu in self.chosen]
        with self._lock:
            self._pending.append((at, row))
            if len(self._pending) < self._per:
                return
            self._times.append(self._pending[0][0])
            for n, columns in enumerate(self._columns):
                for name, column in columns.items():
                    column.append(merged(name, [getattr(r[n], name) for _, r in self._pending]))
            self._pending.clear()
        if len(self._times) >= MOST_TIMES:
            half = thinned(self.samples())
            with self._lock:
                self._times = list(half.times)
                self._columns = [
                    {name: list(values) for name, values in gpu.columns.items()}
                    for gpu in half.gpus
                ]
                self._per *= 2

    def _ask(self, asked: Nvml, gpu: Gpu, at: float) -> Sample:
        if gpu.uuid in self._lost:
            return NOTHING
        try:
            return asked.sample(gpu.uuid)
        except GpuLost as problem:
            log.warning("GPU %s: %s", gpu.index, problem)
            self._lost[gpu.uuid] = at
            return NOTHING
