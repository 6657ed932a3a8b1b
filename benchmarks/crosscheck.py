"""The reference engine beside the real SGLang on the shipped checkpoint: are they equal?

Both serve the same target and the same draft; every request's tokens, verify passes and acceptance
histogram must be equal, for the right layers and wrong ones, at 1, 3 and 15 steps, with the norms
swapped, and with draft positions as from 0.5.12 on. One start of the real server for each.

    python benchmarks/crosscheck.py [NAME ...] [--prompts 8] [--tokens 96] [--json FILE]

Names are plain, right-1, right-3, right-15, wrong-1, wrong-3, wrong-15, norms-swapped-3,
fixed-positions-3 and fixed-positions-15; without one all are compared. Prints a line for each, of
requests how many are equal, and with --json keeps what it found beside what the file has of others,
so that it may be filled one at a time. Exit code 1 where a request differs.

Needs the real SGLang: bin/setup-sglang-cpu. About a minute for a configuration on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from specdebug.reference import variants  # noqa: E402
from workers import runner  # noqa: E402
from workers.plan import Request, RunOutcome, RunPlan, Workload  # noqa: E402

INTERPRETER = "SPECDEBUG_SGLANG_CPU_PYTHON"
CPU = (
    *("--device", "cpu", "--dtype", "float32", "--attention-backend", "torch_native"),
    *("--disable-cuda-graph", "--sleep-on-idle", "--max-total-tokens", "4096"),
    *("--max-running-requests", "4"),
)
WORK = Workload(repeats=1, warm_up_prompts=1, prompts_per_repeat=8, max_new_tokens=96)
SWAPPED = ("midlayer.hidden_norm.weight", "midlayer.input_layernorm.weight")


@dataclass(frozen=True)
class Configuration:
    """One pair of servers. layers: ids of the draft's config, () without a draft."""

    name: str
    steps: int = 0
    layers: tuple[int, ...] = ()
    swap_norms: bool = False
    fixed_positions: bool = False

    def draft(self, folder: Path) -> Path:
        """The shipped draft with this configuration's config and weights."""
        made = variants.write_draft(folder, self.layers)
        if self.swap_norms:
            _swap(made / "model.safetensors", *SWAPPED)
        return made

    def arguments(self, draft: Path) -> tuple[str, ...]:
        """What both servers are asked for."""
        common = ("--model-path", str(variants.TARGET), "--random-seed", "1")
        if not self.steps:
            return common
        return (
            *common,
            *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(draft)),
            *("--speculative-num-steps", str(self.steps), "--speculative-eagle-topk", "1"),
            *("--speculative-num-draft-tokens", str(self.steps + 1)),
            *("--decode-log-interval", "10"),
        )

    def environment(self) -> dict[str, str]:
        """Patches of the real server that this configuration needs."""
        env = {}
        if -1 in self.layers:
            env["CAPTURE_EMBEDDING"] = "1"
        if self.fixed_positions:
            env["DRAFT_POSITIONS_FIXED"] = "1"
        return env


RIGHT, WRONG = variants.RIGHT_IDS, variants.WRONG_IDS
CONFIGURATIONS = (
    Configuration("plain"),
    *(Configuration(f"right-{n}", n, RIGHT) for n in (1, 3, 15)),
    *(Configuration(f"wrong-{n}", n, WRONG) for n in (1, 3, 15)),
    Configuration("norms-swapped-3", 3, RIGHT, swap_norms=True),
    Configuration("fixed-positions-3", 3, RIGHT, fixed_positions=True),
    Configuration("fixed-positions-15", 15, RIGHT, fixed_positions=True),
)
BY_NAME = {configuration.name: configuration for configuration in CONFIGURATIONS}


@dataclass(frozen=True)
class Compared:
    """How many of `requests` are equal between the two servers, and what they add up to."""

    name: str
    requests: int
    equal_tokens: int
    equal_verifies: int
    equal_histograms: int
    verifies: int | None
    accept_len: float | None
    real_start_s: float
    # Histograms equal to those of a reference engine with the other draft position: not all of
    # them from 3 steps on, or the comparison would see nothing.
    equal_with_other_position: int | None

    @property
    def equal(self) -> bool:
        return self.requests == self.equal_tokens == self.equal_verifies == self.equal_histograms


