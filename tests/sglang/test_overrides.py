# ruff: noqa: E501 - one rule a line reads as the table it is
"""Every rule of the table both ways: on a release that has it, and where it stays quiet."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.flags import Value, parse_command
from specdebug.sglang.overrides import Prediction, predict
from specdebug.sglang.releases import KNOWN, Release
from specdebug.sglang.rule_words import NUMBERS
from specdebug.sglang.rules import table


@dataclass
class Model:
    """A target or a draft, as far as rules look at it."""

    architectures: tuple[str, ...]
    num_hidden_layers: int | None = 1
    raw: dict[str, Any] = field(default_factory=dict)


def run(
    release: str,
    algorithm: str = "EAGLE3",
    *,
    target: str | None = "SomeForCausalLM",
    draft: Model | None = None,
    env: dict[str, str] | None = None,
    **flags: Value,
) -> Prediction:
    words: dict[str, Value] = {
        "steps": "speculative_num_steps",
        "topk": "speculative_eagle_topk",
        "tokens": "speculative_num_draft_tokens",
    }
    given: dict[str, Value] = {"speculative_algorithm": algorithm}
    given |= {str(words.get(name, name)): value for name, value in flags.items()}
    model = Model((target,)) if target else None
    return predict(given, model, Release.parse(release), draft=draft, env=env or {})


def fired(prediction: Prediction) -> set[str]:
    """Names of all rules that had an effect."""
    names = {value.rule for value in prediction.effective.values() if value.rule}
    names |= {rejection.rule for rejection in prediction.rejections}
    return names | {note.rule for note in prediction.notes}


CHAIN: dict[str, Value] = {"steps": 3, "topk": 1, "tokens": 4, "max_running_requests": 8}
TREE: dict[str, Value] = {"steps": 3, "topk": 2, "tokens": 6, "max_running_requests": 8}
GEMMA = Model(("Gemma4AssistantForCausalLM",))
EAGLE3 = Model(("LlamaForCausalLMEagle3",))

# rule, where it holds, where the same arguments do not set it off, how to set it off
BY_RELEASE: list[tuple[str, str, str | None, str, dict[str, Any]]] = [
    ("gemma4_draft_promotes_algorithm", "0.5.12", "0.5.11", "EAGLE", {**CHAIN, "draft": GEMMA}),
    ("max_running_requests_32", "0.4.4.post1", "0.4.5", "EAGLE", {"steps": 3, "topk": 1, "tokens": 4}),
    ("max_running_requests_48_silent", "0.5.3", "0.5.4", "EAGLE3", {"steps": 3, "topk": 1, "tokens": 4}),
    ("max_running_requests_48_logged", "0.5.4", "0.5.3", "EAGLE3", {"steps": 3, "topk": 1, "tokens": 4}),
    ("overlap_disabled_always", "0.5.3", "0.5.4", "EAGLE3", CHAIN),
    ("overlap_disabled_unless_beta_spec", "0.5.6", "0.5.7", "EAGLE3", CHAIN),
    ("overlap_disabled_unless_spec_v2", "0.5.10", "0.5.11", "EAGLE3", CHAIN),
    ("spec_v2_needs_topk1", "0.5.9", "0.5.11", "EAGLE3", {**TREE, "env": {"SGLANG_ENABLE_SPEC_V2": "1"}}),
    ("spec_v1_when_topk_gt1", "0.5.12", "0.5.13", "EAGLE3", TREE),
    ("spec_v2_only", "0.5.13", "0.5.12", "EAGLE3", {**CHAIN, "disable_overlap_schedule": True}),
    ("mixed_chunk_disabled", "0.4.7", "0.4.6", "EAGLE3", {**CHAIN, "enable_mixed_chunk": True}),
    ("mtp_draft_path_autoset", "0.4.7", "0.4.6", "EAGLE", {**CHAIN, "target": "DeepseekV3ForCausalLM", "model_path": "m"}),
    ("partial_spec_args_bare_assert", "0.5.9", "0.4.4.post1", "EAGLE", {"topk": 1}),
    ("partial_spec_args_typeerror", "0.5.2", "0.5.1", "EAGLE3", {"steps": 3}),
    ("defaults_standalone_314", "0.5.2", "0.5.1", "STANDALONE", {}),
    ("defaults_static", "0.4.4.post1", "0.4.5", "EAGLE", {}),
    ("defaults_549_all_arch", "0.4.6", "0.4.7", "EAGLE3", {}),
    ("defaults_deepseek_314", "0.4.7", "0.4.6", "EAGLE", {"target": "DeepseekV3ForCausalLM"}),
    ("defaults_fallback_548", "0.5.7", "0.5.8", "EAGLE3", {}),
    ("defaults_fallback_314", "0.5.8", "0.5.7", "EAGLE3", {}),
    ("defaults_deep_tree_548", "0.5.8", "0.5.7", "EAGLE3", {"target": "LlamaForCausalLM"}),
    ("page_size_forces_topk1", "0.4.8", "0.4.9", "EAGLE3", {**TREE, "page_size": 16}),
    ("trtllm_mha_needs_topk1", "0.5.1", "0.4.10", "EAGLE3", {**TREE, "attention_backend": "trtllm_mha"}),
    ("topk1_forces_draft_tokens", "0.4.6", "0.4.5", "EAGLE3", {**CHAIN, "tokens": 16}),
    ("topk1_no_adjust_before_046", "0.4.5", "0.4.6", "EAGLE3", {**CHAIN, "tokens": 16}),
    ("spec_page_size_flashinfer_rejected_051", "0.5.1", "0.5.2", "EAGLE3", {**CHAIN, "page_size": 16, "attention_backend": "flashinfer"}),
    ("paged_topk_unchecked_window", "0.4.9", "0.5.2", "EAGLE3", {**TREE, "page_size": 16, "attention_backend": "fa3"}),
    ("topk_gt1_paged_rejected_flashinfer_only", "0.5.5", "0.5.6", "EAGLE3", {**TREE, "page_size": 16, "attention_backend": "fa3"}),
    ("topk_gt1_paged_rejected_flashinfer_fa3", "0.5.12", "0.5.13", "EAGLE3", {**TREE, "page_size": 16, "attention_backend": "triton"}),
    ("topk_gt1_paged_rejected_tree_backends", "0.5.13", "0.5.12", "EAGLE3", {**TREE, "page_size": 16, "attention_backend": "torch_native"}),
    ("ngram_forces_topk_and_tokens", "0.5.3", None, "NGRAM", {"topk": 3}),
    ("ngram_needs_cuda", "0.5.17", "0.5.20", "NGRAM", {"device": "cpu"}),
    ("ngram_steps_from_tokens", "0.5.20", "0.5.17", "NGRAM", {"tokens": 24}),
    ("beta_spec_turns_overlap_on", "0.5.6", "0.5.4", "EAGLE", {**CHAIN, "disable_overlap_schedule": True, "env": {"SGLANG_ENABLE_SPEC_V2": "1"}}),
    ("spec_v2_off_is_synchronous", "0.5.13", "0.5.14", "EAGLE3", {**CHAIN, "env": {"SGLANG_ENABLE_SPEC_V2": "0"}}),
    ("overlap_disabled_on_cpu", "0.5.17", "0.5.16", "EAGLE3", {**CHAIN, "device": "cpu"}),
    ("pipeline_parallel_prefill_only", "0.5.23", "0.5.22", "EAGLE", {**CHAIN, "pp_size": 2}),
    ("mixed_chunk_disabled", "0.5.18", "0.5.19", "EAGLE3", {**CHAIN, "enable_mixed_chunk": True}),
    ("mixed_chunk_disabled", "0.5.18", "0.5.19", "DFLASH", {"tokens": 8, "enable_mixed_chunk": True}),
    ("mixed_chunk_disabled", "0.5.20", None, "STANDALONE", {**CHAIN, "enable_mixed_chunk": True}),
    ("ngram_paged_rejected", "0.5.10.post1", None, "NGRAM", {"page_size": 16, "attention_backend": "fa3"}),
    ("ngram_refuses_dp_attention", "0.5.10.post1", None, "NGRAM", {"enable_dp_attention": True}),
    ("standalone_refuses_dp_attention", "0.5.10.post1", None, "STANDALONE", {**CHAIN, "enable_dp_attention": True}),
    ("dflash_forces_steps_topk_1", "0.5.11", None, "DFLASH", {"steps": 3}),
    ("dflash_default_block", "0.5.11", None, "DFLASH", {}),
    ("rejection_sampling_rules", "0.5.14", "0.5.13", "EAGLE3", {**TREE, "speculative_use_rejection_sampling": True}),
    ("pipeline_parallel_incompatible", "0.5.16", "0.5.17", "EAGLE3", {**CHAIN, "pp_size": 2}),
    ("lora_incompatible", "0.5.6", "0.5.5", "EAGLE3", {**CHAIN, "enable_lora": True}),
    ("eagle3_token_map_ignored", "0.5.9", "0.5.8", "EAGLE3", {**CHAIN, "speculative_token_map": "m.pt"}),
    ("spec_reserves_memory", "0.5.13", "0.5.14", "EAGLE3", CHAIN),
    ("spec_capture_batch_sizes", "0.5.4", "0.5.3", "EAGLE3", CHAIN),
    ("eagle_algo_with_eagle3_draft", "0.4.6", "0.4.5", "EAGLE", {**CHAIN, "draft": EAGLE3}),
    ("draft_decode_position_skip", "0.5.11", "0.5.12", "EAGLE3", CHAIN),
    ("eagle3_one_layer_only", "0.5.11", "0.5.12", "EAGLE3", {**CHAIN, "draft": Model(("LlamaForCausalLMEagle3",), 2)}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "since", "outside", "algorithm", "flags"), BY_RELEASE)
def test_each_rule_holds_on_its_releases_and_no_others(
    rule: str, since: str, outside: str | None, algorithm: str, flags: dict[str, Any]
) -> None:
    assert rule in fired(run(since, algorithm, **flags))
    if outside is not None:
        assert rule not in fired(run(outside, algorithm, **flags))


# The same release, arguments that give no cause.
QUIET: list[tuple[str, str, str, dict[str, Any]]] = [
    ("gemma4_draft_promotes_algorithm", "0.5.12", "EAGLE", {**CHAIN, "draft": EAGLE3}),
    ("max_running_requests_32", "0.4.4.post1", "EAGLE", CHAIN),
    ("max_running_requests_48_silent", "0.5.3", "EAGLE3", CHAIN),
    ("max_running_requests_48_logged", "0.5.4", "EAGLE3", CHAIN),
    ("overlap_disabled_unless_beta_spec", "0.5.6", "EAGLE", {**CHAIN, "env": {"SGLANG_ENABLE_SPEC_V2": "true"}}),
    ("overlap_disabled_unless_spec_v2", "0.5.10", "EAGLE3", {**CHAIN, "env": {"SGLANG_ENABLE_SPEC_V2": "1"}}),
    ("spec_v2_turns_overlap_on", "0.5.10", "EAGLE3", CHAIN),
    ("spec_v2_needs_topk1", "0.5.9", "EAGLE3", TREE),
    ("spec_v1_when_topk_gt1", "0.5.12", "EAGLE3", CHAIN),
    ("spec_v2_only", "0.5.13", "EAGLE3", CHAIN),
    ("mixed_chunk_disabled", "0.4.7", "EAGLE3", CHAIN),
    ("mtp_draft_path_autoset", "0.4.7", "EAGLE", {**CHAIN, "target": "LlamaForCausalLM"}),
    ("partial_spec_args_bare_assert", "0.5.9", "EAGLE3", {}),
    ("partial_spec_args_typeerror", "0.5.2", "EAGLE3", CHAIN),
    ("defaults_standalone_314", "0.5.2", "STANDALONE", CHAIN),
    ("defaults_static", "0.4.4.post1", "EAGLE", CHAIN),
    ("defaults_549_all_arch", "0.4.6", "EAGLE3", CHAIN),
    ("defaults_deepseek_314", "0.5.9", "EAGLE3", {"target": "LlamaForCausalLM"}),
    ("defaults_fallback_548", "0.5.7", "EAGLE3", {"target": "DeepseekV3ForCausalLM"}),
    ("defaults_fallback_314", "0.5.8", "EAGLE3", {"target": "LlamaForCausalLM"}),
    ("defaults_deep_tree_548", "0.5.8", "EAGLE3", {"target": "Qwen3ForCausalLM"}),
    ("page_size_forces_topk1", "0.4.8", "EAGLE3", TREE),
    ("trtllm_mha_needs_topk1", "0.5.1", "EAGLE3", {**CHAIN, "attention_backend": "trtllm_mha"}),
    ("topk1_forces_draft_tokens", "0.5.9", "EAGLE3", CHAIN),
    ("topk1_forces_draft_tokens", "0.5.9", "EAGLE3", TREE),
    ("topk1_no_adjust_before_046", "0.4.5", "EAGLE3", CHAIN),
    ("spec_page_size_flashinfer_rejected_051", "0.5.1", "EAGLE3", {**CHAIN, "attention_backend": "flashinfer"}),
    ("paged_topk_unchecked_window", "0.4.9", "EAGLE3", {**CHAIN, "page_size": 16}),
    ("topk_gt1_paged_rejected_flashinfer_only", "0.5.5", "EAGLE3", {**TREE, "page_size": 16, "attention_backend": "flashinfer"}),
    ("topk_gt1_paged_rejected_flashinfer_fa3", "0.5.9", "EAGLE3", {**TREE, "page_size": 16, "attention_backend": "fa3"}),
    ("topk_gt1_paged_rejected_tree_backends", "0.5.13", "EAGLE3", {**TREE, "page_size": 16, "attention_backend": "triton"}),
    ("ngram_needs_cuda", "0.5.10.post1", "NGRAM", {"device": "cuda"}),
    ("ngram_steps_from_tokens", "0.5.20", "NGRAM", {"steps": 3}),
    ("ngram_refuses_dp_attention", "0.5.23", "NGRAM", {"enable_dp_attention": True, "dp_size": 1}),
    ("beta_spec_turns_overlap_on", "0.5.6", "EAGLE3", {**CHAIN, "disable_overlap_schedule": True, "env": {"SGLANG_ENABLE_SPEC_V2": "1"}}),
    ("overlap_disabled_unless_beta_spec", "0.5.6", "STANDALONE", {**CHAIN, "env": {"SGLANG_ENABLE_SPEC_V2": "1"}}),
    ("spec_v2_off_is_synchronous", "0.5.13", "EAGLE3", CHAIN),
    ("overlap_disabled_on_cpu", "0.5.17", "EAGLE3", {**CHAIN, "device": "cuda"}),
    ("pipeline_parallel_prefill_only", "0.5.23", "EAGLE", {**CHAIN, "pp_size": 2, "disaggregation_mode": "prefill"}),
    ("ngram_paged_rejected", "0.5.10.post1", "NGRAM", {"attention_backend": "fa3"}),
    ("ngram_refuses_dp_attention", "0.5.10.post1", "NGRAM", {}),
    ("standalone_refuses_dp_attention", "0.5.10.post1", "STANDALONE", CHAIN),
    ("dflash_forces_steps_topk_1", "0.5.11", "DFLASH", {"steps": 1, "topk": 1}),
    ("dflash_default_block", "0.5.11", "DFLASH", {"tokens": 8}),
    ("rejection_sampling_rules", "0.5.14", "EAGLE3", {**CHAIN, "speculative_use_rejection_sampling": True}),
    ("pipeline_parallel_incompatible", "0.5.9", "EAGLE3", CHAIN),
    ("lora_incompatible", "0.5.9", "EAGLE3", CHAIN),
    ("eagle3_token_map_ignored", "0.5.9", "EAGLE3", CHAIN),
    ("spec_reserves_memory", "0.5.9", "EAGLE3", {**CHAIN, "mem_fraction_static": 0.8}),
    ("spec_capture_batch_sizes", "0.5.9", "EAGLE3", {**CHAIN, "cuda_graph_bs": [1, 2]}),
    ("eagle_algo_with_eagle3_draft", "0.5.9", "EAGLE3", {**CHAIN, "draft": EAGLE3}),
    ("eagle_algo_with_eagle3_draft", "0.5.9", "EAGLE", {**CHAIN, "draft": Model(("LlamaForCausalLMEagle",))}),
    ("draft_decode_position_skip", "0.5.9", "EAGLE3", {**CHAIN, "steps": 1, "tokens": 2}),
    ("eagle3_one_layer_only", "0.5.9", "EAGLE3", {**CHAIN, "draft": EAGLE3}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "release", "algorithm", "flags"), QUIET)
def test_each_rule_stays_quiet_without_cause(
    rule: str, release: str, algorithm: str, flags: dict[str, Any]
) -> None:
    assert rule not in fired(run(release, algorithm, **flags))


def test_every_rule_with_a_condition_is_tested_here() -> None:
    tested = {row[0] for row in BY_RELEASE}
    apart = {
        "nextn_is_eagle",
        "spec_v2_turns_overlap_on",
        "spec_v2_by_default",
        "overlap_disabled_always",
    }
    assert {rule.id for rule in table().rules if rule.when} - tested - apart == set()


def test_more_draft_tokens_than_a_chain_holds_become_steps_plus_one() -> None:
    found = run("0.5.9", steps=1, topk=1, tokens=16).effective["speculative_num_draft_tokens"]
    assert (found.value, found.requested, found.origin) == (2, 16, "override")
    assert found.rule == "topk1_forces_draft_tokens"


def test_draft_tokens_left_out_of_a_chain_are_a_default_and_no_override() -> None:
    found = run("0.5.9", steps=3, topk=1).effective["speculative_num_draft_tokens"]
    assert (found.value, found.requested, found.origin) == (4, None, "default")


def test_page_size_and_topk_chain_into_draft_tokens_up_to_048() -> None:
    found = run("0.4.8", steps=3, topk=4, tokens=16, page_size=16)
    assert found.effective["speculative_eagle_topk"].value == 1
    assert found.window == 4
    assert set(found.changed) == {"speculative_eagle_topk", "speculative_num_draft_tokens"}


def test_nextn_is_rewritten_before_other_rules() -> None:
    found = run("0.5.9", "NEXTN", steps=1, topk=1, tokens=16)
    assert found.effective["speculative_algorithm"].value == "EAGLE"
    assert found.window == 2
    assert "nextn_is_eagle" not in fired(run("0.5.9", "EAGLE", **CHAIN))


def test_spec_v2_keeps_overlap_on_where_it_is_an_option() -> None:
    on = run("0.5.9", **CHAIN, env={"SGLANG_ENABLE_SPEC_V2": "True"})
    assert "disable_overlap_schedule" not in on.effective
    asked = run("0.5.9", **CHAIN, disable_overlap_schedule=True, env={"SGLANG_ENABLE_SPEC_V2": "1"})
    assert asked.effective["disable_overlap_schedule"].value is False
    assert asked.effective["disable_overlap_schedule"].rule == "spec_v2_turns_overlap_on"


def test_defaults_by_release_and_target() -> None:
    def window(release: str, target: str) -> tuple[Value, ...]:
        effective = run(release, target=target).effective
        names = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
        return tuple(effective[name].value for name in names)

    assert window("0.5.7", "KimiK25ForConditionalGeneration") == (5, 4, 8)
    assert window("0.5.9", "KimiK25ForConditionalGeneration") == (3, 1, 4)
    assert window("0.5.9", "LlamaForCausalLM") == (5, 4, 8)
    assert window("0.5.9", "DeepseekV3ForCausalLM") == (3, 1, 4)


@pytest.mark.parametrize(
    ("release", "numbers"),
    [("0.4.3.post2", (5, 8, 64)), ("0.4.3.post4", (5, 4, 8)), ("0.4.4", (5, 4, 8)), ("0.4.4.post1", (5, 4, 8))],
)  # fmt: skip
def test_the_oldest_releases_have_fixed_defaults(release: str, numbers: tuple[int, ...]) -> None:
    effective = run(release, "EAGLE", target=None).effective
    assert tuple(effective[name].value for name in NUMBERS) == numbers
    part = run(release, "EAGLE", topk=2, target=None).effective
    assert [part[name].value for name in NUMBERS] == [5, 2, numbers[2]]
    assert part["speculative_eagle_topk"].origin == "explicit"


def test_a_block_is_as_long_as_the_draft_says_and_unknown_without_its_config() -> None:
    tokens = "speculative_num_draft_tokens"
    unknown = run("0.5.11", "DFLASH")
    assert tokens not in unknown.effective
    assert "dflash_default_block" in {note.rule for note in unknown.notes}
    assert run("0.5.11", "DFLASH", draft=Model(("DFlashDraftModel",))).effective[tokens].value == 16
    for raw in ({"block_size": 8}, {"block_size": 4, "dflash_config": {"block_size": 8}}):
        told = run("0.5.11", "DFLASH", draft=Model(("DFlashDraftModel",), raw=raw))
        assert (told.effective[tokens].value, told.effective[tokens].origin) == (8, "default")


def test_defaults_for_an_unknown_target_are_left_open_and_say_what_decides() -> None:
    found = run("0.5.9", target=None)
    assert "speculative_num_steps" not in found.effective
    note = next(note for note in found.notes if note.rule == "defaults_by_target")
    assert "config.json" in note.fix


def test_a_backend_the_engine_chooses_makes_a_refusal_possible_and_not_certain() -> None:
    found = run("0.5.9", **TREE, page_size=16)
    assert found.rejections == ()
    assert any(note.why.startswith("Perhaps refused") for note in found.notes)


def test_speculative_flags_without_an_algorithm_are_noted() -> None:
    found = predict({"speculative_num_steps": 3}, release=Release.parse("0.5.9"))
    assert [note.rule for note in found.notes] == ["no_algorithm"]
    plain = predict({"tp_size": 8}, release=Release.parse("0.5.9"))
    assert (plain.notes, plain.rejections) == ((), ())
    assert plain.effective["tp_size"].origin == "explicit"


def test_what_the_argument_parser_refuses_is_refused() -> None:
    assert [r.rule for r in run("0.5.9", steps="three").rejections] == ["not_a_number"]
    assert [r.rule for r in run("0.5.1", "STANDALONE").rejections] == ["algorithm_not_yet"]
    assert [r.fix for r in run("0.5.9", "eagle3", **CHAIN).rejections] == ["write EAGLE3"]
    assert run("0.5.9", "EAGLE3", **CHAIN).rejections == ()


def test_an_unknown_release_gives_the_newest_and_every_reading() -> None:
    text = (
        "python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 "
        "--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 16"
    )
    found = predict(parse_command(text)[0])
    tokens = found.effective["speculative_num_draft_tokens"]
    assert (tokens.value, str(tokens.since)) == (2, "0.4.6")
    assert "speculative_num_draft_tokens" in found.depends_on_release
    assert "speculative_num_steps" not in found.depends_on_release
    assert found.release is None
    first, *_, last = found.readings
    assert first.effective["speculative_num_draft_tokens"].value == 16
    assert str(last.until) == "0.5.23"


def test_a_known_release_has_no_other_readings() -> None:
    found = run("0.5.9", **CHAIN)
    assert (found.readings, found.depends_on_release, found.release_known) == ((), (), True)


def test_a_release_never_read_is_judged_by_the_one_before_and_says_so() -> None:
    found = run("0.5.9.post3", steps=1, topk=1, tokens=16)
    assert (found.window, found.release_known) == (2, False)


def test_the_environment_of_the_command_counts() -> None:
    text = (
        "SGLANG_ENABLE_SPEC_V2=1 python -m sglang.launch_server --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8"
    )
    found = predict(parse_command(text)[0], release=Release.parse("0.5.9"))
    assert [rejection.rule for rejection in found.rejections] == ["spec_v2_needs_topk1"]


@given(
    st.sampled_from(KNOWN),
    st.one_of(st.none(), st.integers(1, 20)),
    st.one_of(st.none(), st.integers(1, 8)),
    st.one_of(st.none(), st.integers(1, 40)),
)
def test_a_served_chain_verifies_steps_plus_one_from_046_on(
    release: Release, steps: int | None, topk: int | None, tokens: int | None
) -> None:
    given_flags: dict[str, Value] = {
        "speculative_algorithm": "EAGLE",
        "speculative_num_steps": steps,
        "speculative_eagle_topk": topk,
        "speculative_num_draft_tokens": tokens,
    }
    asked = {name: value for name, value in given_flags.items() if value is not None}
    found = predict(asked, Model(("LlamaForCausalLM",)), release)
    if found.rejections or release < Release.parse("0.4.6"):
        return
    if "speculative_eagle_topk" not in found.effective:
        assert topk is None
        assert release < Release.parse("0.5.2")
        return
    if found.effective["speculative_eagle_topk"].value == 1:
        assert found.window == found.effective["speculative_num_steps"].value + 1  # type: ignore[operator]
    elif tokens is not None:
        assert found.window == tokens


def test_algorithms_are_taken_in_any_case_from_0512_on() -> None:
    exact = run("0.5.11", "eagle3", **CHAIN)
    assert [rejection.rule for rejection in exact.rejections] == ["algorithm_unknown"]
    later = run("0.5.12", "eagle3", **CHAIN)
    assert not later.rejections
    assert later.effective["speculative_algorithm"].value == "EAGLE3"
    assert later.changed["speculative_algorithm"].requested == "eagle3"


def test_ngram_derives_its_steps_and_keeps_the_overlap_scheduler_in_newer_releases() -> None:
    found = run("0.5.20", "NGRAM", tokens=24, speculative_ngram_max_bfs_breadth=4)
    assert found.effective["speculative_num_steps"].value == 6
    assert "disable_overlap_schedule" not in found.effective
    old = run("0.5.13", "NGRAM", tokens=24)
    assert old.effective["disable_overlap_schedule"].value is True
    assert "speculative_num_steps" not in old.effective
