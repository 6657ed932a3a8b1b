# ruff: noqa: ISC004 - log lines stay in one piece
"""One start of a server as each release prints it: healthy is quiet, an override is named once."""

import json

import pytest

from specdebug.diagnosis.case import Input, build_case
from specdebug.diagnosis.diagnose import Diagnosis, diagnose
from specdebug.sglang.releases import KNOWN, Release

R = Release.parse
ADJUSTED = (
    "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when "
    "speculative_eagle_topk == 1"
)
FIRST = R("0.4.5")  # with EAGLE3
RELEASES = [release for release in KNOWN if release >= FIRST]


def overlap(release: Release) -> str:
    """What the release says of its overlap scheduler before logging is set up."""
    if release < R("0.5.4"):
        return "Overlap scheduler is disabled because of using eagle speculative decoding."
    if release < R("0.5.7"):
        return "Overlap scheduler is disabled because of using eagle3 and standalone speculative"
    if release < R("0.5.11"):
        return (
            "Overlap scheduler is disabled when spec v2 is off or using unsupported speculative "
            "algorithm. You can set env SGLANG_ENABLE_SPEC_V2=True to enable the experimental "
            "overlap scheduler. "
        )
    return "Spec v2 is enabled by default for eagle/eagle3/standalone speculative decoding."


def dump(release: Release, tokens: int) -> str:
    args = {
        "model_path": "Qwen/Qwen3-8B",
        "max_running_requests": 32,
        "speculative_algorithm": "EAGLE3",
        "speculative_draft_model_path": "drafts/d",
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": tokens,
        "disable_cuda_graph": False,
    }
    if release >= R("0.5.19"):
        return f"server_args={args!r}"
    return "server_args=ServerArgs(" + ", ".join(f"{k}={v!r}" for k, v in args.items()) + ")"


def decode(release: Release, at: int, length: float, window: int) -> str:
    head = "Decode batch." if release < R("0.5.4") else "Decode batch,"
    if release == R("0.5.4"):
        head = f"Decode batch [{40 * at}],"
    rate = length / window if release < R("0.5.11") else (length - 1) / (window - 1)
    graph = "" if release < R("0.4.7") else "cuda graph: True, "
    rated = "" if release < R("0.5.4") else f"accept rate: {rate:.2f}, "
    end = ", " if R("0.4.10") <= release < R("0.5.9") else ""
    return (
        f"{head} #running-req: 1, #token: {700 + 90 * at}, token usage: 0.01, "
        f"accept len: {length:.2f}, {rated}{graph}gen throughput (token/s): {50 * length:.2f}, "
        f"#queue-req: 0{end}"
    )


def started(release: Release, asked: int, named: bool = True) -> Diagnosis:
    """The answer to a command for `asked` draft tokens and the log that follows from it; the
    release stands beside them if `named`."""
    replaces = release >= R("0.4.6")
    window = 4 if replaces else asked
    graph = "Capture decode CUDA graph" if release >= R("0.5.23") else "Capture cuda graph"
    bare = [overlap(release), *([ADJUSTED] if replaces and asked != 4 else [])]
    messages = [
        dump(release, window),
        "Init torch distributed begin.",
        "Load weight begin. avail mem=78.60 GB",
        "Load weight end. elapsed=17.00 s, type=Qwen3ForCausalLM, dtype=torch.bfloat16, "
        "avail mem=62.90 GB, mem usage=15.70 GB.",
        f"{graph} begin. This can take up to several minutes. avail mem=13.60 GB",
        f"{graph} end. Time elapsed: 17.00 s. mem usage=0.90 GB. avail mem=12.70 GB.",
        "Load weight begin. avail mem=12.60 GB",
        "Load weight end. elapsed=3.00 s, type=LlamaForCausalLMEagle3, dtype=torch.bfloat16, "
        "avail mem=11.00 GB, mem usage=1.60 GB.",
        "Capture draft cuda graph begin. This can take a while.",
        "Capture draft cuda graph end. Time elapsed: 4.00 s.",
        "Capture draft extend cuda graph begin. This can take a while.",
        "Capture draft extend cuda graph end. Time elapsed: 3.00 s.",
        "max_total_num_tokens=360000, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        "max_running_requests=32, context_len=40960, available_gpu_mem=10.50 GB",
        "The server is fired up and ready to roll!",
        *(decode(release, n, 2.3 + 0.1 * (n % 5), window) for n in range(40)),
    ]
    log = [f"[2026-03-02 11:{n // 60:02d}:{n % 60:02d} TP0] {m}" for n, m in enumerate(messages)]
    command = (
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --max-running-requests 32 "
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path drafts/d "
        f"--speculative-num-steps 3 --speculative-eagle-topk 1 "
        f"--speculative-num-draft-tokens {asked}"
    )
    notes = json.dumps({"engine_version": str(release)} if named else {"concurrency": 1})
    files = {"a": command, "b": "\n".join([*bare, *log]) + "\n", "c": notes}
    return diagnose(build_case([Input(name, text.encode()) for name, text in files.items()]))


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_healthy_start_of_any_release_shows_no_fault(release: Release, named: bool) -> None:
    found = started(release, 4, named)
    assert found.faults == ()
    assert found.unusable == ()
    assert found.values["effective_draft_tokens"] == 4
    assert found.values["step_ms"] == pytest.approx(20.0, rel=0.01)


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_an_override_is_named_once_where_the_release_has_it(release: Release) -> None:
    found = started(release, 16)
    replaces = release >= R("0.4.6")
    assert [f.code for f in found.faults] == (["draft-tokens-overridden"] if replaces else [])
    assert found.values["effective_draft_tokens"] == (4 if replaces else 16)
    if replaces:
        assert found.faults[0].confidence == "certain"
        assert "16 draft tokens were asked for and 4 are in force" in found.faults[0].statement
