"""The GPUs of one run, from the lease to the release: all that the runner needs to know of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from specdebug.measure.gpu_samples import FILE, KIND
from workers import gpu_lease, gpus
from workers.gpu_lease import Lease
from workers.gpus import NoGpus
from workers.plan import ShouldStop
from workers.telemetry import Telemetry

log = logging.getLogger(__name__)

HERE = frozenset({"127.0.0.1", "localhost", "::1"})


class GpuUse:
    """Nothing at first; `lease` or `watch` gives it GPUs, `end` takes them away again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lease: Lease | None = None
        self._telemetry: Telemetry | None = None
        self.facts: dict[str, str] = {}  # for the record: driver, names, topology, or why none
        self.files: tuple[tuple[str, str], ...] = ()  # (name, kind) in the run's folder

    @property
    def env(self) -> dict[str, str]:
        return self._lease.env if self._lease else {}

    @property
    def handles(self) -> tuple[int, ...]:
        """Descriptors of the locks, for the leash to hold on to."""
        return self._lease.handles if self._lease else ()

    def lease(
        self,
        server_args: tuple[str, ...],
        env: Mapping[str, str],
        *,
        run: str,
        on_wait: Callable[[str], None],
        should_stop: ShouldStop,
    ) -> None:
        """Lease what the command needs and begin to sample it. `env`: the plan's own variables.

        Raises RunEnded where the GPUs cannot be had. A machine without NVML has none to lease: the
        engine is started all the same, on whatever else it can use, and the record says so.
        """
        need = gpu_lease.needed(server_args, env=env)
        if need.count == 0:
            return
        try:
            self._lease = gpu_lease.take(need, run=run, on_wait=on_wait, should_stop=should_stop)
        except NoGpus as problem:
            if not problem.none:
                raise gpu_lease.cannot(problem) from None
            self.facts["gpus"] = f"none leased ({problem.reason})"
            return
        self.facts.update(self._lease.facts)
        self._sample(self._lease.gpus)

    def watch(self, url: str) -> None:
        """Sample this machine's GPUs, none of them ours, where the server at `url` is on it."""
        if urlsplit(url).hostname not in HERE:
            return
        try:
            with gpus.nvml() as asked:
                found = [gpu for gpu in asked.gpus() if gpu.uuid and not gpu.problem]
                self.facts.update(asked.facts(found))
        except NoGpus:
            return
        self._sample(found)

    def _sample(self, chosen: tuple[gpus.Gpu, ...] | list[gpus.Gpu]) -> None:
        self._telemetry = Telemetry(chosen)
        self._telemetry.__enter__()

    def end(self, *, on_wait: Callable[[str], None]) -> str:
        """Keep the samples, wait for the memory to be free, let the GPUs go.

        One sentence where something is left, else "". Safe to call twice.
        """
        telemetry, self._telemetry = self._telemetry, None
        lease, self._lease = self._lease, None
        try:
            if telemetry is not None:
                telemetry.stop()
                if telemetry.keep(self._folder / FILE):
                    self.files = ((FILE, KIND),)
        except OSError as problem:
            log.warning("the GPU samples could not be kept: %s", problem)
        if lease is None:
            return ""
        try:
            return lease.wait_released(on_wait=on_wait)
        finally:
            lease.release()
