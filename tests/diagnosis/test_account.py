import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdebug.diagnosis.account import (
    DraftRun,
    account_of,
    accounts_by_batch,
    crossover,
    draft_runs,
    gaps_of,
    missing_run,
)
from specdebug.diagnosis.facts import Measured, case_from_rows

PLAIN = DraftRun("R0", 0, (90.0,))
R1 = DraftRun("R1", 1, (56.8,), 1.6)
R2 = DraftRun("R2", 15, (46.7,), 1.9)


def test_the_storys_three_figures_give_its_account() -> None:
    found = account_of([PLAIN, R1, R2])
    assert found is not None
    assert found.overhead is not None
    assert found.overhead.value == pytest.approx(16.2, abs=0.05)
    assert found.fit.slope.value == pytest.approx(0.89, abs=0.01)
    assert "assumed" in found.spread
    assert found.best().num_steps == 3
    assert found.best().tok_s.high < 90, "depth alone cannot reach the goal"
    assert found.depth(1).tok_s.low < 56.8 < found.depth(1).tok_s.high


def test_repeats_give_the_ranges_their_own_spread() -> None:
    rich = account_of(
        [
            DraftRun("R0", 0, (90.0, 91.0, 89.5)),
            DraftRun("R1", 1, (56.8, 57.1, 56.2), 1.6),
            DraftRun("R2", 15, (46.7, 46.9, 46.1), 1.9),
        ]
    )
    assert rich is not None
    assert "6 d.f." in rich.spread
    assert "assumed: nothing" not in rich.spread


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        ([], "speculative run"),
        ([PLAIN, R2], "num_steps (for example 1)"),
        ([PLAIN, R1, DraftRun("R3", 15, (54.8,))], "the accept length of R3"),
        ([R1, R2], "without speculation"),
        ([PLAIN, DraftRun("a", 2, (50.0,), 1.8), R2], "first draft position"),
        ([PLAIN, R1, R2], "num_steps 4"),
    ],
)
def test_the_run_that_would_identify_the_missing_term_is_named(
    runs: list[DraftRun], names: str
) -> None:
    assert names in (missing_run(runs) or "")


def test_three_depths_and_a_baseline_lack_nothing() -> None:
    assert missing_run([PLAIN, R1, DraftRun("R", 4, (60.0,), 1.88), R2]) is None


def test_each_batch_size_has_an_account_of_its_own_and_the_gain_ends_where_they_say() -> None:
    runs = []
    for batch, plain, one, deep in ((1.0, 90, 130, 120), (32.0, 2000, 1800, 1500)):
        runs += [
            DraftRun("p", 0, (plain,), None, batch),
            DraftRun("a", 1, (one,), 1.7, batch),
            DraftRun("b", 4, (deep,), 2.4, batch),
        ]
    accounts = accounts_by_batch(runs)
    assert [a.running for a in accounts] == [1.0, 32.0]
    ends = crossover(accounts)
    assert ends is not None
    assert 1 < ends < 32
    assert crossover(accounts[:1]) is None


def test_runs_of_a_case_are_those_of_one_load_with_their_repeats() -> None:
    case = case_from_rows(
        runs=[
            Measured("R0", "rows", speculative=False, tok_s=(90.0, 91.0)),
            Measured("R1", "rows", num_steps=1, topk=1, tok_s=(56.8, 56.0), accept_len=1.6),
            Measured("R2", "rows", num_steps=15, topk=1, tok_s=(46.7,), accept_len=1.9),
            Measured("tree", "rows", num_steps=4, topk=4, tok_s=(70.0,), accept_len=2.4),
        ]
    )
    found = draft_runs(case)
    assert [(r.label, r.num_steps) for r in found] == [("R0", 0), ("R1", 1), ("R2", 15)]
    assert found[0].tok_s == (90.0, 91.0)


