"""Contents that nothing needs any more: marked first, their files removed at least a day later.

A file goes only when no row names it and nobody has put the same content since it was marked, so
that a crash anywhere, or an upload at the same moment, costs a file that could have gone and never
one that is needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from experiments import store
from experiments.models import Blob

WAIT_SECONDS = 24 * 3600


def _marks() -> Path:
    return Path(settings.BLOB_DIR) / "dropped"


def drop(hashes: Iterable[str]) -> int:
    """Take the rows of these contents out of the record; how many went. Those in use stay.

    The mark comes before the row goes: after a crash in between the row is still there, and the
    mark is found to be void.
    """
    gone = 0
    for sha256 in hashes:
        store.path_of(sha256)  # a hash and nothing else
        _marks().mkdir(parents=True, exist_ok=True, mode=0o700)
        (_marks() / sha256).touch()
        try:
            with transaction.atomic():
                gone += Blob.objects.filter(pk=sha256).delete()[0]
        except (ProtectedError, IntegrityError):
            (_marks() / sha256).unlink(missing_ok=True)
    return gone


def sweep() -> int:
    """Remove the files whose marks have waited long enough; how many went."""
    if not _marks().is_dir():
        return 0
    oldest, gone = time.time() - WAIT_SECONDS, 0
    for mark in sorted(_marks().iterdir()):
        try:
            if mark.stat().st_mtime > oldest:
                continue
            with store.removal_waits(exclusive=True):
                gone += _remove(mark)
                mark.unlink(missing_ok=True)
        except FileNotFoundError:
            continue  # another process swept it
    return gone


def _remove(mark: Path) -> bool:
    path = store.path_of(mark.name)
    wanted_again = path.is_file() and path.stat().st_mtime >= mark.stat().st_mtime
    if wanted_again or not path.is_file() or Blob.objects.filter(pk=mark.name).exists():
        return False
    path.unlink()
    return True
