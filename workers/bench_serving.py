"""`sglang.bench_serving` as the client of a repeat, run with the engine's own interpreter and read
back from its JSONL; it computes none of its figures."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workers import engines
from workers.plan import Repeat, Request, RunEnded, RunPlan, ShouldStop
from workers.prompt_files import Prompt
from workers.server import LEASH
from workers.tail import last_lines, why_it_ended

MODULE = "sglang.bench_serving"
LOG = "bench-serving.log"
LOOK_SECONDS = 0.2
# Beside the requests themselves: importing torch and transformers, loading the tokenizer.
START_SECONDS = 300.0
LARGEST_OUTPUT = 256 * 1024 * 1024


def interpreter(plan: RunPlan) -> engines.Engine:
    """The engine whose environment has SGLang: the plan's own, else one that is configured.

    Raises RunEnded where there is none.
    """
    own = engines.engine(plan.engine)
    candidates = [own] if own.module.startswith("sglang.") else []
    candidates += [engines.ENGINES[name] for name in ("sglang", "sglang-cpu")]
    for engine in candidates:
        with contextlib.suppress(RunEnded):
            engine.python()
            return engine
    raise RunEnded(
        "failed",
        f"The client bench-serving is part of SGLang: set {candidates[0].interpreter} to the "
        "python of an environment that has it, or measure with the client specdebug.",
    )


def check(plan: RunPlan, prompts: Sequence[Prompt]) -> None:
    """Raises RunEnded for what this client cannot do."""
    interpreter(plan)
    if plan.workload.temperature:
        raise RunEnded("failed", "The client bench-serving asks at temperature 0 only.")
    if plan.workload.max_new_tokens < 4:
        raise RunEnded("failed", "The client bench-serving needs max_new_tokens of 4 or more.")
    if any("text" not in prompt.body for prompt in prompts):
        raise RunEnded("failed", "The client bench-serving takes prompts of text, not token ids.")


def command(
    plan: RunPlan, url: str, prompts: Path, output: Path, *, count: int, seed: int
) -> list[str]:
    """The exact command line; the key of a guarded server goes by the environment."""
    work = plan.workload
    host, _, port = url.removeprefix("http://").removeprefix("https://").partition(":")
    argv = [interpreter(plan).python(), "-m", MODULE, "--backend", "sglang"]
    argv += ["--host", host, "--port", port] if port.isdigit() else ["--base-url", url]
    argv += ["--dataset-name", "custom", "--dataset-path", str(prompts)]
    argv += ["--num-prompts", str(count), "--sharegpt-output-len", str(work.max_new_tokens)]
    argv += ["--max-concurrency", str(work.concurrency), "--seed", str(seed)]
    argv += ["--request-rate", "inf" if work.request_rate is None else f"{work.request_rate:g}"]
    argv += ["--warmup-requests", "0", "--output-details", "--disable-tqdm"]
    argv += ["--output-file", str(output)]
    if not work.ignore_eos:
        argv += ["--disable-ignore-eos"]
    tokenizer = engines.flag(plan.server_args, "--tokenizer-path") or engines.flag(
        plan.server_args, "--model-path", "--model"
    )
    return [*argv, "--tokenizer", tokenizer] if tokenizer else argv


def run_repeat(
    plan: RunPlan,
    prompts: Sequence[Prompt],
    url: str,
    *,
    index: int,
    should_stop: ShouldStop,
    died: Callable[[], str],
) -> tuple[Repeat, Path]:
    """One repeat, and the file with what the client said of it.

    Raises RunEnded where the client fails, a request failed, the server ends or a stop is wanted.
    """
    folder = Path(plan.folder)
    asked = folder / "bench-prompts.jsonl"
    output = folder / f"bench-{index}.jsonl"
    try:
        asked.write_text("".join(_conversation(prompt) for prompt in prompts), encoding="utf-8")
        output.unlink(missing_ok=True)
    except OSError as problem:
        raise RunEnded("failed", f"The client's prompts cannot be written: {problem}") from None
    seed = plan.workload.seed * 1000 + index
    argv = command(plan, url, asked, output, count=len(prompts), seed=seed)
    env = engines.environment(interpreter(plan), {})
    if key := engines.flag(plan.server_args, "--api-key"):
        env["OPENAI_API_KEY"] = key
    limit = START_SECONDS + plan.deadlines.request * len(prompts)
    started_at = time.time()
    _wait(argv, env, folder, limit, should_stop, died)
    return _repeat(read(output), prompts, index, started_at), output


def _conversation(prompt: Prompt) -> str:
    # The answer's length is fixed by a flag; its text only has to be there.
    turns = [{"content": prompt.body["text"]}, {"content": "-"}]
    return json.dumps({"conversations": turns}) + "\n"


def _wait(
    argv: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    limit: float,
    should_stop: ShouldStop,
    died: Callable[[], str],
) -> None:
    """Until the client has ended well. It hangs on a leash of its own: our death is its end."""
    log = folder / LOG
    with log.open("ab") as file:
        client = subprocess.Popen(
            [*LEASH, str(os.getpid()), "--", *argv],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=dict(env),
            cwd=folder,
            start_new_session=True,
        )
    until = time.monotonic() + limit
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = client.wait(LOOK_SECONDS)
                break
            if reason := should_stop():
                raise RunEnded("cancelled", reason)
            if how := died():
                raise RunEnded("failed", how)
            if time.monotonic() > until:
                raise RunEnded("failed", f"{MODULE} was not done after {limit:g} s.")
    finally:
        if client.poll() is None:
            client.send_signal(signal.SIGUSR1)
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.wait(15)
        if client.poll() is None:
            client.kill()
            client.wait()
    if code:
        said = why_it_ended(last_lines(log))
        raise RunEnded("failed", f"{MODULE} ended with exit code {code}: {said or 'no word'}")


def read(output: Path) -> dict[str, Any]:
    """The client's last record. Raises RunEnded where there is none."""
    try:
        if output.stat().st_size > LARGEST_OUTPUT:
            raise ValueError(f"larger than {LARGEST_OUTPUT >> 20} MiB")
        lines = output.read_text(encoding="utf-8").splitlines()
        found = json.loads(lines[-1])
        if not isinstance(found, dict) or not isinstance(found.get("output_lens"), list):
            raise ValueError("no output_lens in it")
    except (OSError, ValueError, IndexError) as problem:
        raise RunEnded("failed", f"{MODULE} left no result: {problem}") from None
    return found


def _repeat(
    result: Mapping[str, Any], prompts: Sequence[Prompt], index: int, started_at: float
) -> Repeat:
    errors = [str(error) for error in result.get("errors", []) if error]
    if errors or result.get("completed") != len(prompts):
        said = f": {errors[0].strip().splitlines()[-1][:300]}" if errors else ""
        raise RunEnded(
            "failed",
            f"{MODULE}: {result.get('completed')} of {len(prompts)} requests succeeded{said}",
        )
    requests = [
        Request(
            # It shuffles the prompts, so that only the set of them is known, not who is who.
            prompt=prompt.id,
            seconds=float(ttft) + sum(map(float, itl)),
            prompt_tokens=int(asked),
            completion_tokens=int(answered),
        )
        for prompt, asked, answered, ttft, itl in zip(
            prompts,
            result["input_lens"],
            result["output_lens"],
            result["ttfts"],
            result["itls"],
            strict=True,
        )
    ]
    return Repeat(index, started_at, float(result["duration"]), tuple(requests))
