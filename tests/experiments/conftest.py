"""Rows that the record's tests start from."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from experiments import lifecycle
from experiments.models import Investigation, Run
from workers.plan import Exit, Repeat, Request, RunOutcome

PLAIN = ["--model-path", "target"]


@pytest.fixture
def investigation(db: None) -> Investigation:
    return lifecycle.create_investigation(title="Slow draft", question="Is the draft worth it?")


@pytest.fixture
def baseline(investigation: Investigation) -> Run:
    run = lifecycle.record_run(
        investigation=investigation,
        title="no speculation",
        repeats=[lifecycle.RecordedRepeat(90.0)],
        server_args=PLAIN,
    )
    lifecycle.edit_investigation(investigation, baseline=run)
    return run


DATA = Path(__file__).resolve().parents[1] / "data" / "record"
COMMON = shlex.split(
    "--model-path m2/target --device cpu --dtype float32 --attention-backend torch_native"
    " --disable-cuda-graph --enable-metrics --max-total-tokens 8192 --decode-log-interval 10"
    " --max-running-requests 4 --sleep-on-idle --random-seed 1"
)


def speculative(steps: int) -> list[str]:
    return [
        *COMMON,
        *shlex.split(
            "--speculative-algorithm EAGLE3 --speculative-draft-model-path m2/draft"
            f" --speculative-eagle-topk 1 --speculative-num-steps {steps}"
            " --speculative-num-draft-tokens 16"
        ),
    ]


@dataclass(frozen=True)
class Sample:
    """A real capture of SGLang 0.5.10.post1 on a CPU, as a worker would bring it home."""

    name: str
    server_args: tuple[str, ...]

    def outcome(self, folder: Path, **values: Any) -> RunOutcome:
        """The outcome, its log copied into `folder`; `values` replace single fields."""
        log = folder / "server.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(DATA / f"{self.name}.log", log)
        info = json.loads((DATA / f"{self.name}.server_info.json").read_text())
        good: dict[str, Any] = {
            "state": "done",
            "phase": "finished",
            "reason": "",
            "argv": ("python", "-m", "sglang.launch_server", *self.server_args),
            "env": {},
            "versions": {"sglang": "0.5.10.post1"},
            "host": "testhost",
            "started_at": 1_780_000_000.0,
            "ready_at": 1_780_000_020.0,
            "ended_at": 1_780_000_090.0,
            "log": str(log),
            "server_info": info,
            "metrics_text": "",
            "repeats": tuple(repeat(n, drafted=self.name.startswith("eagle3")) for n in range(3)),
            "exit": Exit(code=0, asked=True),
        }
        return RunOutcome(**(good | values))


def repeat(index: int, *, drafted: bool, seconds: float = 4.0) -> Repeat:
    """Two requests of 64 tokens; with a draft 78 verify passes for 126 tokens after the first."""
    requests = tuple(
        Request(
            prompt=f"p{n}",
            seconds=seconds / 2,
            prompt_tokens=20,
            completion_tokens=64,
            spec_verify_ct=39 if drafted else None,
            accept_histogram=(15, 24) if drafted else None,
            output_sha256=f"{n}" * 64,
        )
        for n in range(2)
    )
    return Repeat(index, 1_780_000_030.0 + 10 * index, seconds + index / 100, requests)


SAMPLES = {
    "plain": Sample("baseline_nospec", tuple(COMMON)),
    "steps1": Sample("eagle3_steps1_draft16", tuple(speculative(1))),
    "steps15": Sample("eagle3_steps15_draft16", tuple(speculative(15))),
}


@pytest.fixture
def sample() -> Callable[[str], Sample]:
    """A real capture by name: plain, steps1, steps15."""
    return SAMPLES.__getitem__


@pytest.fixture
def claimed(investigation: Investigation, data_dir: Path) -> Callable[..., Run]:
    """A run of a sample that a worker has claimed with the token "t"."""

    def make(name: str, **links: Any) -> Run:
        run = lifecycle.add_run(
            investigation=investigation,
            title=name,
            server_args=SAMPLES[name].server_args,
            engine="sglang-cpu",
            **links,
        )
        Run.objects.filter(pk=run.pk).update(state=Run.State.QUEUED)
        taken = lifecycle.claim_run(run.pk, token="t", worker="w")
        assert taken is not None
        return taken

    return make
