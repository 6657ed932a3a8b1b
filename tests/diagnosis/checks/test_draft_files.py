from typing import Any

import pytest

from specdebug.diagnosis.checks import draft_files as checks


def header(**shapes: list[int] | None) -> dict[str, Any]:
    """A whole EAGLE-3 header of the Kimi-like draft; None leaves a tensor out."""
    whole: dict[str, list[int] | None] = {
        "d2t": [32000],
        "t2d": [163840],
        "embed_tokens.weight": [163840, 7168],
        "fc.weight": [7168, 21504],
        "lm_head.weight": [32000, 7168],
        "midlayer.hidden_norm.weight": [7168],
        "midlayer.input_layernorm.weight": [7168],
        "midlayer.post_attention_layernorm.weight": [7168],
        "midlayer.mlp.gate_proj.weight": [18432, 7168],
        "midlayer.mlp.up_proj.weight": [18432, 7168],
        "midlayer.mlp.down_proj.weight": [7168, 18432],
        "midlayer.self_attn.q_proj.weight": [8192, 14336],
        "midlayer.self_attn.k_proj.weight": [8192, 14336],
        "midlayer.self_attn.v_proj.weight": [8192, 14336],
        "midlayer.self_attn.o_proj.weight": [7168, 8192],
        "norm.weight": [7168],
    }
    whole.update({k.replace("__", "."): v for k, v in shapes.items()})
    kinds = {"d2t": "I64", "t2d": "BOOL"}
    return {
        name: {"dtype": kinds.get(name, "BF16"), "shape": shape}
        for name, shape in whole.items()
        if shape is not None
    }


def kimi(make: Any, head: dict[str, Any] | None = None, **more: Any) -> Any:
    return make.case(
        draft_config=make.kimi_draft([1, 29, 57], **more.pop("draft", {})),
        target_config=make.kimi_target,
        header=header() if head is None else head,
        **more,
    )


def test_a_whole_checkpoint_has_no_fault(make: Any) -> None:
    case = kimi(make)
    for check in (
        checks.fc_width_mismatch,
        checks.draft_vocab_map,
        checks.draft_weights_missing,
        checks.draft_context_short,
        checks.draft_norm_unread,
    ):
        assert check(case) is None


def test_fc_of_another_width_is_named(make: Any) -> None:
    found = checks.fc_width_mismatch(kimi(make, header(fc__weight=[7168, 14336])))
    assert found is not None
    assert "14336" in found.statement
    assert "21504" in found.statement


def test_a_small_vocabulary_without_d2t_is_named(make: Any) -> None:
    found = checks.draft_vocab_map(kimi(make, header(d2t=None, t2d=None)))
    assert found is not None
    assert "32000 of 163840" in found.statement


def test_a_full_vocabulary_needs_no_map(make: Any) -> None:
    head = header(d2t=None, t2d=None, lm_head__weight=[163840, 7168])
    case = kimi(make, head, draft={"draft_vocab_size": 163840})
    assert checks.draft_vocab_map(case) is None
    assert checks.draft_weights_missing(case) is None


def test_absolute_ids_in_d2t_are_named(make: Any) -> None:
    from dataclasses import replace

    case = replace(kimi(make), tensors={"d2t": [4 * i for i in range(32000)]})
    assert checks.draft_vocab_map(case) is None
    absolute = replace(kimi(make), tensors={"d2t": [160000 + i for i in range(32000)]})
    assert checks.draft_vocab_map(absolute) is not None


def test_a_missing_head_is_named_unless_it_is_tied(make: Any) -> None:
    found = checks.draft_weights_missing(kimi(make, header(lm_head__weight=None)))
    assert found is not None
    assert "lm_head" in found.statement


@pytest.mark.parametrize(
    ("flag", "version", "fires"),
    [
        ("norm_output", "0.5.11", True),
        ("norm_output", "0.5.12", False),
        ("norm_before_fc", "0.5.17", True),
        ("norm_before_fc", "0.5.18", False),
        ("norm_before_residual", "0.5.23", True),
    ],
)
def test_a_norm_switch_is_unread_before_the_release_that_reads_it(
    make: Any, flag: str, version: str, fires: bool
) -> None:
    case = kimi(make, draft={flag: True}, engine_version=version)
    assert (checks.draft_norm_unread(case) is not None) == fires


def test_a_norm_switch_that_is_off_is_no_fault(make: Any) -> None:
    case = kimi(make, draft={"norm_output": False}, engine_version="0.5.9")
    assert checks.draft_norm_unread(case) is None


def test_with_an_unknown_release_a_norm_switch_is_only_possible(make: Any) -> None:
    found = checks.draft_norm_unread(kimi(make, draft={"norm_output": True}))
    assert found is not None
    assert (found.severity, found.confidence) == ("info", "possible")


def test_a_draft_that_ends_before_the_target_is_named(make: Any) -> None:
    found = checks.draft_context_short(kimi(make, draft={"max_position_embeddings": 2048}))
    assert found is not None
    assert found.severity == "medium"
    assert "2048 positions, and 262144" in found.statement


