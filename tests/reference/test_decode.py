"""Speculative output equals plain greedy output, whatever the draft; and the counts add up."""

import pytest
import torch

from specdebug.reference.decode import ChainDecoder, PlainDecoder, generate, logit_gap
from specdebug.reference.draft import Draft
from specdebug.reference.target import Target
from tests.reference.conftest import RIGHT, WRONG, Pair

LENGTH = 24


def chain(pair: Pair, states: tuple[int, ...], steps: int, offset: int = 1) -> ChainDecoder:
    return ChainDecoder(
        pair.target, pair.draft, hidden_states=states, num_steps=steps, position_offset=offset
    )


@pytest.fixture(scope="session")
def plain(pair: Pair, prompts: list[list[int]]) -> list[list[int]]:
    decoder = PlainDecoder(pair.target)
    return [generate(decoder, prompt, LENGTH) for prompt in prompts]


@pytest.mark.parametrize("steps", [1, 3, 4, 15])
@pytest.mark.parametrize("states", [RIGHT, WRONG], ids=["right layers", "wrong layers"])
def test_speculation_changes_no_token(
    pair: Pair,
    prompts: list[list[int]],
    plain: list[list[int]],
    states: tuple[int, ...],
    steps: int,
) -> None:
    decoder = chain(pair, states, steps)
    for number, (prompt, expected) in enumerate(zip(prompts, plain, strict=True)):
        output = generate(decoder, prompt, LENGTH)
        if output != expected:
            first = next(i for i in range(LENGTH) if output[i] != expected[i])
            gap = logit_gap(pair.target, prompt, expected[:first])
            pytest.fail(f"prompt {number} differs at token {first}; logit gap {gap:.2e}")


def test_the_right_layers_are_accepted_longer_than_the_wrong_ones(
    pair: Pair, prompts: list[list[int]]
) -> None:
    def accept_length(states: tuple[int, ...]) -> float:
        decoder = chain(pair, states, 15)
        cycles = accepted = 0
        for prompt in prompts[:16]:
            generate(decoder, prompt, 48)
            cycles += decoder.counts.cycles
            accepted += decoder.counts.accepted
        return 1 + accepted / cycles

    right, wrong = accept_length(RIGHT), accept_length(WRONG)
    assert right > 2.2
    assert 1.4 < wrong < right - 0.3


def test_the_histogram_holds_every_cycle_and_every_accepted_draft(
    pair: Pair, prompts: list[list[int]]
) -> None:
    decoder = chain(pair, RIGHT, 4)
    output = generate(decoder, prompts[0], 40)
    counts = decoder.counts
    assert len(output) == 40
    assert sum(counts.histogram) == counts.cycles
    assert sum(k * n for k, n in enumerate(counts.histogram)) == counts.accepted
    # One token from the prefill, then one bonus per cycle and the accepted drafts; the last cycle
    # may run past the length.
    produced = 1 + counts.cycles + counts.accepted
    assert 40 <= produced < 40 + 5
    assert len(counts.histogram) <= 5


def test_a_draft_that_says_nonsense_costs_cycles_and_no_token(
    tiny_target: Target, tiny_draft: Draft
) -> None:
    expected = generate(PlainDecoder(tiny_target), [1, 2, 3], 20)
    decoder = ChainDecoder(
        tiny_target, tiny_draft, hidden_states=(0, 2, 4), num_steps=3, position_offset=0
    )
    assert generate(decoder, [1, 2, 3], 20) == expected
    assert decoder.counts.cycles >= 5


def test_a_perfect_draft_is_accepted_whole(tiny_target: Target, tiny_draft: Draft) -> None:
    # A target that says the successor of its last token, and a draft that knows it.
    with torch.no_grad():
        for layer in tiny_target.stack:
            layer.attention.out.weight.zero_()
            layer.mlp.down.weight.zero_()
        tiny_target.embed.weight.zero_()
        tiny_target.embed.weight[:16] = torch.eye(16)
        tiny_target.norm.weight.fill_(1)
        tiny_target.head.weight.zero_()
        for token in range(16):
            tiny_target.head.weight[(token + 1) % 16, token] = 1
        tiny_draft.fc.weight.zero_()
        tiny_draft.mlp.down.weight.zero_()
        tiny_draft.input_norm.weight.fill_(1)
        tiny_draft.hidden_norm.weight.fill_(1)
        # Every token attends to itself; its value is itself less the token that the residual holds.
        query, key, value = tiny_draft.attention.qkv.weight.chunk(3)
        query[:, :16] = key[:, :16] = 40 * torch.eye(16)
        query[:, 16:] = key[:, 16:] = 0
        value.copy_(torch.cat([torch.eye(16), -torch.eye(16)], 1))
        tiny_draft.attention.out.weight.copy_(torch.eye(16))
        tiny_draft.norm.weight.fill_(1)
        tiny_draft.head.weight.copy_(tiny_target.head.weight[:30])
    tiny_draft.set_vocabulary(torch.zeros(30, dtype=torch.long))
    decoder = ChainDecoder(
        tiny_target, tiny_draft, hidden_states=(0, 2, 4), num_steps=3, position_offset=0
    )
    output = generate(decoder, [4], 13)
    assert output == [(5 + k) % 16 for k in range(13)]
    assert decoder.counts.histogram == [0, 0, 0, 3]


def test_a_chain_may_run_past_the_last_position_before_it_is_cut(
    tiny_target: Target, tiny_draft: Draft
) -> None:
    decoder = ChainDecoder(
        tiny_target, tiny_draft, hidden_states=(0, 2, 4), num_steps=96, position_offset=1
    )
    assert generate(decoder, [5] * 40, 24) == generate(PlainDecoder(tiny_target), [5] * 40, 24)


def test_a_decoder_keeps_nothing_of_the_request_before(
    pair: Pair, prompts: list[list[int]]
) -> None:
    decoder = chain(pair, RIGHT, 4)
    first = generate(decoder, prompts[0], 20)
    counts = (decoder.counts.cycles, decoder.counts.accepted)
    generate(decoder, prompts[1], 30)
    assert generate(decoder, prompts[0], 20) == first
    assert (decoder.counts.cycles, decoder.counts.accepted) == counts


def test_the_logit_gap_is_the_distance_of_the_two_best_choices(tiny_target: Target) -> None:
    with torch.inference_mode():
        logits, _ = tiny_target(torch.tensor([[1, 2, 3]]))
    best = logits[0, -1].topk(2).values
    assert logit_gap(tiny_target, [1, 2], [3]) == pytest.approx(float(best[0] - best[1]), abs=1e-4)
