"""A plan is looked at before anything is started: by our rules and by the release's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.workers.conftest import MakePlan
from workers import engines, preflight, runner
from workers.plan import RunEnded, RunOutcome, RunPlan
from workers.server import Server

CHAIN = ("--model-path", "m", "--speculative-algorithm", "EAGLE3", "--speculative-eagle-topk", "1")
STORY = (
    *(*CHAIN, "--speculative-draft-model-path", "d"),
    *("--speculative-num-steps", "1", "--speculative-num-draft-tokens", "16"),
)
HALF = ("--model-path", "m", "--speculative-algorithm", "EAGLE3", "--speculative-num-steps", "3")


def measure(plan: RunPlan) -> RunOutcome:
    return runner.measure(plan, on_progress=lambda _: None, should_stop=lambda: "")


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give the engine's environment a release of SGLang."""

    def give(name: str) -> None:
        monkeypatch.setattr(engines, "versions", lambda *_: {"sglang": name, "engine": name})

    return give


@pytest.fixture
def unlaunched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "launch", lambda *_: pytest.fail("a server was launched"))


@pytest.mark.usefixtures("unlaunched")
def test_a_plan_that_the_release_refuses_fails_before_anything_is_launched(
    make_plan: MakePlan, release: Callable[[str], None]
) -> None:
    release("0.5.10.post1")
    outcome = measure(make_plan(*HALF))
    assert (outcome.state, outcome.phase) == ("failed", "preparing")
    assert outcome.reason.startswith("SGLang 0.5.10.post1 refuses these arguments: Steps without")
    assert outcome.preflight is not None
    assert outcome.preflight["refusals"][0]["error"] == "TypeError"
    assert outcome.ended_at - outcome.started_at < 5


@pytest.mark.usefixtures("unlaunched")
def test_a_strict_plan_that_would_be_overridden_is_not_started(
    make_plan: MakePlan, release: Callable[[str], None]
) -> None:
    release("0.5.10.post1")
    outcome = measure(replace(make_plan(*STORY), strict=True))
    assert outcome.state == "failed"
    assert "speculative_num_draft_tokens 16 becomes 2" in outcome.reason
    assert outcome.preflight is not None
    assert outcome.preflight["strict"] is True


@pytest.mark.parametrize("strict", [True, False])
def test_a_strict_plan_is_not_measured_where_the_server_runs_something_else(
    make_plan: MakePlan, strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no rule foresaw and the server reports."""
    monkeypatch.setattr(
        "workers.load.Client.server_info", lambda *_: {"model_path": "other", "tp_size": 1}
    )
    outcome = measure(replace(make_plan("--model-path", "m"), strict=strict))
    if strict:
        assert (outcome.state, outcome.repeats) == ("failed", ())
        assert outcome.reason == (
            "Not measured, because the plan is strict: model_path m becomes other."
        )
    else:
        assert outcome.state == "done"


def test_the_models_configs_are_read_for_the_prediction(
    make_plan: MakePlan, tmp_path: Path
) -> None:
    """Left out numbers are chosen by the target's architecture, which its config names."""
    target = tmp_path / "target"
    target.mkdir()
    asked = ("--model-path", str(target), "--speculative-algorithm", "EAGLE3")
    plan = make_plan(*asked, "--speculative-draft-model-path", "d")
    versions = {"sglang": "0.5.10.post1"}
    unknown = preflight.foresee(plan, versions)
    assert any("not known" in note for note in unknown.notes)
    config = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 4}
    (target / "config.json").write_text(json.dumps(config))
    known = preflight.foresee(plan, versions)
    assert not any("not known" in note for note in known.notes)


@pytest.mark.parametrize("content", ["", "[1]", "{", "\0"])
def test_a_broken_config_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    assert preflight.config_of(str(tmp_path)) is None
    assert preflight.config_of(None) is None


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("repeats", 0, "workload.repeats is 0"),
        ("concurrency", 5000, "more than 4096"),
        ("request_rate", 0.0, "workload.request_rate is 0.0"),
        ("request_rate", float("inf"), "workload.request_rate is inf"),
        ("seed", -1, "workload.seed is -1"),
        ("client", "curl", "workload.client is 'curl'"),
    ],
)
def test_a_workload_that_cannot_be_is_named(
    make_plan: MakePlan, name: str, value: Any, said: str
) -> None:
    plan = make_plan(workload={name: value})
    with pytest.raises(RunEnded, match="The plan cannot be carried out") as problem:
        preflight.check(plan, Path(plan.folder))
    assert said in problem.value.reason
    preflight.check(make_plan(), Path(plan.folder))
