"""GPUs for one run at a time on one host: all that it needs or none; it starts nothing and picks no
run.

The lock of a GPU (gpu_locks.py) is held by the worker and by the leash that holds the engine, so
that it is free when both are gone. Even then a GPU is taken only when nobody computes on it and its
memory is free: an engine that outlived both keeps others away.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from specdebug.sglang import ranks
from workers import gpu_locks, gpus
from workers.gpus import Gpu, NoGpus, Nvml
from workers.plan import RunEnded, ShouldStop

WAIT = "SPECDEBUG_GPU_WAIT"
LOOK_SECONDS = 0.5
# An engine takes a share of what is free. Below this part of the whole, it gets another cache size
# and other batches than on an empty GPU, and the runs cannot be compared. A screen's few hundred
# megabytes stay below the rest.
FREE_PART = 0.95
# What a server leaves is gone within this many seconds after its end, or it is no leftover.
RELEASE_SECONDS = 60.0
# A process that was just killed is listed a moment longer.
PROCESS_SECONDS = 5.0
DEFAULT_WAIT = 600.0

Kind = Literal["leased", "process", "memory", "unusable"]


@dataclass(frozen=True)
class Blocker:
    """Why a GPU cannot be had now, as the end of a sentence that begins with the GPU."""

    gpu: Gpu
    kind: Kind
    why: str

    def __str__(self) -> str:
        return f"GPU {self.gpu.index} {self.why}"


@dataclass(frozen=True)
class Need:
    """How many GPUs a command takes on one host; `visible` is the CUDA_VISIBLE_DEVICES it is
    restricted to, None for all."""

    count: int
    visible: str | None = None


class Lease:
    """GPUs that are ours until `release`. `handles` are the locks' descriptors: who inherits one
    holds the GPU too."""

    def __init__(
        self, chosen: Sequence[Gpu], handles: Sequence[int], facts: dict[str, str]
    ) -> None:
        self.gpus = tuple(chosen)
        self.handles = tuple(handles)
        self.facts = facts

    @property
    def env(self) -> dict[str, str]:
        """What makes the engine see these GPUs and no others, whatever their numbers."""
        return {
            "CUDA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in self.gpus),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }

    def __str__(self) -> str:
        return f"GPU {', '.join(str(gpu.index) for gpu in self.gpus)} ({gpus.names(self.gpus)})"

    def wait_released(
        self, *, on_wait: Callable[[str], None], seconds: float = RELEASE_SECONDS
    ) -> str:
        """Wait until the memory of a server that has ended is free again.

        At most `seconds`; "" when it is, else one sentence on what is still held.
        """
        until = time.monotonic() + seconds
        told = ""
        while True:
            try:
                with gpus.nvml() as asked:
                    now = {gpu.uuid: gpu for gpu in asked.gpus() if gpu.uuid}
            except NoGpus as problem:
                return f"Whether the GPUs were released is not known: {problem.reason}."
            held = [why for mine in self.gpus if (why := _held(mine, now.get(mine.uuid)))]
            if not held:
                return ""
            if time.monotonic() > until:
                return f"{seconds:g} s after the server's end {'; '.join(held)}."
            if (text := f"waiting for {held[0]}") != told:
                on_wait(told := text)
            time.sleep(LOOK_SECONDS)

    def release(self) -> None:
        """Let our hold go; safe to call twice. Another process may hold on."""
        handles, self.handles = self.handles, ()
        for handle in handles:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)  # the note in it; the lock itself goes with the descriptor
            os.close(handle)


def _held(before: Gpu, now: Gpu | None) -> str:
    """What is still held on a GPU beyond what it was leased with."""
    if now is None or now.problem or before.used_mb is None or now.used_mb is None:
        return ""
    if now.processes:
        return f"GPU {now.index}: {now.processes[0]}"
    # A driver keeps a few megabytes more once it was used.
    spare = (1 - FREE_PART) * (now.total_mb or 0)
    if now.used_mb > before.used_mb + spare:
        return f"GPU {now.index}: {now.used_mb:,} of {now.total_mb or 0:,} MB in use"
    return ""


# ---- what a run needs ----------------------------------------------------------------------------


def needed(server_args: Sequence[str], *, env: Mapping[str, str] | None = None) -> Need:
    """GPUs that an SGLang command takes on this host.

    Raises RunEnded for a command that chooses its GPUs itself.
    """
    command = ranks.command_of(server_args)
    first = command.value("base_gpu_id")
    # A first GPU would count from those that the lease chose, and could lead out of them.
    if isinstance(first, int) and first > 0:
        raise RunEnded(
            "failed",
            "--base-gpu-id: the worker chooses free GPUs itself; leave it out, or name the GPUs in "
            "CUDA_VISIBLE_DEVICES of the plan's environment.",
        )
    return Need(ranks.gpus_needed(command), (env or {}).get("CUDA_VISIBLE_DEVICES"))


# ---- taking them ---------------------------------------------------------------------------------


def take(
    need: Need,
    *,
    run: str,
    on_wait: Callable[[str], None],
    should_stop: ShouldStop,
    patience: float | None = None,
) -> Lease:
    """Lease `need.count` GPUs, waiting while others may give them back.

    `patience`: seconds for GPUs that another run has, else $SPECDEBUG_GPU_WAIT. Raises RunEnded
    with who holds what, and NoGpus where this machine has no NVML.
    """
    wait = _wait() if patience is None else patience
    begin = time.monotonic()
    told = ""
    with gpus.nvml() as asked:
        while True:
            if reason := should_stop():
                raise RunEnded("cancelled", reason)
            chosen = _candidates(asked, need)
            found = _try(need, chosen, run)
            if isinstance(found, Lease):
                # Looked at again with the locks in hand: a run may have ended since the first look
                # whose memory is not free yet.
                now = {gpu.uuid: gpu for gpu in asked.gpus()}
                again = [why for gpu in found.gpus if (why := _unfit(now.get(gpu.uuid, gpu)))]
                if not again:
                    found.facts = asked.facts(found.gpus)
                    return found
                found.release()
                found = again
            waited = time.monotonic() - begin
            allowed = {"leased": wait, "process": PROCESS_SECONDS, "memory": RELEASE_SECONDS}
            hopeless = [b for b in found if waited >= allowed.get(b.kind, 0.0)]
            if len(chosen) - len(hopeless) < need.count:
                raise RunEnded("failed", _refusal(need, chosen, found, waited))
            text = f"waiting for {need.count} GPUs: {found[0]}"
            if text != told:
                on_wait(told := text)
            # Two that wait must not wake in step for ever.
            time.sleep(LOOK_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311 - no secret


def cannot(problem: NoGpus) -> RunEnded:
    """A machine that has GPUs and does not tell of them: nothing can be leased there."""
    return RunEnded(
        "failed",
        f"The GPUs of this machine cannot be asked, so none is leased: {problem.reason}. See that "
        "nvidia-smi works, and start the run again.",
    )


def _wait() -> float:
    given = os.environ.get(WAIT, "")
    try:
        return max(0.0, float(given)) if given else DEFAULT_WAIT
    except ValueError:
        raise RunEnded("failed", f"{WAIT}={given!r}: expected a number of seconds.") from None


def _candidates(asked: Nvml, need: Need) -> list[Gpu]:
    """GPUs that the worker's own environment and the plan let be used."""
    try:
        allowed = gpus.pick(asked.gpus(), os.environ.get("CUDA_VISIBLE_DEVICES"))
        chosen = gpus.pick(allowed, need.visible)
    except ValueError as problem:
        raise RunEnded("failed", f"The GPUs cannot be leased: {problem}.") from None
    if len(chosen) < need.count:
        raise RunEnded(
            "failed",
            f"The plan needs {need.count} GPU{'s'[: need.count > 1]} and this worker may use "
            f"{len(chosen)}.",
        )
    return chosen


