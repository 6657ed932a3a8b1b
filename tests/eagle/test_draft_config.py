"""Draft and target configs as they come: nested, misspelled, half-filled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.eagle.draft_config import DraftConfig, TargetConfig

IDS = "eagle_aux_hidden_state_layer_ids"
DRAFT = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 7168,
    "num_hidden_layers": 1,
    "num_attention_heads": 64,
    "vocab_size": 163840,
    "draft_vocab_size": 32000,
    "max_position_embeddings": 262144,
    "rope_theta": 50000.0,
    "tie_word_embeddings": False,
    "eagle_config": {"use_aux_hidden_state": True, IDS: [2, 30, 58]},
}


def test_a_plain_draft_gives_its_ids_and_no_problem() -> None:
    draft = DraftConfig.from_dict(DRAFT)
    assert draft.aux_layer_ids == (2, 30, 58)
    assert draft.aux_source == "eagle_config"
    assert (draft.is_eagle3, draft.is_mla, draft.aux_count) == (True, False, 3)
    assert (draft.problems, draft.unknown_keys) == ((), ())


def test_ids_at_the_top_level_are_not_read_and_named() -> None:
    draft = DraftConfig.from_dict({**DRAFT, "eagle_config": {}, IDS: [1, 29, 57]})
    assert draft.aux_layer_ids is None
    assert draft.written_aux_layer_ids == (1, 29, 57)
    assert draft.aux_source == "top-level"
    assert "does not look" in draft.problems[0].message


@pytest.mark.parametrize(
    "key",
    ["eagle_aux_hidden_states_layer_ids", "aux_hidden_state_layer_ids", "eagle_aux_layer_ids"],
)
def test_a_misspelled_key_is_named_with_the_right_one(key: str) -> None:
    draft = DraftConfig.from_dict({**DRAFT, "eagle_config": {key: [1, 29, 57]}})
    assert (draft.aux_layer_ids, draft.aux_source) == (None, "misspelled")
    assert draft.aux_key == f"eagle_config.{key}"
    assert IDS in draft.problems[0].fix


@pytest.mark.parametrize("bad", [[], "1,29", ["1", "29"], [1.5, 2], [True, False], {"a": 1}])
def test_ids_that_are_no_layer_numbers_are_malformed(bad: object) -> None:
    draft = DraftConfig.from_dict({**DRAFT, "eagle_config": {IDS: bad}})
    assert (draft.aux_layer_ids, draft.aux_source) == (None, "malformed")
    assert draft.problems


def test_an_eagle_config_that_is_no_object_is_malformed_and_a_missing_one_absent() -> None:
    assert DraftConfig.from_dict({**DRAFT, "eagle_config": [1]}).aux_source == "malformed"
    bare = {key: value for key, value in DRAFT.items() if key != "eagle_config"}
    assert DraftConfig.from_dict(bare).aux_source == "absent"
    assert DraftConfig.from_dict(bare).problems == ()


def test_unknown_keys_and_norm_switches_are_kept() -> None:
    draft = DraftConfig.from_dict({**DRAFT, "norm_before_fc": True, "my_own_key": 1})
    assert draft.norm_flags == {"norm_before_fc": True}
    assert draft.unknown_keys == ("my_own_key",)
    assert draft.raw["my_own_key"] == 1


def test_the_number_of_states_follows_the_config_then_the_ids() -> None:
    assert DraftConfig.from_dict({**DRAFT, "num_aux_hidden_states": 5}).aux_count == 5
    four = DraftConfig.from_dict({**DRAFT, "eagle_config": {IDS: [1, 2, 3, 4]}})
    assert four.aux_count == 4
    assert DraftConfig.from_dict({"hidden_size": 4}).aux_count == 3


def test_a_speculators_layout_is_read_and_named() -> None:
    draft = DraftConfig.from_dict(
        {
            "speculators_model_type": "eagle3",
            "transformer_layer_config": {"hidden_size": 64, "rope_parameters": {"rope_theta": 5.0}},
            IDS: [2, 30, 58],
        }
    )
    assert (draft.hidden_size, draft.rope_theta, draft.aux_source) == (64, 5.0, "top-level")
    assert any(problem.key == "transformer_layer_config" for problem in draft.problems)


def test_wrong_types_are_left_out_and_named() -> None:
    draft = DraftConfig.from_dict({**DRAFT, "hidden_size": "7168", "rope_theta": "x"})
    assert (draft.hidden_size, draft.rope_theta) == (None, None)
    assert {problem.key for problem in draft.problems} == {"hidden_size", "rope_theta"}
    with pytest.raises(ValueError, match="object"):
        DraftConfig.from_dict([1])  # type: ignore[arg-type]


def test_a_multimodal_target_is_read_from_its_text_config() -> None:
    target = TargetConfig.from_dict(
        {
            "architectures": ["KimiK25ForConditionalGeneration"],
            "model_type": "kimi_k25",
            "hidden_size": 1,
            "text_config": {
                "model_type": "kimi_k2",
                "num_hidden_layers": 61,
                "hidden_size": 7168,
                "kv_lora_rank": 512,
            },
        }
    )
    assert (target.num_hidden_layers, target.hidden_size) == (61, 7168)
    assert (target.model_type, target.text_model_type) == ("kimi_k25", "kimi_k2")
    assert (target.is_mla, target.nested_in) == (True, "text_config")


def test_a_plain_target_is_read_from_the_top() -> None:
    target = TargetConfig.from_dict({"architectures": ["LlamaForCausalLM"], "hidden_size": 64})
    assert (target.hidden_size, target.is_mla, target.nested_in) == (64, False, None)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["eagle_config", IDS, "text_config", "hidden_size", "x"]),
                inner,
                max_size=4,
            ),
        ),
        max_leaves=12,
    ).filter(lambda value: isinstance(value, dict))
)
def test_of_any_object_only_what_has_the_right_type_is_kept(data: dict[str, object]) -> None:
    draft, target = DraftConfig.from_dict(data), TargetConfig.from_dict(data)
    for hidden in (draft.hidden_size, target.hidden_size):
        assert hidden is None or type(hidden) is int
    for ids in (draft.aux_layer_ids, draft.written_aux_layer_ids):
        assert ids is None or all(type(layer) is int for layer in ids)
    assert draft.aux_count > 0
    assert draft.raw == data
