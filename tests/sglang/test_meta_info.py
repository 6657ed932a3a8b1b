"""Per-request acceptance: one run, several accept lengths, every one named."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.meta_info import from_mapping, pool, pool_histogram, read_meta_info

DATA = Path(__file__).parents[1] / "data" / "sglang"


def test_a_real_answer_gives_counts_and_histogram() -> None:
    (request,) = read_meta_info((DATA / "generate_steps1.json").read_bytes())
    assert (request.completion_tokens, request.verify_ct) == (64, 40)
    assert (request.accepted, request.proposed) == (23, 40)
    assert request.histogram == (17, 23)
    assert request.reported_len == 1.6
    assert request.output_ids is not None
    assert len(request.output_ids) == 64


def test_one_request_has_several_accept_lengths() -> None:
    pooled = pool(read_meta_info((DATA / "generate_steps15.json").read_bytes()))
    lengths = {name: round(found.value, 3) for name, found in pooled.lengths.items()}
    assert lengths == {
        "histogram": 1.703,
        "tokens_after_first": 1.703,
        "completion": 1.73,
        "mean_of_requests": 1.73,
        "accepted": 1.703,
    }
    assert all(found.formula for found in pooled.lengths.values())
    assert pooled.conditional[0] == pytest.approx(21 / 37)


def test_an_answer_without_speculation_is_left_out_and_no_answer_is_named() -> None:
    assert read_meta_info((DATA / "generate_plain.json").read_bytes()) == []
    with pytest.raises(ValueError, match="meta_info"):
        read_meta_info('{"a": 1}')


def test_names_of_every_release_are_read() -> None:
    newer = {
        "completion_tokens": 10,
        "spec_verify_ct": 4,
        "spec_num_correct_drafts": 5,
        "spec_num_proposed_drafts": 12,
        "spec_correct_drafts_histogram": [1, 1, 2],
    }
    middle = {
        "completion_tokens": 10,
        "spec_verify_ct": 4,
        "spec_accepted_drafts": 5,
        "spec_proposed_drafts": 12,
    }
    for meta in (newer, middle):
        request = from_mapping({"text": "", "meta_info": meta})
        assert request is not None
        assert (request.accepted, request.proposed) == (5, 12)


def test_json_lines_and_lists_are_read() -> None:
    answer = {"text": "", "meta_info": {"completion_tokens": 10, "spec_verify_ct": 5}}
    lines = "\n".join(json.dumps(answer) for _ in range(3))
    assert len(read_meta_info(lines)) == 3
    assert len(read_meta_info(json.dumps([answer, answer]))) == 2


def test_pooling_sums_counts_and_does_not_average_ratios() -> None:
    rows = [
        from_mapping({"completion_tokens": 100, "spec_verify_ct": 50}),
        from_mapping({"completion_tokens": 10, "spec_verify_ct": 10}),
    ]
    pooled = pool([row for row in rows if row])
    assert pooled.lengths["completion"].value == pytest.approx(110 / 60)
    assert pooled.lengths["mean_of_requests"].value == pytest.approx(1.5)
    assert pooled.verifies == 60
    assert "histogram" not in pooled.lengths


def test_conditional_acceptance_is_the_ratio_of_tails() -> None:
    pooled = pool_histogram([40, 30, 20, 10])
    assert pooled.tail == pytest.approx((0.6, 0.3, 0.1))
    assert pooled.conditional == pytest.approx((0.6, 0.5, 1 / 3))
    assert pooled.reached == (100, 60, 30)
    assert pooled.lengths["histogram"].value == pytest.approx(2.0)


def test_positions_never_reached_have_no_rate() -> None:
    pooled = pool_histogram([9, 1, 0, 0])
    assert pooled.conditional == pytest.approx((0.1, 0.0))
    assert pool_histogram([]).conditional == ()
    assert pool([]).lengths == {}


def test_impossible_counts_are_refused() -> None:
    assert from_mapping({"completion_tokens": 10, "spec_verify_ct": 0}) is None
    assert from_mapping({"completion_tokens": "x", "spec_verify_ct": 4}) is None
    request = from_mapping(
        {"completion_tokens": 10, "spec_verify_ct": 4, "spec_accept_histogram": [1, -1]}
    )
    assert request is not None
    assert request.histogram is None


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20).filter(any))
def test_the_chain_product_gives_back_the_accept_length(histogram: list[int]) -> None:
    pooled = pool_histogram(histogram)
    product, total = 1.0, 1.0
    for rate in pooled.conditional:
        product *= rate
        total += product
    assert total == pytest.approx(pooled.lengths["histogram"].value)


@given(st.binary(max_size=500))
def test_bytes_are_answers_with_verifications_or_a_clear_error(data: bytes) -> None:
    try:
        found = read_meta_info(data)
    except ValueError as error:
        said = str(error)
    else:
        said = f"{len(found)} answers with verifications"
        assert all(request.verify_ct >= 0 for request in found)
    assert len(said) > 20
