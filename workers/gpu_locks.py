"""The lock of each GPU of a host, a file by its UUID for every worker, whatever its data folder and
user; it looks at no GPU.

The kernel lets a lock go when the last process that has the file open is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from workers.gpus import Gpu

FOLDER = "SPECDEBUG_GPU_LOCKS"
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


def folder() -> Path:
    """Where the host's locks lie: $SPECDEBUG_GPU_LOCKS, else one folder for all users under the
    system's temporary one."""
    given = os.environ.get(FOLDER)
    return Path(given) if given else Path(tempfile.gettempdir()) / "specdebug-gpus"


def _open(path: Path) -> int:
    """A lock file that every user of the host may open, made where it is not there."""
    while True:
        # Without O_CREAT first: in a folder with the sticky bit kernels refuse it for files of
        # other users (fs.protected_regular).
        with contextlib.suppress(FileNotFoundError):
            return _open_there(path)
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(PermissionError):  # somebody else made it just now
                path.parent.chmod(0o1777)
        with contextlib.suppress(FileExistsError):
            handle = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
            os.fchmod(handle, 0o666)  # whatever the umask says
            return handle


def _open_there(path: Path) -> int:
    """Raises FileNotFoundError where there is none, OSError where it is something else."""
    handle = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path} is no file")
    return handle


def _flock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def gate() -> Iterator[None]:
    """One chooser at a time, for milliseconds: otherwise two that want all GPUs could each take
    some and step back for ever. Who finds it shut for long goes on without it, for each GPU's own
    lock is what counts."""
    handle = _open(folder() / "choosing.lock")
    try:
        until = time.monotonic() + 2.0
        while not _flock(handle) and time.monotonic() < until:
            time.sleep(0.01)
        yield
    finally:
        os.close(handle)


def _file(gpu: Gpu) -> Path:
    return folder() / ("".join(c for c in gpu.uuid if c.isalnum() or c == "-") + ".lock")


def take(gpu: Gpu) -> int | None:
    """The GPU's lock, None where somebody else has it."""
    handle = _open(_file(gpu))
    if _flock(handle):
        return handle
    os.close(handle)
    return None


def note(handle: int, run: str) -> None:
    """Who we are, for those that find the lock taken. Only words: the lock is what counts."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = str(os.getuid())
    words = {
        "run": run,
        "pid": os.getpid(),
        "user": user,
        "host": socket.gethostname(),
        "since": datetime.now(tz=UTC).isoformat(timespec="seconds"),
    }
    with contextlib.suppress(OSError):  # a full disk costs the words
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(words).encode(), 0)


def holder(gpu: Gpu) -> str:
    """Who has leased a GPU, in words; "" where nobody has. Raises OSError."""
    if not gpu.uuid or not _file(gpu).exists():
        return ""
    with gate():  # a look takes the lock for a moment, which must not make a chooser step back
        return holder_within(gpu)


def holder_within(gpu: Gpu) -> str:
    """`holder` for who is within the gate already."""
    try:
        handle = _open_there(_file(gpu))
    except FileNotFoundError:
        return ""
    try:
        # Shared, so that two who look do not take each other for the holder.
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return ""
        return _words(os.pread(handle, 4096, 0))
    finally:
        os.close(handle)


def _words(note: bytes) -> str:
    """The note in a lock file as the end of a sentence; anybody may have written it."""
    try:
        said = json.loads(note)
        run, user, pid = str(said["run"])[:80], str(said["user"])[:40], int(said["pid"])
        since = datetime.fromisoformat(said["since"]).strftime("%H:%M:%S UTC")
    except (ValueError, KeyError, TypeError):
        return "another run"
    return "".join(
        c for c in f"run {run} of user {user}, pid {pid}, since {since}" if c.isprintable()
    )
