"""Which hidden states a release feeds the draft."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.eagle.aux_layers import (
    captured,
    compare,
    default_ids,
    ids_for,
    meaning,
    normal,
    readings,
)
from specdebug.sglang.releases import KNOWN, Release

KIMI = "KimiK25ForConditionalGeneration"
R = Release.parse


@pytest.mark.parametrize(
    ("ids", "release", "target", "layers"),
    [
        ((2, 30, 58), "0.5.12", KIMI, (3, 31, 59)),
        ((2, 30, 58), "0.5.13", KIMI, (2, 30, 58)),
        ((1, 29, 57), "0.5.12", KIMI, (2, 30, 58)),
        ((1, 29, 57), "0.5.13", KIMI, (2, 30, 58)),
        ((2, 30, 58), "0.5.23", "Qwen3MoeForCausalLM", (3, 31, 59)),
        ((2, 30, 58), "0.4.8", "Qwen3MoeForCausalLM", (2, 30, 58)),
        (None, "0.5.9", KIMI, (2, 30, 58)),
        ((58, 2, 30), "0.5.9", KIMI, (3, 31, 59)),
        ((0, 3, 31), "0.5.14", KIMI, (0, 3, 31)),
        ((-1, 2, 30), "0.5.9", "Qwen3ForCausalLM", (0, 3, 31)),
    ],
)
def test_ids_mean_layers_by_release_and_target(
    ids: tuple[int, ...] | None, release: str, target: str, layers: tuple[int, ...]
) -> None:
    found = captured(ids, 61, target, R(release))
    assert found.inputs_of_layers == layers
    assert found.hidden_states_indices == layers
    assert (found.errors, found.not_capturable) == ((), ())


@pytest.mark.parametrize(
    ("ids", "release", "target", "lost", "error"),
    [
        ((-1, 2, 30), "0.5.9", KIMI, (-1,), "TypeError"),
        ((-1, 2, 30), "0.5.13", KIMI, (-1,), "mat1 and mat2"),
        ((-1, 2, 30), "0.5.16", KIMI, (-1,), "mat1 and mat2"),
        ((-1, 2, 30), "0.5.17", KIMI, (-1,), "captured 2 of 3"),
        ((-1, 2, 30), "0.5.21", "LlamaForCausalLM", (-1,), "TypeError"),
        ((2, 30, 60), "0.5.9", KIMI, (60,), "mat1 and mat2"),
        ((2, 2, 30), "0.5.9", KIMI, (), "mat1 and mat2"),
        ((2, 30), "0.5.9", KIMI, (), "mat1 and mat2"),
    ],
)
def test_ids_that_cannot_be_captured_are_named_with_the_servers_error(
    ids: tuple[int, ...], release: str, target: str, lost: tuple[int, ...], error: str
) -> None:
    found = captured(ids, 61, target, R(release))
    assert found.not_capturable == lost
    assert error in found.errors[0]


def test_the_default_of_a_short_target_collapses_as_it_does_in_the_real_server() -> None:
    found = captured(None, 6, "LlamaForCausalLM", R("0.5.10.post1"))
    assert found.inputs_of_layers == (2, 3)
    assert "2 states" in found.errors[0]


def test_two_states_are_enough_where_the_count_comes_from_the_config() -> None:
    assert captured((2, 30), 61, KIMI, R("0.5.12")).errors == ()


def test_an_unknown_release_has_one_reading_per_meaning() -> None:
    found = readings((2, 30, 58), 61, KIMI)
    assert [(r.since, r.until, r.inputs_of_layers) for r in found] == [
        ("0.4.6", "0.4.8", (2, 30, 58)),
        ("0.4.9", "0.5.12", (3, 31, 59)),
        ("0.5.13", None, (2, 30, 58)),
    ]
    stable = readings((1, 29, 57), 61, KIMI)
    assert {r.inputs_of_layers for r in stable} == {(2, 30, 58)}


def test_an_unknown_target_says_that_it_is_assumed() -> None:
    assert "not given" in captured((2, 30, 58), 61, None, R("0.5.9")).why
    assert "not given" not in captured((2, 30, 58), 61, KIMI, R("0.5.9")).why
    with pytest.raises(ValueError, match="at least one layer"):
        captured(None, 0, KIMI, R("0.5.9"))


def test_the_storys_fix_differs_by_release() -> None:
    features = ("embed", 3, 31)
    assert ids_for(features, 61, KIMI, R("0.5.14")).ids == (0, 3, 31)
    old = ids_for(features, 61, KIMI, R("0.5.9"))
    assert old.ids is None
    assert "TypeError" in old.why
    assert ids_for(features, 61, "Qwen3ForCausalLM", R("0.5.9")).ids == (-1, 2, 30)


@given(
    st.sets(st.integers(1, 60), min_size=3, max_size=3),
    st.sampled_from([r for r in KNOWN if r >= R("0.4.9")]),
    st.sampled_from([KIMI, "LlamaForCausalLM", "Qwen3ForCausalLM"]),
)
def test_advised_ids_capture_exactly_what_was_wanted(
    layers: set[int], release: Release, target: str
) -> None:
    advice = ids_for(sorted(layers), 61, target, release)
    assert advice.ids is not None
    found = captured(advice.ids, 61, target, release)
    assert (found.inputs_of_layers, found.errors) == (tuple(sorted(layers)), ())


@given(
    st.lists(st.integers(-3, 70), max_size=5),
    st.integers(1, 80),
    st.sampled_from(KNOWN),
    st.sampled_from([KIMI, "LlamaForCausalLM", None]),
)
def test_captured_layers_exist_and_ascend(
    ids: list[int], layers: int, release: Release, target: str | None
) -> None:
    found = captured(ids, layers, target, release)
    assert list(found.inputs_of_layers) == sorted(set(found.inputs_of_layers))
    assert all(0 <= layer < layers for layer in found.inputs_of_layers)


def test_conventions_of_other_frameworks() -> None:
    assert meaning((1, 29, 57), "specforge") == (2, 30, 58)
    assert meaning((2, 30, 58), "vllm") == (2, 30, 58)
    assert default_ids("specforge", 61) == (1, 29, 57)
    assert default_ids("specforge-before-2025-10-20", 61) == (1, 30, 57)
    assert meaning(default_ids("specforge", 61), "specforge") == default_ids("vllm", 61)


def test_features_are_hidden_states_and_bad_ones_are_named() -> None:
    assert normal(("embed", 3, 31)) == (0, 3, 31)
    for bad in ("layer3", -1, 2.5, True):
        with pytest.raises(ValueError, match="embed"):
            normal((bad,))  # type: ignore[arg-type]
    assert captured((0, 3, 31), 61, KIMI, R("0.5.14")).features == ("embed", 3, 31)


def test_training_and_serving_are_compared_slot_by_slot() -> None:
    verdicts = [slot.verdict for slot in compare(("embed", 3, 31), (3, 31, 59))]
    assert verdicts == ["missing embedding", "wrong order", "wrong order"]
    assert [slot.verdict for slot in compare((2, 30, 58), (3, 31, 59))] == ["off by one"] * 3
    assert [slot.verdict for slot in compare((2, 30, 58), (2, 30, 58))] == ["same"] * 3
    assert [slot.verdict for slot in compare((2, 30, 58), (2, 30))] == ["same", "same", "missing"]
    assert compare((2, 30, 58), (2, 40, 58))[1].verdict == "wrong layer"
