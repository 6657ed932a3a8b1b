import random
from typing import Any

import pytest

from specdebug.diagnosis import needs
from specdebug.diagnosis.checks import accepting as checks
from specdebug.diagnosis.checks import drift
from specdebug.diagnosis.facts import Case, Measured, Positions, ServerState, Training
from specdebug.diagnosis.missing import most_valuable


def by_position(*rates: float, drafts: int = 2000, length: float | None = None) -> Positions:
    return Positions("answers.json", None, "histogram", rates, drafts, "f", len(rates), length)


def wobble(middle: float, n: int, seed: int = 1, width: float = 0.15) -> list[float]:
    draw = random.Random(seed)
    return [round(max(1.0, middle + draw.uniform(-width, width)), 2) for _ in range(n)]


def test_five_dead_lines_are_a_dead_draft_from_the_first_on(make: Any) -> None:
    found = checks.dead_draft(make.case(boots=[make.boot(make.stretch([1.0] * 6))]))
    assert found is not None
    assert "from the first one on" in found.statement
    assert found.confidence == "certain"


def test_a_low_but_living_draft_is_not_dead(make: Any) -> None:
    case = make.case(boots=[make.boot(make.stretch(wobble(1.2, 20, width=0.1)))])
    assert checks.dead_draft(case) is None


def test_death_after_health_points_at_a_poisoned_state_and_is_no_decay(make: Any) -> None:
    lengths = wobble(3.0, 20) + [1.0] * 12
    # The dead requests begin anew with short contexts, so the context is not the cause.
    tokens = [500.0 + 40 * i for i in range(20)] + [300.0 + 40 * i for i in range(12)]
    case = make.case(boots=[make.boot(make.stretch(lengths, tokens=tokens))])
    found = checks.dead_draft(case)
    assert found is not None
    assert "from line 120 on and after a healthy stretch" in found.statement
    # What was ruled out is not advised.
    assert "server.log:120" in found.fix
    assert "vocabulary map" not in found.fix
    assert found.settled_by == checks.AFTER_RESTART
    gap = most_valuable(case, [found])
    assert gap is not None
    assert gap.input == checks.AFTER_RESTART
    assert drift.acceptance_decays(case) is None


def test_a_dead_rank_is_named(make: Any) -> None:
    ranks = [make.stretch(wobble(2.5, 10), rank="DP0"), make.stretch([1.0] * 10, rank="DP1")]
    found = checks.dead_draft(make.case(boots=[make.boot(*ranks)]))
    assert found is not None
    assert "DP1" in found.statement
    assert "rank DP1 is the dead one again" in found.fix
    assert "vocabulary map" not in found.fix


def test_ranks_that_are_all_dead_share_their_files(make: Any) -> None:
    ranks = [make.stretch([1.0] * 10, rank=f"DP{n}") for n in range(3)]
    found = checks.dead_draft(make.case(boots=[make.boot(*ranks)]))
    assert found is not None
    assert "likewise on 2 of the 2 others, from the first one on" in found.statement
    assert "vocabulary map" in found.fix


def test_a_cold_beginning_is_no_dead_draft(make: Any) -> None:
    case = make.case(boots=[make.boot(make.stretch([1.0] * 6 + wobble(2.5, 20)))])
    assert checks.dead_draft(case) is None


def test_a_benchmark_row_can_show_a_dead_draft_with_enough_drafts(make: Any) -> None:
    def row(drafts: int) -> Measured:
        return Measured("b", "bench", speculative=True, accept_len=1.02, tok_s=(50,), drafts=drafts)

    assert checks.dead_draft(make.case(runs=[row(5000)])) is not None
    assert checks.dead_draft(make.case(runs=[row(50)])) is None


def trained(make: Any, length: float, steps: int, accuracy: float | None = 0.747) -> Any:
    row = Measured(
        "r", "t", speculative=True, num_steps=steps, topk=1, tok_s=(50,), accept_len=length
    )
    return make.case(runs=[row], training=Training(val_accuracy=accuracy))


def test_acceptance_far_below_the_training_accuracy_is_named(make: Any) -> None:
    found = checks.acceptance_below_training(trained(make, 1.9, 15))
    assert found is not None
    assert "3.92 promised" in found.statement


@pytest.mark.parametrize(("length", "steps"), [(2.4, 3), (1.72, 1), (3.5, 15)])
def test_acceptance_near_the_promise_is_quiet(make: Any, length: float, steps: int) -> None:
    assert checks.acceptance_below_training(trained(make, length, steps)) is None


def test_without_an_accuracy_nothing_is_promised(make: Any) -> None:
    assert checks.acceptance_below_training(trained(make, 1.1, 15, None)) is None


def test_it_says_which_part_is_short(make: Any) -> None:
    recursion = make.case(
        positions=[by_position(0.74, 0.3, 0.2)],
        training=Training(val_accuracy=0.747),
        runs=[Measured("r", "t", speculative=True, num_steps=3, topk=1, accept_len=1.9)],
    )
    found = checks.acceptance_below_training(recursion)
    assert found is not None
    assert "first position is fine" in found.fix
    features = make.case(
        positions=[by_position(0.4, 0.38, 0.4)], training=Training(val_accuracy=0.747)
    )
    found = checks.acceptance_below_training(features)
    assert found is not None
    assert "First position" in found.statement or "first position" in found.statement


