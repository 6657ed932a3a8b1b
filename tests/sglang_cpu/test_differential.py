"""Our prediction beside the real argument parsing of five releases, over generated argument lists.

One process of each release's own environment (bin/setup-sglang-cpu builds them) parses all lists
over folders that hold nothing but a config.json. Compared: every speculative field, the scheduler
fields that speculation touches, and whether the list is refused with which exception.
"""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from specdebug.eagle.draft_config import DraftConfig, TargetConfig
from specdebug.sglang.flags import parse_argv
from specdebug.sglang.overrides import predict
from specdebug.sglang.releases import Release

pytestmark = [pytest.mark.sglang_cpu, pytest.mark.timeout(600)]

# One whole environment, and folders put in front of it for releases on both sides of rules: the
# second worker by switch (0.5.6), by default (0.5.11), alone (0.5.13), arguments resolved apart.
ENVIRONMENT = "0.5.10.post1"
RELEASES = ("0.5.6.post2", ENVIRONMENT, "0.5.11", "0.5.13", "0.5.23")
CASES = 600
TARGETS = ("LlamaForCausalLM", "Qwen3ForCausalLM", "DeepseekV3ForCausalLM", "Qwen2ForCausalLM")
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "float32",
}
MLA = {
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
}


def installed(release: str) -> tuple[Path, Path | None]:
    """The interpreter, and the folder that holds the release where it is not the environment's."""
    cache = os.environ.get("SPECDEBUG_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(cache) if cache else (Path(base) if base else Path.home() / ".cache") / "specdebug"
    python = root / "sglang-cpu" / ENVIRONMENT / "bin" / "python"
    overlay = None if release == ENVIRONMENT else root / "sglang-cpu" / f"{release}-arguments"
    if not python.exists() or (overlay is not None and not overlay.is_dir()):
        pytest.fail(f"the real SGLang {release} is not installed: run bin/setup-sglang-cpu")
    return python, overlay


def model(folder: Path, architecture: str) -> tuple[Path, TargetConfig]:
    kind = {"L": "llama", "D": "deepseek_v3"}.get(architecture[0], architecture[:5].lower())
    config: dict[str, Any] = {"architectures": [architecture], "model_type": kind, **SIZES}
    if kind == "deepseek_v3":
        config |= MLA
    path = folder / architecture
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    return path, TargetConfig.from_dict(config)


def generated(rng: random.Random, path: Path, draft: Path) -> tuple[list[str], dict[str, str]]:
    """One argument list; rare flags are rare, so that most lists reach the rules about tokens."""
    argv = ["--model-path", str(path), "--device", "cpu", "--mem-fraction-static", "0.8"]
    algorithm = rng.choice(["EAGLE", "EAGLE3", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", None])
    if rng.random() < 0.02:
        algorithm = "eagle3"
    if algorithm:
        argv += ["--speculative-algorithm", algorithm]

    def maybe(flag: str, values: list[object], share: float) -> None:
        if rng.random() < share:
            argv.extend([flag, str(rng.choice(values))])

    maybe("--speculative-num-steps", [1, 2, 3, 5, 15], 0.75)
    maybe("--speculative-eagle-topk", [1, 1, 1, 2, 4], 0.75)
    maybe("--speculative-num-draft-tokens", [2, 4, 6, 8, 16, 24], 0.75)
    if rng.random() < 0.7:
        argv += ["--speculative-draft-model-path", str(draft)]
    maybe("--max-running-requests", [8, 64], 0.5)
    maybe("--page-size", [1, 16, 64], 0.3)
    # trtllm_mha is refused on every machine without the right GPU, so it tells nothing here.
    backends = ["torch_native", "flashinfer", "fa3", "triton"]
    argv += ["--attention-backend", rng.choice(backends)]
    maybe("--speculative-ngram-max-bfs-breadth", [1, 4], 0.1)
    maybe("--pp-size", [2], 0.02)
    maybe("--speculative-num-steps", ["many"], 0.01)
    for flag, share in (
        ("--enable-mixed-chunk", 0.1),
        ("--disable-overlap-schedule", 0.1),
        ("--enable-dp-attention", 0.03),
    ):
        if rng.random() < share:
            argv.append(flag)
    env = {}
    if rng.random() < 0.25:
        env["SGLANG_ENABLE_SPEC_V2"] = rng.choice(["1", "true", "0"])
    return argv, env


DRAFT = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    **SIZES,
    "num_hidden_layers": 1,
}
# Fields that no rule of speculation decides: filled in wherever a path is given, following the
# target's own, or choosing a kernel.
APART = {
    "page_size",
    "attention_backend",
    "speculative_draft_model_revision",
    "speculative_moe_runner_backend",
    "speculative_boundary_reduction",
}


def disagreements(
    release: str,
    argv: list[str],
    env: dict[str, str],
    target: TargetConfig,
    real: dict[str, Any],
    defaults: dict[str, Any],
) -> list[str]:
    """Where prediction and truth differ, in words."""
    command = parse_argv(argv)
    draft = DraftConfig.from_dict(DRAFT)
    found = predict(command, target, Release.parse(release), draft=draft, env=env)
    if "error" in real:
        if not found.rejections:
            return [f"refused by {real} and not predicted"]
        first = found.rejections[0]
        return [] if first.error == real["error"] else [f"{first.error} predicted, got {real}"]
    if found.rejections:
        return [f"{found.rejections[0].rule} predicted and not refused"]
    out = []
    for name, value in real["args"].items():
        if name in APART:
            continue
        if command.value("speculative_algorithm") is None and not name.startswith("speculative_"):
            continue  # without speculation other rules, not ours, move the scheduler
        given = found.effective.get(name)
        expected = given.value if given is not None else defaults.get(name)
        if expected != value:
            out.append(f"{name}: predicted {expected!r}, really {value!r}")
    return out


@pytest.mark.parametrize("release", RELEASES)
def test_prediction_and_the_real_server_agree_on_every_list(release: str, tmp_path: Path) -> None:
    python, overlay = installed(release)
    rng = random.Random(20)
    models = [model(tmp_path, name) for name in TARGETS]
    draft = tmp_path / "draft"
    draft.mkdir()
    (draft / "config.json").write_text(json.dumps(DRAFT))
    lists = []
    for _ in range(CASES):
        path, target = rng.choice(models)
        argv, env = generated(rng, path, draft)
        lists.append((argv, env, target))
    done = subprocess.run(
        [str(python), str(Path(__file__).parent / "real_server_args.py")],
        input=json.dumps({"cases": [{"argv": argv, "env": env} for argv, env, _ in lists]}),
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "SGLANG_USE_CPU_ENGINE": "1",
            "PYTHONPATH": str(overlay or ""),
        },
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.split("@@answers@@")[1])
    assert report["version"] == release
    answers = report["cases"]
    assert len(answers) == CASES
    wrong = [
        f"{' '.join(argv[2:])} {env}: {problem}"
        for (argv, env, target), real in zip(lists, answers, strict=True)
        for problem in disagreements(release, argv, env, target, real, report["defaults"])
    ]
    served = sum("args" in answer for answer in answers)
    assert 0.2 * CASES < served < 0.95 * CASES, f"{served} of {CASES} lists are served"
    assert not wrong, f"{len(wrong)} disagreements:\n" + "\n".join(wrong[:20])