def simulated(draw: random.Random, steps: int, cv: float = 0.02, passes: int = 2000) -> DraftRun:
    """A run of an engine with a plain step of 10 ms, 4 ms overhead and 0.8 ms a draft step."""
    if steps == 0:
        return DraftRun("plain", 0, tuple(100 * math.exp(draw.gauss(0, cv)) for _ in range(3)))
    counts = [0] * (steps + 1)
    for _ in range(passes):
        k = 0
        while k < steps and draw.random() < (0.62 if k == 0 else 0.7):
            k += 1
        counts[k] += 1
    length = 1 + sum(k * c for k, c in enumerate(counts)) / passes
    step = 14.0 + 0.8 * steps
    tok_s = [1000 * length / step * math.exp(draw.gauss(0, cv)) for _ in range(3)]
    return DraftRun.with_histogram(f"n={steps}", steps, tok_s, length, counts)


def test_three_runs_predict_every_depth_of_a_simulated_engine() -> None:
    inside = total = 0
    for seed in range(20):
        draw = random.Random(seed)
        account = account_of([simulated(draw, n) for n in (0, 1, 8)])
        assert account is not None
        for n in range(1, 9):
            run = simulated(draw, n)
            found = account.depth(n).tok_s
            inside += found.low <= sum(run.tok_s) / 3 <= found.high
            total += 1
        best = account.best()
        truth = max(range(1, 9), key=lambda n: (1 + 0.62 * (1 - 0.7**n) / 0.3) / (14 + 0.8 * n))
        assert truth in account.as_good(), f"best {best.num_steps}, truth {truth}"
        assert len(account.as_good()) < 8, "a range that tells nothing apart predicts nothing"
    assert inside / total >= 0.95


FIGURE = st.floats(10, 500)


@settings(deadline=None, max_examples=50)
@given(FIGURE, FIGURE, st.floats(1, 2), st.floats(1, 8), st.integers(2, 16), st.booleans())
def test_the_parts_of_every_gap_add_up_and_lie_in_their_ranges(
    base: float, measured: float, first: float, length: float, steps: int, two_depths: bool
) -> None:
    runs = [DraftRun("base", 0, (base,)), DraftRun("one", steps, (measured,), length)]
    if two_depths:
        runs.insert(1, DraftRun("first", 1, (measured * 1.1,), first))
    found = gaps_of(runs)
    assert [g.run for g in found] == [r.label for r in runs if r.num_steps]
    for gap in found:
        total = gap.baseline_tok_s + sum(p.tok_s.value for p in gap.parts)
        assert total == pytest.approx(gap.measured_tok_s)
        assert gap.parts[-1].reached == pytest.approx(gap.measured_tok_s)
        for part in gap.parts:
            assert part.tok_s.low <= part.tok_s.value <= part.tok_s.high
        assert len(gap.parts) == (2 if gap.note else 3)


def test_most_of_the_storys_gap_is_neither_acceptance_nor_drafting() -> None:
    one, deep = gaps_of([PLAIN, R1, R2])
    assert [round(p.tok_s.value, 1) for p in one.parts] == [54.0, -4.6, -82.6]
    assert one.parts[2].tok_s.high < -70
    assert one.note == ""
    assert one.break_even == pytest.approx(2.535, abs=0.001)
    drafting, rest = deep.parts[1:]
    shared = drafting.tok_s.value / (drafting.tok_s.value + rest.tok_s.value)
    assert shared == pytest.approx(13.41 / 29.57, abs=0.001)


def test_a_longer_step_stays_in_one_part_where_nothing_can_share_it_out_and_says_why() -> None:
    (alone,) = gaps_of([PLAIN, R1])
    assert alone.note.startswith("one num_steps only")
    (tree,) = gaps_of([PLAIN, DraftRun("t", 4, (70.0,), 2.4, chain=False)])
    assert tree.note.startswith("a tree")
    (short,) = gaps_of([PLAIN, DraftRun("s", 1, (180.0,), 1.6)])
    assert short.note.startswith("the step is no longer")
    for gap in (alone, tree, short):
        loss = gap.parts[1].tok_s
        assert loss.low < loss.value < loss.high


def test_without_a_plain_run_or_an_accept_length_there_is_no_gap() -> None:
    assert gaps_of([R1, R2]) == ()
    assert gaps_of([PLAIN, DraftRun("R3", 15, (54.8,))]) == ()