def _refusal(need: Need, chosen: Sequence[Gpu], found: Sequence[Blocker], waited: float) -> str:
    after = f" after {waited:.0f} s" if waited >= 1 else ""
    said = "; ".join(str(blocker) for blocker in found)
    return (
        f"The plan needs {need.count} GPU{'s'[: need.count > 1]}, and of the {len(chosen)} that "
        f"this worker may use {len(chosen) - len(found)} can be had{after}: {said}."
    )


def _try(need: Need, chosen: Sequence[Gpu], run: str) -> Lease | list[Blocker]:
    """A lease, or why each GPU that cannot be had cannot. Never holds a part while it waits."""
    handles: dict[str, int] = {}
    blockers: list[Blocker] = []
    taken: list[Gpu] = []
    try:
        with gpu_locks.gate():
            for gpu in chosen:
                if len(taken) == need.count:
                    break
                if blocker := _unfit(gpu):
                    # Who has the lock is the better answer where both are true.
                    blockers.append(_owner(gpu) or blocker)
                elif (handle := gpu_locks.take(gpu)) is None:
                    blockers.append(
                        _owner(gpu) or Blocker(gpu, "leased", "is leased to another run")
                    )
                else:
                    handles[gpu.uuid] = handle
                    taken.append(gpu)
            if len(taken) == need.count:
                for handle in handles.values():
                    gpu_locks.note(handle, run)
                ours = list(handles.values())
                handles = {}
                return Lease(taken, ours, {})
    except OSError as problem:
        raise RunEnded(
            "failed",
            f"The folder of the GPU locks cannot be used: {problem}. Set {gpu_locks.FOLDER} to a "
            "folder that every worker of this host may write.",
        ) from None
    finally:
        for handle in handles.values():
            os.close(handle)
    return blockers


def _unfit(gpu: Gpu) -> Blocker | None:
    """Why a GPU cannot be used, its lock apart."""
    if gpu.problem:
        return Blocker(gpu, "unusable", f"cannot be used: {gpu.problem}")
    if gpu.mig:
        return Blocker(
            gpu,
            "unusable",
            "is split by MIG, and only whole GPUs are leased: switch MIG off or leave it out of "
            "CUDA_VISIBLE_DEVICES",
        )
    if gpu.processes:
        return Blocker(
            gpu, "process", "is in use: " + ", ".join(str(process) for process in gpu.processes)
        )
    if gpu.total_mb and gpu.free_mb is not None and gpu.free_mb < FREE_PART * gpu.total_mb:
        return Blocker(
            gpu,
            "memory",
            f"has {gpu.used_mb:,} of {gpu.total_mb:,} MB in use, by no process that the driver "
            f"names, and a run needs {FREE_PART:.0%} free",
        )
    return None


def _owner(gpu: Gpu) -> Blocker | None:
    words = gpu_locks.holder_within(gpu) if gpu.uuid else ""
    return Blocker(gpu, "leased", f"is leased to {words}") if words else None