def referenced(make: Any, model: str, length: float) -> Any:
    row = Measured("r", "t", speculative=True, num_steps=3, topk=1, accept_len=length, tok_s=(9,))
    return make.case(requested=make.asked(model_path=model), runs=[row])


def test_below_the_public_curve_is_a_flag(make: Any) -> None:
    found = checks.acceptance_below_reference(referenced(make, "moonshotai/Kimi-K2.5", 2.2))
    assert found is not None
    assert (found.severity, found.confidence) == ("info", "possible")


def test_near_the_curve_or_without_one_nothing_is_said(make: Any) -> None:
    assert checks.acceptance_below_reference(referenced(make, "moonshotai/Kimi-K2.5", 2.6)) is None
    assert checks.acceptance_below_reference(referenced(make, "some/other", 1.2)) is None


def test_a_collapse_after_the_first_position_is_named(make: Any) -> None:
    found = checks.acceptance_collapses(make.case(positions=[by_position(0.71, 0.07, 0.08)]))
    assert found is not None
    assert found.confidence == "likely"


@pytest.mark.parametrize("rates", [(0.60, 0.50, 0.45), (0.38, 0.10, 0.1), (0.7, 0.5, 0.4)])
def test_an_ordinary_profile_is_no_collapse(make: Any, rates: tuple[float, ...]) -> None:
    assert checks.acceptance_collapses(make.case(positions=[by_position(*rates)])) is None


def test_few_drafts_prove_no_collapse(make: Any) -> None:
    case = make.case(positions=[by_position(0.71, 0.07, drafts=20)])
    assert checks.acceptance_collapses(case) is None


def test_two_depths_make_a_collapse_possible(make: Any) -> None:
    found = checks.acceptance_collapses(make.case(runs=make.story_rows()))
    assert found is not None
    assert found.confidence == "possible"
    assert "0.60" in found.statement
    assert "0.33" in found.statement


def test_a_low_first_position_is_named_between_its_bounds(make: Any) -> None:
    assert checks.first_position_low(make.case(positions=[by_position(0.08, 0.1)])) is not None
    assert checks.first_position_low(make.case(positions=[by_position(0.45, 0.3)])) is None
    assert checks.first_position_low(make.case(positions=[by_position(0.001, 0.0)])) is None
    few = make.case(positions=[by_position(0.08, drafts=30)])
    assert checks.first_position_low(few) is None


def test_a_cliff_over_the_context_is_a_decay(make: Any) -> None:
    lengths = wobble(2.6, 20) + wobble(1.2, 20, seed=2, width=0.1)
    tokens = [100.0 * k for k in range(1, 41)]
    found = drift.acceptance_decays(
        make.case(boots=[make.boot(make.stretch(lengths, tokens=tokens))])
    )
    assert found is not None
    assert "drops from" in found.statement


def test_a_steady_fall_is_a_decay(make: Any) -> None:
    tokens = [500.0 * k for k in range(1, 61)]
    lengths = [
        round(2.8 - 0.03 * t / 1000 + w - 2.8, 2)
        for t, w in zip(tokens, wobble(2.8, 60), strict=True)
    ]
    found = drift.acceptance_decays(
        make.case(boots=[make.boot(make.stretch(lengths, tokens=tokens))])
    )
    assert found is not None
    assert "per 1,000 tokens" in found.statement


@pytest.mark.parametrize("seed", range(8))
def test_noise_over_the_context_is_no_decay(make: Any, seed: int) -> None:
    lengths = wobble(2.4, 50, seed=seed, width=0.4)
    case = make.case(boots=[make.boot(make.stretch(lengths))])
    assert drift.acceptance_decays(case) is None


def test_two_ranks_with_other_lengths_and_contexts_fake_no_decay(make: Any) -> None:
    # Pooled, the rank with long contexts would look like a decay of the other.
    short = make.stretch(wobble(2.8, 20), tokens=[400.0 + 10 * k for k in range(20)], rank="DP0")
    long = make.stretch(wobble(2.3, 20, 3), tokens=[9000.0 + 10 * k for k in range(20)], rank="DP1")
    assert drift.acceptance_decays(make.case(boots=[make.boot(short, long)])) is None


def test_ranks_further_apart_than_13_to_10_are_uneven(make: Any) -> None:
    def ranks(*middles: float) -> Any:
        lines = [make.stretch(wobble(m, 12), rank=f"DP{k}") for k, m in enumerate(middles)]
        return make.case(boots=[make.boot(*lines)])

    found = drift.acceptance_uneven(ranks(1.7, 2.8, 2.5))
    assert found is not None
    assert "DP0 1.7" in found.statement
    assert drift.acceptance_uneven(ranks(2.4, 2.8, 2.6)) is None
    assert drift.acceptance_uneven(ranks(2.4)) is None


