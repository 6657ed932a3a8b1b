"""Files by content: each kept once under its SHA-256 in the data folder, whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings

from experiments.models import Blob
from experiments.refusal import Refused

PIECE = 1 << 20
DEFAULT_LIMIT = 2 << 30
# What a killed process left half-written is removed when it is older than this.
_ABANDONED_SECONDS = 24 * 3600


def path_of(sha256: str) -> Path:
    """Where the content with this hash lies; two letters of fan-out keep folders small."""
    if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
        raise ValueError(f"{sha256[:80]!r} is no SHA-256")
    return Path(settings.BLOB_DIR) / sha256[:2] / sha256


def pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream in bounded pieces."""
    while piece := stream.read(PIECE):
        yield piece


def put(stream: IO[bytes], *, limit: int = DEFAULT_LIMIT) -> Blob:
    """Keep what `stream` holds and return its row; the same content is stored once.

    The bytes go to a temporary file first, are synced, and get their name at the very end, so that
    a full disk or a crash leaves no half-written content. Raises Refused above `limit` bytes and
    where the disk cannot take it.
    """
    incoming = Path(settings.BLOB_DIR) / "incoming"
    try:
        incoming.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(incoming)
        handle, name = tempfile.mkstemp(dir=incoming)
    except OSError as error:
        raise _cannot(error) from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            digest, size = _copy(stream, file, limit)
            file.flush()
            os.fsync(file.fileno())
        target = path_of(digest)
        with removal_waits():
            if not target.is_file() or target.stat().st_size != size:
                target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                temporary.replace(target)
                _sync_folder(target.parent)
            else:
                os.utime(target)  # wanted again: `experiments.dropped` leaves it alone
    except OSError as error:
        raise _cannot(error) from error
    finally:
        temporary.unlink(missing_ok=True)
    return Blob.objects.get_or_create(sha256=digest, defaults={"size": size})[0]


@contextmanager
def removal_waits(*, exclusive: bool = False) -> Iterator[None]:
    """Hold the folder of contents: shared by all who add, alone for the one who removes."""
    handle = os.open(settings.BLOB_DIR, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def _copy(stream: IO[bytes], file: IO[bytes], limit: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for piece in pieces(stream):
        size += len(piece)
        if size > limit:
            raise Refused(f"the file is larger than {limit >> 20} MiB; compress it or send a part")
        digest.update(piece)
        file.write(piece)
    return digest.hexdigest(), size


def _cannot(error: OSError) -> Refused:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refused("no space left in the data folder; free some and send the file again")
    return Refused(f"the data folder cannot take the file: {error.strerror or error}")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(incoming: Path) -> None:
    oldest = time.time() - _ABANDONED_SECONDS
    for path in incoming.iterdir():
        try:
            if path.stat().st_mtime < oldest:
                path.unlink()
        except FileNotFoundError:
            continue  # another process swept it
