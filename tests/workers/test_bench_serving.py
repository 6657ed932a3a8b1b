"""SGLang's own client as the client of a repeat: its command, its record, and how it fails."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.crosscheck import INTERPRETER
from specdebug.reference import variants
from tests.workers.conftest import DATA, MakePlan, of_folder
from workers import bench_serving, runner
from workers.plan import RunEnded, RunOutcome, RunPlan, Workload
from workers.prompt_files import Prompt

PROMPTS = [Prompt("a", {"text": "one"}), Prompt("b", {"text": "two"})]
CLIENT = """
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
for name in ("num-prompts", "sharegpt-output-len"):
    parser.add_argument("--" + name, type=int)
for name in ("dataset-path", "output-file"):
    parser.add_argument("--" + name)
given, rest = parser.parse_known_args()
how = os.environ.get("HF_HOME", "")  # handed down from the worker
lines = [json.loads(line) for line in open(given.dataset_path)]
assert len(lines) == given.num_prompts, lines
assert all(line["conversations"][0]["content"] for line in lines)
if how == "hang":
    time.sleep(600)
if how == "crash":
    sys.exit("ValueError: no tokenizer in m")
count = given.num_prompts
length = given.sharegpt_output_len
record = {
    "duration": 2.0,
    "completed": count - (how == "error"),
    "output_throughput": count * length / 2.0,
    "input_lens": [5] * count,
    "output_lens": [length] * count,
    "ttfts": [0.1] * count,
    "itls": [[0.01] * (length - 1)] * count,
    "errors": ["", "Traceback\\nHTTP 400: too long"][: count] if how == "error" else [""] * count,
}
if how != "silent":
    with open(given.output_file, "a") as file:
        file.write(json.dumps(record) + "\\n")
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An interpreter whose `-m sglang.bench_serving` is the script above; how it behaves goes by a
    variable that the engine's environment takes over."""
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    python = tmp_path / "sglang-python"
    python.write_text(
        f'#!/bin/sh\nif [ "$2" = sglang.bench_serving ]; then shift 2; '
        f'exec {sys.executable} {script} "$@"; fi\n'
        f'[ "$1" = -m ] && shift 2 && exec {sys.executable} {DATA}/fake_engine.py "$@"\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setenv("SPECDEBUG_SGLANG_PYTHON", str(python))
    return lambda how: monkeypatch.setenv("HF_HOME", how)


def measure(plan: RunPlan, **more: Any) -> RunOutcome:
    options: dict[str, Any] = {"on_progress": lambda _: None, "should_stop": lambda: "", **more}
    return runner.measure(plan, **options)


def asked(make_plan: MakePlan, *args: str, **work: Any) -> RunPlan:
    return make_plan(
        *args, engine="sglang", workload={"client": "bench-serving", "repeats": 2, **work}
    )


@pytest.mark.usefixtures("client")
def test_a_run_by_that_client_has_its_figures_and_keeps_its_record(make_plan: MakePlan) -> None:
    plan = asked(make_plan)
    outcome = measure(plan)
    assert (outcome.state, outcome.reason) == ("done", "")
    assert [repeat.seconds for repeat in outcome.repeats] == [2.0, 2.0]
    request = outcome.repeats[0].requests[0]
    assert (request.prompt_tokens, request.completion_tokens) == (5, 16)
    assert request.seconds == pytest.approx(0.1 + 15 * 0.01)
    # It shuffles: who answered what is not known, so that no output is claimed.
    assert (request.output_sha256, request.spec_verify_ct) == ("", None)
    kept = {name for name, kind in outcome.files if kind == "client-output"}
    assert kept == {"bench-0.jsonl", "bench-1.jsonl"}
    assert json.loads((Path(plan.folder) / "bench-1.jsonl").read_text())["completed"] == 4


@pytest.mark.usefixtures("client")
def test_the_command_says_load_rate_and_seed_and_holds_no_key(make_plan: MakePlan) -> None:
    plan = asked(
        make_plan,
        *("--model-path", "m", "--api-key", "sk-123456"),
        concurrency=4,
        request_rate=2.5,
        seed=3,
        ignore_eos=False,
    )
    argv = bench_serving.command(
        plan, "http://127.0.0.1:3000", Path("p"), Path("o"), count=4, seed=3001
    )
    said = " ".join(argv[1:])
    assert said.startswith("-m sglang.bench_serving --backend sglang --host 127.0.0.1 --port 3000")
    for part in (
        *("--max-concurrency 4", "--request-rate 2.5", "--seed 3001", "--num-prompts 4"),
        *("--sharegpt-output-len 16", "--disable-ignore-eos", "--tokenizer m"),
    ):
        assert part in said
    assert "sk-123456" not in said
    at_once = bench_serving.command(
        asked(make_plan), "http://h", Path("p"), Path("o"), count=1, seed=1
    )
    assert at_once[at_once.index("--request-rate") + 1] == "inf"
    assert "--base-url" in at_once


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("crash", "sglang.bench_serving ended with exit code 1: ValueError: no tokenizer in m"),
        ("error", "3 of 4 requests succeeded: HTTP 400: too long"),
        ("silent", "left no result"),
    ],
)
def test_a_client_that_fails_fails_the_run_with_its_words(
    make_plan: MakePlan, client: Any, how: str, said: str
) -> None:
    client(how)
    outcome = measure(asked(make_plan))
    assert (outcome.state, outcome.phase) == ("failed", "measuring")
    assert said in outcome.reason


