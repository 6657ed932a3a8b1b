"""The lock on the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.workers.conftest import DATA
from workers import lease


def test_of_two_one_holds_it_and_the_other_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run" / "measure.lock"
    assert not lease.is_held(path)
    with lease.hold(path, patience=0, give_up=lambda: False) as first:
        assert first
        with lease.hold(path, patience=0.1, give_up=lambda: False) as second:
            assert not second
        assert lease.is_held(path)
    assert not lease.is_held(path)


def test_who_must_leave_does_not_wait(tmp_path: Path) -> None:
    path = tmp_path / "measure.lock"
    with (
        lease.hold(path, patience=0, give_up=lambda: False),
        lease.hold(path, patience=3600, give_up=lambda: True) as second,
    ):
        assert not second


def test_the_lock_of_a_killed_holder_is_free(tmp_path: Path) -> None:
    path = tmp_path / "run" / "measure.lock"
    code = (
        "import sys, time; from pathlib import Path; from workers import lease\n"
        "with lease.hold(Path(sys.argv[1]), patience=0, give_up=lambda: True) as ours:\n"
        "    print(ours, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], cwd=DATA.parents[1], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        assert lease.is_held(path)
        with lease.hold(path, patience=0.1, give_up=lambda: False) as ours:
            assert not ours
        holder.kill()
        holder.wait()
    assert not lease.is_held(path)
    with lease.hold(path, patience=0, give_up=lambda: False) as ours:
        assert ours
