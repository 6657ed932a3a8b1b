"""A child that is forked while another thread looks for the GPUs' library can look itself."""

from __future__ import annotations

import os
import signal
import threading
import time

import pynvml
import pytest

from workers import presence, tasks


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_during_a_look_is_not_stuck_in_its_own() -> None:
    """A worker's main process tells of itself from a thread; its pool forks when a child died."""
    looking = threading.Event()

    def look() -> None:
        with pynvml.libLoadLock:  # as nvmlInit holds it while it searches the disk
            looking.set()
            time.sleep(0.5)

    thread = threading.Thread(target=look)
    thread.start()
    assert looking.wait(5)
    child = os.fork()
    if child == 0:
        try:
            presence.look()
            os._exit(0)
        finally:
            os._exit(1)
    thread.join()
    until = time.monotonic() + 15
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert status == 0
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_no_child_is_born_while_the_worker_writes_of_itself() -> None:
    """SQLite's notes of its locks are memory: a child born then would find the record locked."""
    writing, written = threading.Event(), threading.Event()

    def write() -> None:
        with tasks._no_birth:
            writing.set()
            time.sleep(0.3)
            written.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert writing.wait(5)
    child = os.fork()
    if child == 0:
        # Free in the child, and born after the write.
        os._exit(0 if written.is_set() and tasks._no_birth.acquire(timeout=5) else 1)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
