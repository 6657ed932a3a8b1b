"""Content by hash: whole or not at all, once however often it comes."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from pathlib import Path

import pytest

from experiments import store
from experiments.models import Blob
from experiments.refusal import Refused

pytestmark = pytest.mark.django_db


def files_in(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file())


def test_content_is_kept_under_its_hash(data_dir: Path) -> None:
    blob = store.put(io.BytesIO(b"one line\n"))
    assert blob.sha256 == hashlib.sha256(b"one line\n").hexdigest()
    assert blob.size == 9
    assert store.path_of(blob.sha256).read_bytes() == b"one line\n"


def test_the_same_content_is_stored_once(data_dir: Path) -> None:
    first, second = store.put(io.BytesIO(b"x" * 3000)), store.put(io.BytesIO(b"x" * 3000))
    assert first.pk == second.pk
    assert Blob.objects.count() == 1
    assert len(files_in(data_dir / "blobs")) == 1


def test_content_whose_file_was_lost_is_written_again(data_dir: Path) -> None:
    blob = store.put(io.BytesIO(b"kept"))
    store.path_of(blob.sha256).unlink()
    assert store.path_of(store.put(io.BytesIO(b"kept")).sha256).read_bytes() == b"kept"


def test_content_whose_file_was_cut_is_written_again(data_dir: Path) -> None:
    blob = store.put(io.BytesIO(b"kept whole"))
    store.path_of(blob.sha256).write_bytes(b"kept")
    store.put(io.BytesIO(b"kept whole"))
    assert store.path_of(blob.sha256).read_bytes() == b"kept whole"


def test_a_file_above_the_limit_is_refused_and_leaves_nothing(data_dir: Path) -> None:
    with pytest.raises(Refused, match="larger than 1 MiB"):
        store.put(io.BytesIO(b"x" * ((1 << 20) + 1)), limit=1 << 20)
    assert files_in(data_dir) == []
    assert not Blob.objects.exists()


def test_a_file_at_the_limit_is_taken(data_dir: Path) -> None:
    assert store.put(io.BytesIO(b"x" * (1 << 20)), limit=1 << 20).size == 1 << 20


def test_a_full_disk_leaves_no_half_written_content(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Refused, match="no space left"):
        store.put(io.BytesIO(b"x" * 100))
    assert files_in(data_dir) == []
    assert not Blob.objects.exists()


def test_a_stream_that_breaks_leaves_nothing(data_dir: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise ConnectionResetError("gone")

    with pytest.raises(Refused, match="gone"):
        store.put(Broken())
    assert files_in(data_dir) == []


def test_leftovers_of_a_killed_process_are_swept_after_a_day(data_dir: Path) -> None:
    incoming = data_dir / "blobs" / "incoming"
    incoming.mkdir(parents=True)
    old, fresh = incoming / "old", incoming / "fresh"
    for path in (old, fresh):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    store.put(io.BytesIO(b"new"))
    assert not old.exists()
    assert fresh.exists()


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "a" * 63])
def test_only_a_hash_names_content(name: str) -> None:
    with pytest.raises(ValueError, match="no SHA-256"):
        store.path_of(name)