def test_it_is_worse_when_longer_requests_were_served(make: Any) -> None:
    lines = make.stretch([2.0] * 6, tokens=[1000, 2000, 3000, 4000, 5000, 6000])
    case = kimi(make, draft={"max_position_embeddings": 2048}, boots=[make.boot(lines)])
    found = checks.draft_context_short(case)
    assert found is not None
    assert found.severity == "high"
    assert "6000 tokens" in found.statement


def test_a_served_context_within_the_draft_is_fine(make: Any) -> None:
    case = kimi(
        make,
        draft={"max_position_embeddings": 2048},
        requested=make.asked(context_length=2048),
    )
    assert checks.draft_context_short(case) is None


def test_the_log_alone_shows_that_longer_requests_were_served(make: Any) -> None:
    lines = make.stretch([2.0] * 3, tokens=[1000, 2000, 2500], running=1)
    case = kimi(
        make,
        draft={"max_position_embeddings": 2048},
        requested=make.asked(context_length=2048),
        boots=[make.boot(lines)],
    )
    found = checks.draft_context_short(case)
    assert found is not None
    assert "2500 tokens" in found.statement
    assert found.evidence[-1].line is not None


def test_many_short_requests_are_not_one_long_one(make: Any) -> None:
    lines = make.stretch([2.0] * 3, tokens=[9000, 9000, 9000], running=9)
    case = kimi(
        make,
        draft={"max_position_embeddings": 2048},
        requested=make.asked(context_length=2048),
        boots=[make.boot(lines)],
    )
    assert checks.draft_context_short(case) is None


def test_another_rope_base_is_named_as_possible(make: Any) -> None:
    found = checks.draft_context_short(kimi(make, draft={"rope_theta": 10000.0}))
    assert found is not None
    assert found.confidence == "possible"
    assert "rope_theta" in found.statement


@pytest.mark.parametrize(
    ("ids", "width", "version", "fires"),
    [
        ([1, 57], 2 * 7168, "0.5.9", True),
        ([1, 57], 2 * 7168, "0.5.12", False),
        ([1, 57], 2 * 7168, None, False),
        ([1, 15, 29, 43, 57], 5 * 7168, "0.5.9", True),
        ([1, 29, 57], 3 * 7168, "0.5.9", False),
    ],
)
def test_old_releases_build_fc_for_three_layers(
    make: Any, ids: list[int], width: int, version: str | None, fires: bool
) -> None:
    case = make.case(
        draft_config=make.kimi_draft(ids),
        target_config=make.kimi_target,
        header=header(fc__weight=[7168, width]),
        engine_version=version,
    )
    found = checks.fc_width_mismatch(case)
    assert (found is not None) == fires
    if found is not None:
        assert "builds it for 3 layers" in found.statement


def test_another_kind_of_draft_is_not_held_to_eagle3s_tensors(make: Any) -> None:
    plain = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1, "hidden_size": 64}
    head = {"fc.weight": {"dtype": "BF16", "shape": [64, 128]}}
    case = make.case(draft_config=plain, target_config=make.kimi_target, header=head)
    assert checks.fc_width_mismatch(case) is None
    assert checks.draft_weights_missing(case) is None


def test_an_embedding_of_the_targets_width_is_missed_without_harm(make: Any) -> None:
    found = checks.draft_weights_missing(kimi(make, header(embed_tokens__weight=None)))
    assert found is not None
    assert (found.severity, found.confidence) == ("info", "certain")
    assert "target's embedding" in found.statement


def test_an_embedding_of_another_width_is_missed_as_a_fault(make: Any) -> None:
    head = header(embed_tokens__weight=None, fc__weight=[7168, 3 * 5120])
    found = checks.draft_weights_missing(kimi(make, head, draft={"target_hidden_size": 5120}))
    assert found is not None
    assert found.severity == "critical"


def test_a_tensor_the_loader_skips_beside_a_whole_checkpoint_is_a_note(make: Any) -> None:
    head = {**header(), "verifier_norm.weight": {"dtype": "BF16", "shape": [7168]}}
    found = checks.draft_weights_missing(kimi(make, head))
    assert found is not None
    assert found.severity == "info"
    assert "skips verifier_norm.weight" in found.statement


@pytest.mark.parametrize("name", ["lm_head.weight", "fc.weight"])
def test_a_header_alone_betrays_a_missing_tensor(make: Any, name: str) -> None:
    found = checks.draft_weights_missing(make.case(header=header(**{name: None})))
    assert found is not None
    assert (found.severity, found.confidence) == ("critical", "likely")
    assert name in found.statement


def test_a_whole_header_alone_has_no_fault(make: Any) -> None:
    case = make.case(header=header())
    assert checks.draft_weights_missing(case) is None
    assert checks.draft_vocab_map(case) is None


def test_a_header_alone_with_a_small_head_needs_a_map(make: Any) -> None:
    found = checks.draft_vocab_map(make.case(header=header(d2t=None, t2d=None)))
    assert found is not None
    assert "32000 of 163840" in found.statement


def test_the_header_of_a_whole_model_is_no_drafts(make: Any) -> None:
    head = {"model.layers.0.mlp.up_proj.weight": {"dtype": "BF16", "shape": [64, 16]}}
    assert checks.draft_weights_missing(make.case(header=head)) is None