def compare(configuration: Configuration, folder: Path, work: Workload = WORK) -> Compared:
    """Serve one configuration by both engines and hold their requests against each other."""
    draft = configuration.draft(folder / "draft") if configuration.steps else folder
    arguments = configuration.arguments(draft)
    offset = "0" if configuration.fixed_positions else "1"
    other = "1" if configuration.fixed_positions else "0"
    env = configuration.environment()
    real = measure("sglang-cpu", (*arguments, *CPU), folder / "real", work, env)
    ours = measure(
        "reference", (*arguments, "--draft-position-offset", offset), folder / "ours", work
    )
    shifted = None
    if configuration.steps > 1:
        flag = ("--draft-position-offset", other)
        moved = measure("reference", (*arguments, *flag), folder / "moved", work)
        shifted = sum(
            a.accept_histogram == b.accept_histogram
            for a, b in zip(_requests(real), _requests(moved), strict=True)
        )
    pairs = list(zip(_requests(real), _requests(ours), strict=True))
    theirs = [one for one, _ in pairs]
    speculative = bool(configuration.steps)
    verifies = sum(r.spec_verify_ct or 0 for r in theirs) if speculative else None
    tokens = sum(r.completion_tokens for r in theirs) - len(theirs)
    return Compared(
        name=configuration.name,
        requests=len(pairs),
        equal_tokens=sum(a.output_sha256 == b.output_sha256 for a, b in pairs),
        equal_verifies=sum(a.spec_verify_ct == b.spec_verify_ct for a, b in pairs),
        equal_histograms=sum(a.accept_histogram == b.accept_histogram for a, b in pairs),
        verifies=verifies,
        accept_len=tokens / verifies if verifies else None,
        real_start_s=round((real.ready_at or real.ended_at) - real.started_at, 1),
        equal_with_other_position=shifted,
    )


def _requests(outcome: RunOutcome) -> tuple[Request, ...]:
    return outcome.repeats[0].requests


def measure(
    engine: str,
    arguments: Sequence[str],
    folder: Path,
    work: Workload = WORK,
    env: dict[str, str] | None = None,
) -> RunOutcome:
    """One run to its end; SystemExit with the server's reason where it has none."""
    folder.mkdir(parents=True, mode=0o700)
    plan = RunPlan(
        run="crosscheck",
        engine=engine,
        server_args=tuple(arguments),
        folder=str(folder),
        env=env or {},
        workload=replace(work),
    )
    outcome = runner.measure(plan, on_progress=lambda _: None, should_stop=lambda: "")
    if outcome.state != "done":
        raise SystemExit(f"{engine}: {outcome.reason}")
    return outcome


def _swap(file: Path, one: str, other: str) -> None:
    """Exchange two tensors of equal shape: a weight fault that every loader accepts."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(file)
    tensors[one], tensors[other] = tensors[other].clone(), tensors[one].clone()
    file.unlink()  # it may be a link to the shipped file
    save_file(tensors, file, metadata={"format": "pt"})


HEADING = (
    "configuration       requests  tokens  verifies  histograms  other offset  accept len  seconds"
)


def in_a_line(found: Compared, seconds: float) -> str:
    """One row under HEADING: how many requests are equal in each way."""
    other = "-" if found.equal_with_other_position is None else found.equal_with_other_position
    length = "-" if found.accept_len is None else f"{found.accept_len:.3f}"
    return (
        f"{found.name:<18}  {found.requests:>8}  {found.equal_tokens:>6}  "
        f"{found.equal_verifies:>8}  {found.equal_histograms:>10}  {other:>12}  {length:>10}  "
        f"{seconds:>7.1f}"
    )


def _keep(file: Path, one: dict[str, Any]) -> None:
    """Put a configuration in its place among those that the file has."""
    try:
        before = {each["name"]: each for each in json.loads(file.read_text())}
    except FileNotFoundError:
        before = {}
    before[one["name"]] = one
    rows = [before[name] for name in BY_NAME if name in before]
    fresh = file.with_name(f".{file.name}")
    fresh.write_text(json.dumps(rows, indent=1) + "\n")
    fresh.replace(file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="these only")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="the same")
    parser.add_argument("--prompts", type=int, default=WORK.prompts_per_repeat)
    parser.add_argument("--tokens", type=int, default=WORK.max_new_tokens)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    work = replace(WORK, prompts_per_repeat=args.prompts, max_new_tokens=args.tokens)
    names = {*args.names, *args.only}
    if unknown := sorted(names - BY_NAME.keys()):
        parser.error(f"{', '.join(unknown)}: there are {', '.join(BY_NAME)}")
    if not os.environ.get(INTERPRETER):
        setup = subprocess.run(
            [ROOT / "bin" / "setup-sglang-cpu"], capture_output=True, text=True, check=True
        )
        os.environ[INTERPRETER] = setup.stdout.splitlines()[-1]
    found: list[dict[str, Any]] = []
    print(HEADING, flush=True)
    for configuration in CONFIGURATIONS:
        if names and configuration.name not in names:
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="specdebug-") as folder:
            result = compare(configuration, Path(folder), work)
        seconds = round(time.monotonic() - begin, 1)
        found.append({**asdict(result), "equal": result.equal, "seconds": seconds})
        print(in_a_line(result, seconds), flush=True)
        if args.json:
            _keep(args.json, found[-1])
    equal = sum(one["requests"] for one in found if one["equal"])
    print(f"{equal} of {sum(one['requests'] for one in found)} requests are equal in all three")
    return 0 if all(one["equal"] for one in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
