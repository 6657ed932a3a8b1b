"""What dead workers left on this machine: engines to be ended, outcomes to be saved; it judges no
run's state."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workers import lease, processes
from workers.plan import RunOutcome
from workers.server import RECORD, Record, marked, write_whole

log = logging.getLogger(__name__)

HELD = "held"  # locked by whoever measures in that folder
OUTCOME = "outcome.json"
SAVED = "outcome.saved.json"
REFUSED = "outcome.refused.json"
END_SECONDS = 5.0


@dataclass(frozen=True)
class Swept:
    """One server that had lost its worker. `survivors`: pids that would not go."""

    run: str
    killed: tuple[int, ...]
    survivors: tuple[int, ...]


@dataclass(frozen=True)
class Unsaved:
    """An outcome that a worker brought home and did not get into the record."""

    run_id: int
    token: str
    outcome: RunOutcome
    path: Path


def fresh_folder(folder: Path) -> None:
    """An empty private folder; what an earlier attempt left in it moves aside, log and all.

    Raises OSError, a BlockingIOError where that attempt's worker still is at work.
    """
    if folder.exists():
        with lease.hold(folder / HELD, patience=END_SECONDS, give_up=lambda: False) as free:
            if not free:
                raise BlockingIOError(f"another worker still measures in {folder}")
            number = 1
            while (aside := folder.with_name(f"{folder.name}.{number}")).exists():
                number += 1
            folder.rename(aside)
    folder.mkdir(parents=True, mode=0o700)


def sweep(runs: Path) -> list[Swept]:
    """End the servers under `runs` whose worker is gone; those of other machines are let be."""
    return [
        swept
        for path in _folders(runs, RECORD)
        if not lease.is_held(path.parent / HELD) and (swept := _end(path)) is not None
    ]


def _folders(runs: Path, name: str) -> Iterator[Path]:
    """Files of that name in the runs' folders."""
    return iter(sorted(runs.glob(f"*/{name}")))


def _end(path: Path) -> Swept | None:
    """End one server; None where there was nothing left of it."""
    try:
        record = Record.read(path.parent)
    except (OSError, ValueError) as problem:
        log.warning("%s cannot be read, nothing is ended by it: %s", path, problem)
        return None
    if record.host != socket.gethostname():
        return None
    killed: set[int] = set()
    left = _left_of(record)
    until = time.monotonic() + END_SECONDS
    while left and time.monotonic() < until:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= left
        time.sleep(0.05)
        left = _left_of(record)
    if not left:
        with contextlib.suppress(OSError):
            path.replace(path.with_name("server.ended.json"))
    return Swept(record.run, tuple(sorted(killed)), tuple(sorted(left))) if killed else None


def _left_of(record: Record) -> set[int]:
    """What still lives of a server, its leash included. Another boot's pids are other processes."""
    if record.boot_id != processes.boot_id():
        return set()
    leash = processes.one(record.leash)
    if leash is not None and leash.started != record.leash_started:
        # The number was given out again; what carries our mark is ours all the same.
        return marked(-1, record.mark)
    return marked(record.leash, record.mark)


# ---- outcomes ------------------------------------------------------------------------------------


def keep(folder: Path, *, run_id: int, token: str, outcome: RunOutcome) -> Path:
    """Write an outcome beside its log before the record gets it. Raises OSError."""
    path = folder / OUTCOME
    text = json.dumps({"run_id": run_id, "token": token, "outcome": outcome.as_json()})
    write_whole(path, text)
    return path


def unsaved(runs: Path) -> Iterator[Unsaved]:
    """Outcomes under `runs` that nobody works on any more and that are not in the record yet."""
    for path in _folders(runs, OUTCOME):
        if lease.is_held(path.parent / HELD):
            continue
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            outcome = RunOutcome.from_json(data["outcome"])
            yield Unsaved(int(data["run_id"]), str(data["token"]), outcome, path)
        except (OSError, ValueError, KeyError, TypeError) as problem:
            log.warning("%s is no outcome, it is set aside: %s", path, problem)
            settle(path, REFUSED)


def settle(path: Path, name: str) -> None:
    """Mark an outcome as SAVED or REFUSED, so that nobody looks at it again."""
    with contextlib.suppress(OSError):
        path.replace(path.with_name(name))