def test_the_window_that_the_rates_tell_is_held_against_the_accept_length(make: Any) -> None:
    def excerpt(length: float, **more: Any) -> Any:
        return make.case(boots=[make.boot(make.stretch([length] * 20, **more))])

    found = checks.degenerate_output(excerpt(3.97, window=4))
    assert found is not None
    assert "of at most 4" in found.statement
    assert needs.acceptance_and_window(excerpt(3.97, window=4)) is None
    assert checks.degenerate_output(excerpt(3.2, window=4)) is None
    # Without rates nothing tells the window, and the check says what it lacks.
    assert checks.degenerate_output(excerpt(3.97)) is None
    assert needs.acceptance_and_window(excerpt(3.97)) == "draft tokens in force"


def test_nearly_full_windows_look_degenerate(make: Any) -> None:
    full = make.boot(make.stretch([3.95] * 10, window=4), args=make.args(steps=3))
    found = checks.degenerate_output(make.case(boots=[full]))
    assert found is not None
    good = make.boot(make.stretch([3.4] * 10, window=4), args=make.args(steps=3))
    assert checks.degenerate_output(make.case(boots=[good])) is None


def test_longer_requests_that_accept_less_from_their_start_are_no_decay(make: Any) -> None:
    lengths: list[float] = []
    tokens: list[float] = []
    for k in range(5):
        lengths += wobble(2.8 - 0.12 * k, 12, seed=k, width=0.2)
        tokens += [300.0 * (k + 1) + 20 * i for i in range(12)]
        tokens[-1] += 1
    tokens = [t if i % 12 else 200.0 for i, t in enumerate(tokens)]
    case = make.case(boots=[make.boot(make.stretch(lengths, tokens=tokens))])
    assert drift.acceptance_decays(case) is None


def test_requests_that_each_fall_as_they_grow_are_a_decay(make: Any) -> None:
    lengths: list[float] = []
    tokens: list[float] = []
    for k in range(4):
        noise = wobble(3.0, 15, seed=k, width=0.1)
        lengths += [round(v - 0.06 * i, 2) for i, v in enumerate(noise)]
        tokens += [300.0 + 400 * i for i in range(15)]
    case = make.case(boots=[make.boot(make.stretch(lengths, tokens=tokens))])
    assert drift.acceptance_decays(case) is not None


@pytest.mark.parametrize(("spacing", "fires"), [(500.0, True), (60.0, False)])
def test_a_fall_within_a_thousand_tokens_is_no_matter_of_context(
    make: Any, spacing: float, fires: bool
) -> None:
    tokens = [900.0 + spacing * k for k in range(12)]
    lengths = [round(1.80 - 0.02 * k, 2) for k in range(12)]
    case = make.case(boots=[make.boot(make.stretch(lengths, tokens=tokens))])
    assert (drift.acceptance_decays(case) is not None) == fires


@pytest.mark.parametrize(
    ("lengths", "fires"), [((2.6, 2.5, 1.3), True), ((2.6, 2.5, 2.4), False), ((1.3,), False)]
)
def test_a_servers_own_averages_show_uneven_ranks(lengths: tuple[float, ...], fires: bool) -> None:
    state = ServerState("server_info.json", {}, rank_accept_lens=lengths)
    found = drift.acceptance_uneven(Case(states=(state,)))
    assert (found is not None) == fires
    if found is not None:
        assert found.confidence == "likely"
        assert found.settled_by


@pytest.mark.parametrize(
    ("algorithm", "steps", "topk", "tokens", "length", "full"),
    [
        ("EAGLE3", 3, 4, 16, 3.95, True),
        ("EAGLE3", 3, 4, 16, 3.5, False),
        ("EAGLE3", 1, 8, 8, 1.93, False),
        ("DFLASH", 1, 1, 16, 4.2, False),
        ("NGRAM", 1, 1, 12, 3.1, False),
    ],
)
def test_depth_bounds_a_tree_as_well_and_a_block_not_at_all(
    make: Any, algorithm: str, steps: int, topk: int, tokens: int, length: float, full: bool
) -> None:
    args = make.args(steps, topk, tokens, speculative_algorithm=algorithm)
    case = make.case(boots=[make.boot(make.stretch([length] * 30), args=args)])
    found = checks.degenerate_output(case)
    assert (found is not None) == full
    assert found is None or found.confidence == "possible"
    weak = make.case(
        boots=[make.boot(make.stretch([1.2] * 30), args=args)], training=Training(val_accuracy=0.8)
    )
    expected = algorithm == "EAGLE3" and topk == 1
    assert (checks.acceptance_below_training(weak) is not None) == expected


def test_an_uneven_rank_is_shown_by_a_line_like_its_average(make: Any) -> None:
    low = make.stretch([3.1, *[2.0] * 9], rank="DP1")
    case = make.case(boots=[make.boot(make.stretch([3.0] * 10, rank="DP0"), low)])
    found = drift.acceptance_uneven(case)
    assert found is not None
    assert "accept len: 2.00" in found.evidence[0].text
    assert "accept len: 3.00" in found.evidence[1].text
