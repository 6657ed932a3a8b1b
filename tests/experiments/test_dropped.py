"""Contents that nothing needs: what goes, what stays, and what comes again at the same moment."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest

from experiments import dropped, store
from experiments.models import Blob

pytestmark = pytest.mark.django_db


def kept(text: bytes) -> tuple[str, Path]:
    blob = store.put(io.BytesIO(text))
    path = store.path_of(blob.sha256)
    _age(path)
    return blob.sha256, path


def _age(path: Path) -> None:
    """As if it had been written two days ago."""
    then = time.time() - 2 * dropped.WAIT_SECONDS
    os.utime(path, (then, then))


def _age_marks() -> None:
    for mark in dropped._marks().iterdir():
        then = time.time() - 1.5 * dropped.WAIT_SECONDS
        os.utime(mark, (then, then))


def test_a_dropped_content_loses_its_row_at_once_and_its_file_a_day_later(data_dir: Path) -> None:
    sha256, path = kept(b"an old draft")
    assert dropped.drop([sha256]) == 1
    assert not Blob.objects.exists()
    assert dropped.sweep() == 0
    assert path.is_file()
    _age_marks()
    assert dropped.sweep() == 1
    assert not path.exists()
    assert list(dropped._marks().iterdir()) == []
    assert dropped.sweep() == 0


def test_what_is_put_again_meanwhile_stays(data_dir: Path) -> None:
    sha256, path = kept(b"an old draft")
    dropped.drop([sha256])
    _age_marks()
    store.put(io.BytesIO(b"an old draft"))
    Blob.objects.all().delete()  # as where the row of the upload is not committed yet
    assert dropped.sweep() == 0
    assert path.read_bytes() == b"an old draft"


def test_a_crash_between_mark_and_row_loses_nothing(data_dir: Path) -> None:
    sha256, path = kept(b"an old draft")
    dropped._marks().mkdir()
    (dropped._marks() / sha256).touch()
    _age_marks()
    assert dropped.sweep() == 0
    assert path.is_file()
    assert list(dropped._marks().iterdir()) == []


def test_a_name_that_is_no_hash_is_refused(data_dir: Path) -> None:
    with pytest.raises(ValueError, match="no SHA-256"):
        dropped.drop(["../secrets"])
