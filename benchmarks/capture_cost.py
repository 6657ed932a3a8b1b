"""What keeping everything costs a run in throughput: the whole product against a bare client.

    python benchmarks/capture_cost.py [--rounds 30] [--step-ms 20] [--json FILE]

A server answers with what the reference engine said, at a fixed step time and with the processor
idle in between, as with a GPU (`paced_server.py`). In turns, its tok/s are measured by a run of the
record (Celery worker with heartbeat, eight GPUs sampled at 1 Hz through a stand-in for NVML, the
requests and their meta_info kept, web server beside it) and by a plain HTTP client that counts
tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from specdebug.client import Client  # noqa: E402
from specdebug.reference import variants  # noqa: E402
from workers import engines  # noqa: E402
from workers.plan import Deadlines  # noqa: E402
from workers.prompt_files import read_prompts  # noqa: E402
from workers.server import Server, free_port  # noqa: E402

PROMPTS, TOKENS = 6, 48
ASKED = {"max_new_tokens": TOKENS, "temperature": 0.0, "ignore_eos": True}


def answers(folder: Path) -> dict[str, Any]:
    """What the reference engine says to each prompt at three steps, and to /server_info."""
    args = (
        *("--model-path", str(variants.TARGET), "--speculative-algorithm", "EAGLE3"),
        *("--speculative-draft-model-path", str(variants.DRAFT), "--speculative-num-steps", "3"),
        *("--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"),
    )
    engine, port = engines.engine("reference"), free_port()
    command = engine.command(args, host="127.0.0.1", port=port)
    server = Server.launch(command, engines.environment(engine, {}), folder, "answers")
    try:
        url = f"http://127.0.0.1:{port}"
        server.wait_ready(url, Deadlines(), on_phase=lambda _: None, should_stop=lambda: "")
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            found = {"": client.get("/server_info").raise_for_status().json()}
            for prompt in read_prompts("stdlib").prompts[:PROMPTS]:
                body = {**prompt.body, "sampling_params": ASKED}
                said = client.post("/generate", json=body).raise_for_status().json()
                found[prompt.body["text"]] = said
        return found
    finally:
        server.stop(5)


def nvml(folder: Path) -> dict[str, str]:
    """The environment in which NVML tells of eight busy GPUs; needs cc."""
    library = folder / "libnvidia-ml.so.1"
    source = ROOT / "tests" / "data" / "nvml" / "fake_nvml.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    rows = [f"gpu {n} used=90000 util=97 power=612 temp=61" for n in range(8)]
    (folder / "gpus.txt").write_text("\n".join(rows) + "\n")
    return {"FAKE_NVML": str(folder / "gpus.txt"), "LD_LIBRARY_PATH": str(folder)}


def bare(url: str) -> float:
    """tok/s of a client that asks one prompt after another and keeps nothing."""
    tokens = 0
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        begin = time.perf_counter()
        for prompt in read_prompts("stdlib").prompts[:PROMPTS]:
            body = {**prompt.body, "sampling_params": ASKED}
            said = client.post("/generate", json=body).json()
            tokens += said["meta_info"]["completion_tokens"]
        return tokens / (time.perf_counter() - begin)


def kept(inv: Any, url: str, number: int) -> float:
    """tok/s of a run of the record on the same server."""
    work = {"repeats": 1, "prompts_per_repeat": PROMPTS, "warm_up_prompts": 0}
    work |= {"max_new_tokens": TOKENS, "ignore_eos": True}
    run = inv.plan(f"kept {number}", [url], engine="attached", workload=work)
    run.wait(timeout=120, every=0.5)
    found = run.full()
    if found["run"]["state"] != "done":
        raise SystemExit(f"run {number} ended as {found['run']['state']}")
    if "580" not in found["versions"].get("nvidia driver", ""):
        raise SystemExit(f"run {number} sampled no GPU: {found['versions']}")
    return float(found["repeats"][0]["tok_s"])


def measured(rounds: int, step_ms: float) -> dict[str, Any]:
    """Both sides in turns, the order changing; the change in per cent with its 95 % interval."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specdebug-")))
        file = folder / "answers.json"
        file.write_text(json.dumps(answers(folder)))
        env = {**os.environ, **nvml(folder), "SPECDEBUG_DATA": str(folder / "data")}

        def start(*argv: str, **more: Any) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, *argv], cwd=ROOT, env=env, text=True, **more
            )
            stack.callback(process.wait, 60)
            stack.callback(process.terminate)
            return process

        port = free_port()
        script = str(Path(__file__).with_name("paced_server.py"))
        log = str(folder / "server.log")
        start(script, str(file), str(port), log, "--step-ms", str(step_ms))
        web = free_port()
        up = start(
            *("-m", "specdebug.up", "--data", str(folder / "data"), "--no-replay"),
            *("--port", str(web)),
            stdout=subprocess.PIPE,
        )
        assert up.stdout is not None
        if not any("Ready after" in line for line in up.stdout):
            raise SystemExit("specdebug did not become ready")
        token = subprocess.run(
            [sys.executable, "manage.py", "api_token"],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()[-1]
        url = f"http://127.0.0.1:{port}"
        sd = stack.enter_context(Client(f"http://127.0.0.1:{web}", token))
        inv = sd.investigation("What does keeping cost?", question="What does keeping cost?")
        pairs = []
        for number in range(rounds + 1):
            if number % 2:
                plain, tok_s = bare(url), kept(inv, url, number)
            else:
                tok_s, plain = kept(inv, url, number), bare(url)
            print(f"{number}: kept {tok_s:.3f}, bare {plain:.3f} tok/s", file=sys.stderr)
            pairs.append((tok_s, plain))
    return figures(pairs[1:])  # the first warms up


def figures(pairs: list[tuple[float, float]]) -> dict[str, Any]:
    """Of the mean ratio, t over the pairs."""
    changes = [100 * (one / other - 1) for one, other in pairs]
    mean = statistics.fmean(changes)
    half = stats.t.ppf(0.975, len(changes) - 1) * statistics.stdev(changes) / len(changes) ** 0.5
    return {
        "rounds": len(pairs),
        "kept_tok_s": round(statistics.fmean(a for a, _ in pairs), 3),
        "bare_tok_s": round(statistics.fmean(b for _, b in pairs), 3),
        "change_percent": round(mean, 3),
        "interval_95_percent": [round(mean - half, 3), round(mean + half, 3)],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--step-ms", type=float, default=20.0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    # Ended early, it stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found = {"step_ms": args.step_ms, **measured(args.rounds, args.step_ms)}
    print(json.dumps(found, indent=1))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
