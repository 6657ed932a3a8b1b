"""The machine's NVIDIA GPUs as NVML tells of them; it reserves nothing and keeps no samples.

NVML (libnvidia-ml.so.1) comes with the driver. A machine without it has no GPU that could be named
here, which is an answer and no error.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml

from specdebug.measure.gpu_samples import Sample
from workers import processes

MB = 1 << 20
# What NVML answers where there is no GPU to speak of, rather than one in trouble.
_NONE = (
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_NO_PERMISSION,  # a container that was given no device
)
_LINKS = {
    pynvml.NVML_TOPOLOGY_INTERNAL: "one board",
    pynvml.NVML_TOPOLOGY_SINGLE: "one PCIe switch",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "several PCIe switches",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "one host bridge",
    pynvml.NVML_TOPOLOGY_NODE: "one NUMA node",
    pynvml.NVML_TOPOLOGY_SYSTEM: "across NUMA nodes",
}


# A pool's child is forked at any time, also while another thread looks for the library: the lock it
# then holds would stay locked in the child for good, and the child's first look would never end.
os.register_at_fork(
    before=pynvml.libLoadLock.acquire,
    after_in_parent=pynvml.libLoadLock.release,
    after_in_child=pynvml.libLoadLock.release,
)


class NoGpus(Exception):
    """NVML cannot be asked. `none`: because there is no NVIDIA GPU or driver here at all."""

    def __init__(self, reason: str, *, none: bool) -> None:
        super().__init__(reason)
        self.reason, self.none = reason, none


@dataclass(frozen=True)
class Process:
    """A process that computes on a GPU. memory_mb: MiB, None where the driver does not say."""

    pid: int
    name: str
    user: str
    memory_mb: int | None

    def __str__(self) -> str:
        memory = "an unknown amount" if self.memory_mb is None else f"{self.memory_mb:,} MB"
        return f"process {self.pid} ({self.name}) of user {self.user} holds {memory}"


@dataclass(frozen=True)
class Gpu:
    """One GPU now. Memory in MiB, None where it is not told; `problem` says why it cannot be used,
    "" where it can."""

    index: int  # NVML's number: by PCI bus
    uuid: str
    name: str
    total_mb: int | None
    used_mb: int | None
    mig: bool
    processes: tuple[Process, ...]
    problem: str = ""

    @property
    def free_mb(self) -> int | None:
        known = self.total_mb is not None and self.used_mb is not None
        return self.total_mb - self.used_mb if known else None  # type: ignore[operator]


class Nvml:
    """NVML for as long as a `with nvml()` block lasts; usable from several threads."""

    def __init__(self) -> None:
        self._handles: dict[str, Any] = {}
        self._silent: set[tuple[str, str]] = set()  # what a GPU does not tell is asked once

    def gpus(self) -> list[Gpu]:
        """Every GPU in the order of NVML's numbers; one in trouble is in the list with its problem.

        Raises NoGpus where not even their number is known.
        """
        try:
            count = int(pynvml.nvmlDeviceGetCount())
        except pynvml.NVMLError as problem:
            raise NoGpus(f"NVML does not tell the number of GPUs: {problem}", none=False) from None
        return [self._gpu(index) for index in range(count)]

    def _gpu(self, index: int) -> Gpu:
        uuid = name = ""
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = str(pynvml.nvmlDeviceGetUUID(handle))
            self._handles[uuid] = handle
            name = str(pynvml.nvmlDeviceGetName(handle))
            total, used = _memory(handle)
            return Gpu(index, uuid, name, total, used, _is_mig(handle), _processes(handle))
        except pynvml.NVMLError as problem:
            return Gpu(index, uuid, name, None, None, False, (), _trouble(problem))

    def sample(self, uuid: str) -> Sample:
        """One GPU's figures now; None where it does not tell one.

        Raises GpuLost where it cannot be asked any more.
        """
        handle = self._handle(uuid)

        def ask(name: str, question: Callable[[], Any]) -> int | None:
            if (uuid, name) in self._silent:
                return None
            try:
                answer: int = round(question())
                return answer
            except pynvml.NVMLError as problem:
                if _is_lost(problem):
                    raise GpuLost(_trouble(problem)) from None
                self._silent.add((uuid, name))
                return None

        load: list[Any] = []

        def util() -> int:
            load.append(pynvml.nvmlDeviceGetUtilizationRates(handle))
            return int(load[0].gpu)

        return Sample(
            util=ask("util", util),
            memory_mb=ask("memory", lambda: _memory(handle)[1] or 0),
            power_w=ask("power", lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            sm_mhz=ask("sm", lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            memory_mhz=ask(
                "mem", lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)
            ),
            temp_c=ask(
                "temp",
                lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
            ),
            reasons=ask("reasons", lambda: _reasons(handle)),
            ecc=ask(
                "ecc",
                lambda: pynvml.nvmlDeviceGetTotalEccErrors(
                    handle,
                    pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                    pynvml.NVML_VOLATILE_ECC,
                ),
            ),
        )

    def _handle(self, uuid: str) -> Any:
        if uuid not in self._handles:
            try:
                self._handles[uuid] = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            except pynvml.NVMLError as problem:
                raise GpuLost(_trouble(problem)) from None
        return self._handles[uuid]

    def facts(self, chosen: Sequence[Gpu]) -> dict[str, str]:
        """What a record should know of these GPUs: driver, CUDA, names and how they are linked."""
        found = {}
        with contextlib.suppress(pynvml.NVMLError):
            found["nvidia driver"] = str(pynvml.nvmlSystemGetDriverVersion())
        with contextlib.suppress(pynvml.NVMLError):
            cuda = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())
            found["cuda of the driver"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
        found["gpus"] = names(chosen)
        if len(chosen) > 1 and (link := self._farthest(chosen)):
            found["gpu topology"] = link
        return found

    def _farthest(self, chosen: Sequence[Gpu]) -> str:
        """The longest way between the first GPU and another: what tensor parallelism pays for."""
        try:
            levels = [
                int(
                    pynvml.nvmlDeviceGetTopologyCommonAncestor(
                        self._handle(chosen[0].uuid), self._handle(other.uuid)
                    )
                )
                for other in chosen[1:]
            ]
        except (pynvml.NVMLError, GpuLost):
            return ""
        return _LINKS.get(max(levels), "unknown")


class GpuLost(Exception):
    """A GPU that answered before does not any more; the text says how."""


@contextlib.contextmanager
def nvml() -> Iterator[Nvml]:
    """NVML, begun and ended. Raises NoGpus where it cannot be had."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as problem:
        raise NoGpus(f"NVML: {problem}", none=problem.value in _NONE) from None
    try:
        yield Nvml()
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def names(chosen: Sequence[Gpu]) -> str:
    """`8 × NVIDIA RTX PRO 6000`, models in the order of their first GPU."""
    counted: dict[str, int] = {}
    for gpu in chosen:
        counted[gpu.name] = counted.get(gpu.name, 0) + 1
    return ", ".join(f"{count} × {name}" for name, count in counted.items())


