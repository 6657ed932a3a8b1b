"""Measure the reference engine in process: accept length, speed beside plain decoding, step parts.

`python benchmarks/reference_speed.py [--json FILE]`. Every speculative run stands beside plain
decoding of the same prompt in the same minute: absolute tok/s drift by tens of percent on a shared
machine, ratios of neighbours do not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from specdebug.reference import checkpoint, release, tokenizer, variants
from specdebug.reference.decode import ChainDecoder, Decoder, PlainDecoder, generate, logit_gap

ROOT = Path(__file__).resolve().parents[1]
LAYERS = {"right [0, 2, 6]": (0, 2, 6), "wrong [2, 6, 10]": (2, 6, 10)}


@dataclass
class Row:
    """One setting over all prompts and rounds. Times are medians over requests, milliseconds.

    accept_length: 1 + accepted / cycles, last cycles whole. conditional[k]: of the cycles whose
    first k drafts were accepted, the share that accepted draft k + 1. ratio: median over prompts
    and rounds of speculative over neighbouring plain tok/s.
    """

    layers: str
    steps: int
    accept_length: float
    tok_s: float
    plain_tok_s: float
    ratio: float
    conditional: list[float]
    extend_ms: float
    draft_step_ms: float
    verify_ms: float
    plain_step_ms: float
    differing: int
    smallest_gap_at_difference: float | None


def conditional(histogram: list[int], steps: int) -> list[float]:
    """Acceptance by position, given all before were accepted; ends where nothing was tried."""
    full = histogram + [0] * (steps + 1 - len(histogram))
    reached = sum(full)
    out = []
    for k in range(steps):
        if not reached:
            break
        passed = reached - full[k]
        out.append(passed / reached)
        reached = passed
    return out


def timed(decoder: Decoder, prompt: list[int], length: int) -> tuple[list[int], float]:
    """Output and tok/s over the tokens after the first."""
    tokens = [decoder.begin(prompt)]
    started = time.perf_counter()
    while len(tokens) < length:
        tokens += decoder.cycle()
    return tokens[:length], (len(tokens) - 1) / (time.perf_counter() - started)


def measure(
    plain: PlainDecoder,
    chain: ChainDecoder,
    layers: str,
    prompts: list[list[int]],
    length: int,
    rounds: int,
) -> Row:
    """Interleave plain and speculative requests."""
    ratios, fast, slow = [], [], []
    extend, draft, verify, step = [], [], [], []
    histogram: list[int] = []
    differing, gaps = 0, []
    for turn in range(rounds):
        for prompt in prompts:
            expected, base = timed(plain, prompt, length)
            step.append(1e3 * plain.counts.seconds.verify / plain.counts.cycles)
            output, speed = timed(chain, prompt, length)
            ratios.append(speed / base)
            fast.append(speed)
            slow.append(base)
            counts = chain.counts
            extend.append(1e3 * counts.seconds.extend / counts.cycles)
            verify.append(1e3 * counts.seconds.verify / counts.cycles)
            if chain.num_steps > 1:
                tries = counts.cycles * (chain.num_steps - 1)
                draft.append(1e3 * counts.seconds.chain / tries)
            if turn:
                continue  # acceptance is the same in every round
            histogram.extend([0] * (len(counts.histogram) - len(histogram)))
            for k, number in enumerate(counts.histogram):
                histogram[k] += number
            if output != expected:
                differing += 1
                first = next(i for i in range(length) if output[i] != expected[i])
                gaps.append(logit_gap(plain.target, prompt, expected[:first]))
    cycles = sum(histogram)
    return Row(
        layers=layers,
        steps=chain.num_steps,
        accept_length=1 + sum(k * n for k, n in enumerate(histogram)) / cycles,
        tok_s=statistics.median(fast),
        plain_tok_s=statistics.median(slow),
        ratio=statistics.median(ratios),
        conditional=conditional(histogram, chain.num_steps),
        extend_ms=statistics.median(extend),
        draft_step_ms=statistics.median(draft) if draft else 0.0,
        verify_ms=statistics.median(verify),
        plain_step_ms=statistics.median(step),
        differing=differing,
        smallest_gap_at_difference=min(gaps) if gaps else None,
    )


def table(rows: list[Row]) -> str:
    """The rows as text."""
    head = f"{'layers':17} {'steps':>5} {'accept':>6} {'tok/s':>6} {'plain':>6} {'ratio':>6}"
    parts = f"{'extend':>6} {'draft':>6} {'verify':>6} {'step':>6}"
    lines = [f"{head} {parts}  acceptance by position"]
    for row in rows:
        shares = " ".join(f"{share:.2f}" for share in row.conditional[:5])
        lines.append(
            f"{row.layers:17} {row.steps:5} {row.accept_length:6.2f} {row.tok_s:6.0f} "
            f"{row.plain_tok_s:6.0f} {row.ratio:6.2f} {row.extend_ms:6.2f} "
            f"{row.draft_step_ms:6.2f} {row.verify_ms:6.2f} {row.plain_step_ms:6.2f}  {shares}"
        )
        if row.differing:
            lines.append(
                f"  {row.differing} prompts differ from plain decoding; smallest logit gap "
                f"{row.smallest_gap_at_difference:.1e}"
            )
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=variants.MODELS)
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 2, 3, 4, 5, 15])
    parser.add_argument("--length", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine-release", choices=release.RELEASES, default=release.DEFAULT)
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    args = parser.parse_args()
    torch.set_num_threads(1)
    target = checkpoint.load_target(args.models / "target")
    draft = checkpoint.load_draft(args.models / "draft", target)
    vocabulary = tokenizer.load(args.models / "target")
    lines = (ROOT / "workers/prompts/stdlib.jsonl").read_text().splitlines()
    prompts = [vocabulary.encode(json.loads(line)["text"]).ids for line in lines]
    plain = PlainDecoder(target)
    outputs = [generate(plain, prompt, args.length) for prompt in prompts]
    trigrams = [set(zip(o, o[1:], o[2:], strict=False)) for o in outputs]
    distinct = statistics.mean(len(t) / (args.length - 2) for t in trigrams)
    rows = []
    for name, states in LAYERS.items():
        for steps in args.steps:
            chain = ChainDecoder(
                target,
                draft,
                hidden_states=states,
                num_steps=steps,
                position_offset=release.RELEASES[args.engine_release].draft_position_offset,
            )
            rows.append(measure(plain, chain, name, prompts, args.length, args.rounds))
    sys.stdout.write(
        f"{len(prompts)} prompts x {args.length} tokens x {args.rounds} rounds, greedy, 1 thread, "
        f"as release {args.engine_release}; distinct trigrams {distinct:.2f}; times in ms\n"
        f"{table(rows)}\n"
    )
    if args.json:
        head = {"release": args.engine_release, "length": args.length, "rounds": args.rounds}
        content = {**head, "distinct_trigrams": distinct, "rows": [asdict(row) for row in rows]}
        args.json.write_text(json.dumps(content, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
