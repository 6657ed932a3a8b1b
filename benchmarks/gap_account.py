"""Does the cost account predict the best num_steps from three runs? Asked of the reference engine.

`python benchmarks/gap_account.py [--seeds 0 1 2 3 4] [--json FILE]`. For each seed: other prompts,
and by turns the right and the wrong layers. Three runs are measured (plain, the shallowest and the
deepest depth), the account predicts throughput with its range at every depth, and a sweep over all
depths, measured afterwards and interleaved, is held against it. In process; prefill included, as in
a run's own figure. Counted are the process's CPU seconds, which on a quiet machine are the wall's
(`--clock wall` counts those): with neighbours on the machine the wall measures them.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from specdebug.diagnosis.account import DraftRun, account_of
from specdebug.eagle.account import Account, Depth
from specdebug.reference import checkpoint, release, tokenizer, variants
from specdebug.reference.decode import ChainDecoder, Decoder, PlainDecoder, generate

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ((0, 2, 6), (2, 6, 10))


class Bench:
    """The engine with one set of prompts; a decoder per depth, 0 is plain."""

    def __init__(self, seed: int, prompts: int, length: int, clock: str = "wall") -> None:
        self.now = time.process_time if clock == "cpu" else time.perf_counter
        draw = random.Random(seed)
        target = checkpoint.load_target(variants.TARGET)
        draft = checkpoint.load_draft(variants.DRAFT, target)
        vocabulary = tokenizer.load(variants.TARGET)
        lines = (ROOT / "workers/prompts/stdlib.jsonl").read_text().splitlines()
        texts = [json.loads(line)["text"] for line in lines]
        ids = [vocabulary.encode(text).ids for text in draw.sample(texts, min(prompts, len(texts)))]
        # Cut at other places for each seed: other text is continued.
        self.prompts = [prompt[: draw.randint(len(prompt) // 2, len(prompt))] for prompt in ids]
        self.length, self.layers = length, LAYERS[seed % 2]
        self.target, self.draft = target, draft
        self.decoders: dict[int, Decoder] = {0: PlainDecoder(target)}

    def decoder(self, steps: int) -> Decoder:
        """The decoder of a depth, made when it is first asked for."""
        if steps not in self.decoders:
            self.decoders[steps] = ChainDecoder(
                self.target,
                self.draft,
                hidden_states=self.layers,
                num_steps=steps,
                position_offset=release.RELEASES[release.DEFAULT].draft_position_offset,
            )
        return self.decoders[steps]

    def once(self, steps: int) -> tuple[float, float, list[int]]:
        """tok/s of one pass over the prompts, accept length, histogram."""
        decoder, histogram, cycles, seconds = self.decoder(steps), [0] * (steps + 1), 0, 0.0
        for prompt in self.prompts:
            started = self.now()
            generate(decoder, prompt, self.length)
            seconds += self.now() - started
            cycles += decoder.counts.cycles
            for k, number in enumerate(decoder.counts.histogram):
                histogram[k] += number
        tokens = len(self.prompts) * self.length
        return tokens / seconds, (tokens - len(self.prompts)) / cycles, histogram

    def runs(self, depths: Sequence[int], repeats: int, draw: random.Random) -> list[DraftRun]:
        """Each depth `repeats` times, interleaved in a new order each time, after a warm-up."""
        tok_s: dict[int, list[float]] = {steps: [] for steps in depths}
        lengths: dict[int, float] = {}
        histograms: dict[int, list[int]] = {}
        for turn in range(repeats + 1):
            for steps in draw.sample(list(depths), len(depths)):
                speed, lengths[steps], histograms[steps] = self.once(steps)
                if turn:
                    tok_s[steps].append(speed)
        return [
            DraftRun.with_histogram(f"n={n}", n, tok_s[n], lengths[n], histograms[n])
            if n
            else DraftRun("plain", 0, tuple(tok_s[n]))
            for n in depths
        ]


@dataclass
class Row:
    """One depth of one seed: predicted and measured tok/s and accept length."""

    num_steps: int
    predicted: float
    low: float
    high: float
    measured: float
    accept_predicted: float
    accept_measured: float
    step_predicted: float
    step_measured: float

    @property
    def inside(self) -> bool:
        return self.low <= self.measured <= self.high


@dataclass
class Seed:
    """One seed's verdict. as_good: depths that the account does not tell apart from its best.

    best_holds: the best measured depth is among them, or the predicted best is no slower than it
    beyond what two runs of one depth differ by.
    """

    seed: int
    layers: tuple[int, ...]
    predicted_best: int
    measured_best: int
    as_good: tuple[int, ...]
    best_holds: bool
    spread: str
    rows: list[Row] = field(default_factory=list)


def judge(seed: int, layers: tuple[int, ...], account: Account, sweep: list[DraftRun]) -> Seed:
    """Hold the sweep against the account."""
    rows = [_row(account.depth(run.num_steps), run) for run in sweep]
    best = max(rows, key=lambda r: r.measured)
    predicted = account.best()
    chosen = next(r for r in rows if r.num_steps == predicted.num_steps)
    noise = 2 * account.new_run * best.measured
    good = account.as_good()
    holds = best.num_steps in good or chosen.measured >= best.measured - noise
    return Seed(
        seed,
        layers,
        predicted.num_steps,
        best.num_steps,
        good,
        holds,
        account.spread,
        rows,
    )


def _row(depth: Depth, run: DraftRun) -> Row:
    return Row(
        run.num_steps,
        depth.tok_s.value,
        depth.tok_s.low,
        depth.tok_s.high,
        statistics.fmean(run.tok_s),
        depth.accept_len.value,
        run.accept_len or 0.0,
        depth.step_ms.value,
        run.step_ms or 0.0,
    )


def measure(seed: int, args: argparse.Namespace) -> Seed:
    """Three runs, the prediction, and then the sweep."""
    depths = sorted(set(args.steps))
    bench = Bench(seed, args.prompts, args.length, args.clock)
    draw = random.Random(1000 + seed)
    three = bench.runs([0, depths[0], depths[-1]], args.repeats, draw)
    account = account_of(three)
    if account is None:
        raise SystemExit("three runs gave no account")
    best = account.best()
    sys.stdout.write(
        f"seed {seed}: three runs say num_steps {best.num_steps}, {best.tok_s.low:.0f} to "
        f"{best.tok_s.high:.0f} tok/s; the sweep follows\n"
    )
    sys.stdout.flush()
    swept = sorted({*depths, best.num_steps})
    return judge(seed, bench.layers, account, bench.runs(swept, args.repeats, draw))


def main() -> int:
    """Measure and print; status 1 where a seed does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6, 8])
    parser.add_argument("--prompts", type=int, default=6)
    parser.add_argument("--length", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="cpu")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    args = parser.parse_args()
    torch.set_num_threads(1)
    seeds = []
    for number in args.seeds:
        seeds.append(found := measure(number, args))
        inside = sum(r.inside for r in found.rows)
        sys.stdout.write(
            f"seed {number}, layers {list(found.layers)}: predicted best num_steps "
            f"{found.predicted_best} (not told apart: {list(found.as_good)}), measured "
            f"{found.measured_best} "
            f"({'holds' if found.best_holds else 'DOES NOT HOLD'}); "
            f"{inside} of {len(found.rows)} inside; spread {found.spread}\n"
        )
        for r in found.rows:
            sys.stdout.write(
                f"  {r.num_steps:2}  predicted {r.predicted:6.0f} ({r.low:.0f} to {r.high:.0f})  "
                f"measured {r.measured:6.0f}{'' if r.inside else '  OUTSIDE'}   accept length "
                f"{r.accept_predicted:.2f} / {r.accept_measured:.2f}   step "
                f"{r.step_predicted:.2f} / {r.step_measured:.2f} ms\n"
            )
        sys.stdout.flush()
    rows = [r for s in seeds for r in s.rows]
    sys.stdout.write(
        f"in all: {sum(r.inside for r in rows)} of {len(rows)} measured depths inside their range, "
        f"the best depth held in {sum(s.best_holds for s in seeds)} of {len(seeds)} seeds\n"
    )
    if args.json:
        args.json.write_text(json.dumps([asdict(s) for s in seeds], indent=1) + "\n")
    return int(not all(s.best_holds and all(r.inside for r in s.rows) for s in seeds))


if __name__ == "__main__":
    raise SystemExit(main())