def pick(gpus: Sequence[Gpu], visible: str | None) -> list[Gpu]:
    """Those that CUDA_VISIBLE_DEVICES lets be used: numbers by PCI bus, or UUIDs or their
    beginnings. None, no such variable, is everything; an empty one is nothing, as for CUDA.

    Raises ValueError for an entry that names no GPU here.
    """
    if visible is None:
        return list(gpus)
    if not visible.strip():
        return []
    chosen: list[Gpu] = []
    for entry in (part.strip() for part in visible.split(",")):
        if entry.startswith("MIG-"):
            raise ValueError(f"{entry} is a part of a GPU (MIG); only whole GPUs are leased")
        found = [
            gpu
            for gpu in gpus
            if entry == str(gpu.index) or (entry.startswith("GPU-") and gpu.uuid.startswith(entry))
        ]
        if len(found) != 1:
            there = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in gpus) or "none"
            what = "more than one GPU" if found else "no GPU"
            raise ValueError(
                f"CUDA_VISIBLE_DEVICES={visible}: {entry or 'an empty entry'} names {what} of "
                f"this machine; there are {there}"
            )
        if found[0] not in chosen:
            chosen.append(found[0])
    return chosen


def _memory(handle: Any) -> tuple[int | None, int | None]:
    """Total and used in MiB. The driver's own reserve counts as neither used nor free where it is
    told apart; GPUs that share the machine's memory tell nothing."""
    try:
        found = pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
        return int(found.total - found.reserved) // MB, int(found.used) // MB
    except pynvml.NVMLError as problem:
        if _is_lost(problem):
            raise
    try:
        found = pynvml.nvmlDeviceGetMemoryInfo(handle)
    except pynvml.NVMLError as problem:
        if _is_lost(problem):
            raise
        return None, None
    return int(found.total) // MB, int(found.used) // MB


def _is_mig(handle: Any) -> bool:
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(handle)[0])
    except pynvml.NVMLError as problem:
        if _is_lost(problem):
            raise
        return False


def _processes(handle: Any) -> tuple[Process, ...]:
    """Those that compute; a screen's own are no rivals and show as used memory alone."""
    try:
        found = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLError as problem:
        if _is_lost(problem):
            raise
        return ()
    return tuple(
        Process(
            pid=int(each.pid),
            name=_name(int(each.pid)),
            user=_user(int(each.pid)),
            memory_mb=None if each.usedGpuMemory is None else int(each.usedGpuMemory) // MB,
        )
        for each in found
    )


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        text = (processes.PROC / str(pid) / "comm").read_text(errors="replace").strip()
        return "".join(c for c in text if c.isprintable()) or "unknown"
    return "unknown"


def _user(pid: int) -> str:
    try:
        owner = Path(processes.PROC / str(pid)).stat().st_uid
    except OSError:
        return "unknown"
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)


def _reasons(handle: Any) -> int:
    """Bits of why the clocks are not higher; the call was renamed in driver 535."""
    try:
        return int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError as problem:
        if problem.value != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
    return int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _is_lost(problem: pynvml.NVMLError) -> bool:
    return problem.value in (
        pynvml.NVML_ERROR_GPU_IS_LOST,
        pynvml.NVML_ERROR_RESET_REQUIRED,
        pynvml.NVML_ERROR_UNKNOWN,
        pynvml.NVML_ERROR_NOT_FOUND,
        pynvml.NVML_ERROR_UNINITIALIZED,
    )


def _trouble(problem: pynvml.NVMLError) -> str:
    if problem.value == pynvml.NVML_ERROR_GPU_IS_LOST:
        return "it has fallen off the bus (NVML: GPU is lost); the machine needs a restart"
    return f"NVML: {problem}"


def as_json(gpu: Gpu) -> Mapping[str, Any]:
    """One GPU for the record."""
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "total_mb": gpu.total_mb,
        "used_mb": gpu.used_mb,
        "mig": gpu.mig,
        "problem": gpu.problem,
        "processes": [str(process) for process in gpu.processes],
    }
