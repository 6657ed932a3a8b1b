"""A child that is forked while another thread looks for the GPUs' library can look itself."""

from __future__ import annotations

import os
import signal
import threading
import time

import pynvml
import pytest

from workers import presence


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
