"""A fake engine in the registry, prompts, a plan around both, and a look at what is left over."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.workers.nvml import fake_gpus as fake_gpus
from tests.workers.nvml import nvml_library as nvml_library
from workers import engines, processes
from workers.plan import Deadlines, RunPlan, Workload

DATA = Path(__file__).resolve().parents[1] / "data"
# The module as `python -m` finds it; PYTHONPATH is the engine's own environment.
FAKE = engines.Engine(
    "fake", module="fake_engine", env={"PYTHONPATH": str(DATA)}, packages=("httpx", "no-such-thing")
)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.ENGINES, "fake", FAKE)


@pytest.fixture
def prompts(tmp_path: Path, settings: Any) -> Path:
    settings.PROMPT_DIRS = [str(tmp_path)]
    path = tmp_path / "prompts.jsonl"
    lines = [json.dumps({"id": f"p{n}", "text": f"prompt number {n}"}) for n in range(4)]
    path.write_text("\n".join(lines) + "\n")
    return path


MakePlan = Callable[..., RunPlan]


@pytest.fixture
def make_plan(tmp_path: Path, prompts: Path) -> MakePlan:
    """A plan for the fake engine with these switches; short deadlines, two repeats of four."""
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    plan = RunPlan(
        run="story-r0",
        engine="fake",
        server_args=(),
        folder=str(folder),
        workload=Workload(
            prompts=str(prompts),
            max_new_tokens=16,
            prompts_per_repeat=4,
            repeats=2,
            warm_up_prompts=1,
        ),
        deadlines=Deadlines(launch=20, ready=30, request=20, stop=5),
    )

    def make(*server_args: str, workload: dict[str, Any] | None = None, **changes: Any) -> RunPlan:
        work = replace(plan.workload, **(workload or {}))
        return replace(plan, server_args=server_args, workload=work, **changes)

    return make


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """No test of this room may leave a process behind that ran in its folder."""
    yield
    until = time.monotonic() + 5
    while (left := of_folder(tmp_path)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left, f"left running: {left}"


def of_folder(folder: Path) -> list[int]:
    """Live processes other than us whose working folder lies under `folder`."""
    found = []
    for pid, process in processes.table().items():
        try:
            where = str(Path(f"/proc/{pid}/cwd").readlink())
        except OSError:
            continue
        if not process.zombie and pid != os.getpid() and where.startswith(str(folder)):
            found.append(pid)
    return found


@pytest.fixture
def sglang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An interpreter for the engine sglang whose `-m sglang.launch_server` is the fake one."""
    path = tmp_path / "sglang-python"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = -m ] && shift 2 && exec {sys.executable} {DATA}/fake_engine.py "$@"\n'
        f'exec {sys.executable} "$@"\n'
    )
    path.chmod(0o755)
    monkeypatch.setenv("SPECDEBUG_SGLANG_PYTHON", str(path))
    return path
