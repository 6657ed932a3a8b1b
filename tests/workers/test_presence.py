"""What a worker tells of itself."""

from __future__ import annotations

import threading

import pytest

from tests.workers.nvml import FakeGpus
from workers import gpu_lease, presence
from workers.presence import Presence, Seen


def test_a_worker_tells_its_gpus_and_who_has_them(
    fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECDEBUG_WORKER_NAME", "big")
    lease = gpu_lease.take(
        gpu_lease.Need(2), run="story-r1", on_wait=lambda _: None, should_stop=lambda: ""
    )
    seen = presence.look()
    lease.release()
    assert (seen.ability.worker, seen.ability.gpus, seen.problem) == ("big", 8, "")
    assert seen.gpus[0]["lease"].startswith("run story-r1 of user ")
    assert [gpu["lease"] for gpu in seen.gpus[2:]] == [""] * 6
    assert seen.gpus[5]["total_mb"] == 97887


def test_settings_can_lower_the_number_of_gpus_and_not_raise_it(
    fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given, count in (("4", 4), ("16", 8), ("", 8)):
        monkeypatch.setenv("SPECDEBUG_GPUS", given)
        assert presence.look().ability.gpus == count
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert presence.look().ability.gpus == 2


def test_without_a_driver_the_number_is_what_the_settings_say_or_not_known(
    fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NVML", "/no/such/file")
    seen = presence.look()
    assert (seen.ability.gpus, seen.gpus) == (None, ())
    assert "NVML" in seen.problem
    monkeypatch.setenv("SPECDEBUG_GPUS", "8")
    assert presence.look().ability.gpus == 8


def test_a_number_of_gpus_that_is_none_is_told(
    fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECDEBUG_GPUS", "many")
    seen = presence.look()
    assert seen.ability.gpus == 8
    assert "SPECDEBUG_GPUS='many' is no number" in seen.problem


def test_engines_without_an_interpreter_are_told_with_the_setting_to_make(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPECDEBUG_SGLANG_PYTHON", raising=False)
    assert "SPECDEBUG_SGLANG_PYTHON" in presence.lacking()["sglang"]
    assert "reference" not in presence.lacking()
    assert "attached" not in presence.lacking()


def test_a_failure_to_tell_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Seen] = []
    ended, enough = threading.Event(), threading.Event()

    def tell(seen: Seen) -> None:
        heard.append(seen)
        if len(heard) == 1:
            raise OSError("the record is away")
        enough.set()

    running = Presence(tell, done=ended.set, every=0.01)
    running.start()
    assert enough.wait(10)
    running.stop()
    running.stop()
    assert ended.wait(10)