def test_a_cancel_ends_the_client_as_well(make_plan: MakePlan, client: Any) -> None:
    client("hang")
    plan = asked(make_plan)
    seen: list[str] = []

    def stop() -> str:
        running = Path(plan.folder, bench_serving.LOG).exists() and len(
            of_folder(Path(plan.folder))
        )
        return "Asked to." if running and running > 3 else ""

    outcome = measure(plan, on_progress=lambda p: seen.append(p.phase), should_stop=stop)
    assert (outcome.state, outcome.reason) == ("cancelled", "Asked to.")
    assert not of_folder(Path(plan.folder))


@pytest.mark.parametrize(
    ("work", "prompts", "said"),
    [
        ({"temperature": 0.7}, PROMPTS, "at temperature 0 only"),
        ({"max_new_tokens": 3}, PROMPTS, "max_new_tokens of 4 or more"),
        ({}, [Prompt("a", {"input_ids": [1]})], "not token ids"),
    ],
)
@pytest.mark.usefixtures("client")
def test_what_it_cannot_do_is_said_before_the_start(
    make_plan: MakePlan, work: dict[str, Any], prompts: list[Prompt], said: str
) -> None:
    with pytest.raises(RunEnded) as no:
        bench_serving.check(asked(make_plan, **work), prompts)
    assert said in no.value.reason
    bench_serving.check(asked(make_plan), PROMPTS)


def test_without_sglang_on_the_machine_the_variable_is_named(
    make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPECDEBUG_SGLANG_PYTHON", raising=False)
    monkeypatch.delenv(INTERPRETER, raising=False)
    plan = make_plan(engine="reference", workload={"client": "bench-serving"})
    outcome = measure(plan)
    assert outcome.state == "failed"
    assert "set SPECDEBUG_SGLANG_PYTHON" in outcome.reason


@pytest.mark.sglang_cpu
@pytest.mark.timeout(600)
def test_the_real_client_measures_the_reference_engine(tmp_path: Path) -> None:
    """The real sglang.bench_serving; the engine is ours, which starts in a second."""
    if not os.environ.get(INTERPRETER):
        pytest.fail("the real SGLang is missing: bin/setup-sglang-cpu installs it")
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    plan = RunPlan(
        run="bench",
        engine="reference",
        server_args=("--model-path", str(variants.TARGET)),
        folder=str(folder),
        workload=Workload(
            client="bench-serving", repeats=1, prompts_per_repeat=4, max_new_tokens=16
        ),
    )
    outcome = measure(plan)
    assert (outcome.state, outcome.reason) == ("done", "")
    (repeat,) = outcome.repeats
    assert [r.completion_tokens for r in repeat.requests] == [16] * 4
    assert 0 < repeat.seconds < 300
    record = json.loads((folder / "bench-0.jsonl").read_text())
    assert record["output_throughput"] == pytest.approx(4 * 16 / repeat.seconds)
