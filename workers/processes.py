"""The machine's process table as far as ending what we started needs it; it ends nothing itself."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One live or dead-but-unreaped process. `started` is opaque: equal for the same process only
    (clock ticks since boot on Linux, a date elsewhere)."""

    pid: int
    parent: int
    group: int
    session: int
    started: str
    zombie: bool


def table() -> dict[int, Process]:
    """Every process we may see, by pid; from /proc, or from `ps` where there is none."""
    if not (PROC / "self" / "stat").exists():
        return _table_of_ps()
    found = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            process = one(int(entry.name))
            if process is not None:
                found[process.pid] = process
    return found


def one(pid: int) -> Process | None:
    """One process, None when there is no such process (any more)."""
    if not (PROC / "self" / "stat").exists():
        return _table_of_ps().get(pid)
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The command stands in brackets and may itself hold spaces and brackets.
    state, *fields = text[text.rindex(")") + 2 :].split()
    return Process(
        pid=pid,
        parent=int(fields[0]),
        group=int(fields[1]),
        session=int(fields[2]),
        started=fields[18],
        zombie=state in "ZX",
    )


def _table_of_ps() -> dict[int, Process]:
    lister = subprocess.Popen(
        ["ps", "-axo", "pid=,ppid=,pgid=,stat=,lstart="], stdout=subprocess.PIPE, text=True
    )
    output, _ = lister.communicate()
    found = {}
    for line in output.splitlines():
        pid, parent, group, state, started = line.split(None, 4)
        if int(pid) != lister.pid:
            found[int(pid)] = Process(
                pid=int(pid),
                parent=int(parent),
                group=int(group),
                session=int(group),  # ps there does not print it; groups are what we make anyway
                started=started.strip(),
                zombie=state.startswith("Z"),
            )
    return found


def descendants(pid: int, of: Mapping[int, Process]) -> set[int]:
    """Children of `pid`, their children and so on, without the dead ones and without `pid`."""
    children: dict[int, list[int]] = {}
    for process in of.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return {child for child in found if not of[child].zombie}


def boot_id() -> str:
    """Changes with every start of the machine; empty where the system does not say."""
    try:
        return (PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return ""


def environment(pid: int) -> bytes | None:
    """The environment a process was started with, None where it cannot be read.

    A process that sets its own title may have overwritten it.
    """
    try:
        return (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None


def listens(port: int, pids: set[int]) -> bool | None:
    """Whether one of `pids` holds the listening TCP socket on `port`; None where nobody can say."""
    sockets = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = (PROC / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            # 0A is LISTEN; the local address is HEXIP:HEXPORT, the tenth field the socket's inode.
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{fields[9]}]")
    if not sockets:
        return None if not (PROC / "net" / "tcp").exists() else False
    for pid in pids:
        try:
            for handle in (PROC / str(pid) / "fd").iterdir():
                if str(handle.readlink()) in sockets:
                    return True
        except OSError:
            continue
    return False
