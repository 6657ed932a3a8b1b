"""The runner over the real reference engine: what a person's first run brings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import specdebug.reference
from specdebug.sglang.logs import read_log
from workers import runner
from workers.plan import RunOutcome, RunPlan, Workload

MODELS = Path(specdebug.reference.__file__).parent / "models"
pytestmark = [
    pytest.mark.story,
    pytest.mark.skipif(
        not (MODELS / "draft" / "model.safetensors").exists(), reason=f"no models in {MODELS}"
    ),
]
Measure = Callable[..., RunOutcome]


@pytest.fixture
def measure(tmp_path: Path) -> Measure:
    def run(*server_args: str) -> RunOutcome:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        plan = RunPlan(
            run="story",
            engine="reference",
            server_args=("--model-path", str(MODELS / "target"), *server_args),
            folder=str(folder),
            workload=Workload(
                max_new_tokens=48, prompts_per_repeat=4, repeats=2, warm_up_prompts=1
            ),
        )
        return runner.measure(plan, on_progress=lambda _: None, should_stop=lambda: "")

    return run


def test_speculation_changes_counts_and_no_output(measure: Measure) -> None:
    plain = measure()
    assert (plain.state, plain.reason) == ("done", "")
    drafted = measure(
        *("--speculative-algorithm", "EAGLE3"),
        *("--speculative-draft-model-path", str(MODELS / "draft")),
        *("--speculative-num-steps", "3", "--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", "16", "--decode-log-interval", "5"),
    )
    assert (drafted.state, drafted.reason) == ("done", "")
    for outcome in (plain, drafted):
        assert [len(repeat.requests) for repeat in outcome.repeats] == [4, 4]
        assert outcome.exit is not None
        assert (outcome.exit.code, outcome.exit.survivors) == (0, ())
    without = [request.output_sha256 for request in plain.repeats[0].requests]
    for repeat in drafted.repeats:
        assert [request.output_sha256 for request in repeat.requests] == without
        for request in repeat.requests:
            assert request.completion_tokens == 48
            assert request.spec_verify_ct is not None
            assert request.accept_histogram is not None
            assert sum(request.accept_histogram) == request.spec_verify_ct
            # A chain of 3 steps accepts at most 3 drafts a pass.
            assert len(request.accept_histogram) <= 4
    assert plain.repeats[0].requests[0].spec_verify_ct is None
    info = drafted.server_info
    assert info is not None
    assert info["speculative_num_draft_tokens"] == 4
    (boot,) = read_log(drafted.log).boots
    assert boot.decode_count > 5
    assert boot.first("ready") is not None
    assert [load.model_type for load in boot.model_loads] == [
        *("LlamaForCausalLM", "LlamaForCausalLMEagle3")
    ]


def test_a_model_that_is_not_there_is_said_in_the_engines_words(measure: Measure) -> None:
    outcome = measure("--model-path", "/no/such/model")
    assert outcome.state == "failed"
    assert "/no/such/model" in outcome.reason
    assert "before it was ready" in outcome.reason
