"""Figures and flags that no server has: nothing crashes or hangs, the answer is valid JSON."""

import json
import random

import pytest

from specdebug.diagnosis.diagnose import diagnose, to_json
from specdebug.diagnosis.facts import Input
from specdebug.diagnosis.gather import build_case
from specdebug.measure.acceptance import chain_accept_len, iid_accept_len

GIVEN = ("-1", "0", "1", "2", "999999999999", "1e9", "nan", "x", "''", "-0.5", "")
PRINTED = ("0", "0.00", "1", "-1", "4.5", "nan", "1e308", "9" * 21, "0.5")
WRITTEN = ("0", "-1", "1", "0.5", "56", "1e400", "null", '"x"')
FLAGS = (
    "--speculative-num-steps",
    "--speculative-eagle-topk",
    "--speculative-num-draft-tokens",
    "--max-running-requests",
    "--cuda-graph-max-bs",
    "--page-size",
    "--tp",
    "--context-length",
    "--mem-fraction-static",
)
DECODE = (
    "[2026-01-19 11:30:{:02d} TP0] Decode batch, #running-req: {}, #token: {}, token usage: {}, "
    "accept len: {}, accept rate: {}, cuda graph: True, gen throughput (token/s): {}, "
    "#queue-req: {}\n"
)


def absurd(rng: random.Random) -> list[Input]:
    """A command, decode lines, notes and a benchmark row, or some of them."""
    asked = " ".join(f"{flag} {rng.choice(GIVEN)}" for flag in rng.sample(FLAGS, 4))
    log = "".join(DECODE.format(n, *(rng.choice(PRINTED) for _ in range(7))) for n in range(8))
    row = ("output_throughput", "accept_length", "duration", "completed", "max_concurrency")
    bench = ", ".join(f'"{key}": {rng.choice(WRITTEN)}' for key in row)
    base, load, accuracy = (rng.choice(WRITTEN) for _ in range(3))
    inputs = [
        Input("c", f"sglang serve --speculative-algorithm EAGLE3 {asked}".encode()),
        Input("l", log.encode()),
        Input("b.jsonl", f"{{{bench}}}\n".encode()),
        Input(
            "notes.json",
            f'{{"baseline_tok_s": {base}, "concurrency": {load}, '
            f'"training": {{"val_accuracy": {accuracy}}}}}'.encode(),
        ),
    ]
    return rng.sample(inputs, rng.randrange(1, 5))


@pytest.mark.usefixtures("both_ways")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", range(6))
def test_figures_that_no_server_has_crash_and_hang_nothing(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        found = diagnose(build_case(absurd(rng)))
        assert all(given.summary or given.unusable for given in found.inputs)
        json.dumps(to_json(found), allow_nan=False)


def test_a_chain_too_deep_to_count_has_the_sum_of_its_series() -> None:
    assert iid_accept_len(0.5, 10**12) == pytest.approx(2)
    assert iid_accept_len(1.0, 10**12) == 10**12 + 1
    assert chain_accept_len([0.6, 0.5], 10**12) == pytest.approx(1 + 0.6 + 0.6 * 0.5 / 0.5)
    assert chain_accept_len([0.6, 0.5], 3) == pytest.approx(1 + 0.6 + 0.3 + 0.15)
    assert chain_accept_len([0.6, 0.5], 1) == pytest.approx(1.6)
    assert chain_accept_len([0.6], 0) == 1
