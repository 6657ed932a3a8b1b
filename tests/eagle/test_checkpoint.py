"""Checkpoints by their headers, held against their configs."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.eagle.checkpoint import (
    check,
    check_d2t,
    draft_betrayed,
    header_from_bytes,
    header_from_dict,
    read_header,
    read_ints,
)
from specdebug.eagle.draft_config import DraftConfig, TargetConfig

H, V, DV = 64, 512, 384
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "hidden_size": H,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": V,
    "draft_vocab_size": DV,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 5]},
}
SHAPES: dict[str, list[int]] = {
    "embed_tokens.weight": [V, H],
    "fc.weight": [H, 3 * H],
    "lm_head.weight": [DV, H],
    "norm.weight": [H],
    "midlayer.input_layernorm.weight": [H],
    "midlayer.hidden_norm.weight": [H],
    "midlayer.post_attention_layernorm.weight": [H],
    "midlayer.self_attn.q_proj.weight": [64, 2 * H],
    "midlayer.self_attn.k_proj.weight": [32, 2 * H],
    "midlayer.self_attn.v_proj.weight": [32, 2 * H],
    "midlayer.self_attn.o_proj.weight": [H, 64],
    "midlayer.mlp.gate_proj.weight": [128, H],
    "midlayer.mlp.up_proj.weight": [128, H],
    "midlayer.mlp.down_proj.weight": [H, 128],
    "d2t": [DV],
    "t2d": [V],
}


def header(without: tuple[str, ...] = (), **changed: Any) -> dict[str, Any]:
    shapes = {**SHAPES, **{name.replace("__", "."): shape for name, shape in changed.items()}}
    kinds = {"d2t": "I64", "t2d": "BOOL"}
    return {
        name: {"dtype": kinds.get(name, "BF16"), "shape": shape}
        for name, shape in shapes.items()
        if name not in without
    }


def report(config: dict[str, Any] | None = None, **arguments: Any) -> Any:
    draft = DraftConfig.from_dict({**CONFIG, **(config or {})})
    target = TargetConfig.from_dict({"hidden_size": H, "vocab_size": V})
    return check(header_from_dict(header(**arguments)), draft, target)


def safetensors(path: Path, tensors: dict[str, tuple[str, list[int], bytes]]) -> Path:
    entries, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        entries[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    raw = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + body)
    return path


def test_a_complete_checkpoint_has_nothing_to_report() -> None:
    found = report()
    assert (found.missing, found.unread, found.map_problems, found.shape_problems) == ((),) * 4
    assert (found.fc_in, found.fc_out, found.expected_fc_in) == (192, 64, 192)
    assert found.has_lm_head
    assert found.has_embedding
    assert found.has_d2t
    assert found.has_t2d


@pytest.mark.parametrize(
    "name", [name for name in SHAPES if name not in ("d2t", "t2d", "embed_tokens.weight")]
)
def test_every_weight_the_loader_needs_is_missed(name: str) -> None:
    assert report(without=(name,)).missing == (name,)


def test_a_shared_embedding_may_be_absent_and_an_own_one_may_not() -> None:
    assert report(without=("embed_tokens.weight",)).missing == ()
    own = report({"target_hidden_size": 128}, without=("embed_tokens.weight",))
    assert own.missing == ("embed_tokens.weight",)


def test_a_head_is_not_needed_when_it_is_tied_or_the_targets() -> None:
    assert report({"tie_word_embeddings": True}, without=("lm_head.weight",)).missing == ()
    assert report({"draft_vocab_size": None}, without=("lm_head.weight",)).missing == ()


def test_names_the_loader_skips_are_listed_and_fused_ones_are_read() -> None:
    layered = {
        name.replace("midlayer", "layers.0"): {"dtype": "BF16", "shape": shape}
        for name, shape in SHAPES.items()
    }
    draft = DraftConfig.from_dict(CONFIG)
    found = check(header_from_dict(layered), draft)
    assert "layers.0.self_attn.q_proj.weight" in found.unread
    assert "midlayer.self_attn.q_proj.weight" in found.missing
    fused = report(
        without=tuple(f"midlayer.self_attn.{p}_proj.weight" for p in "qkv"),
        midlayer__self_attn__qkv_proj__weight=[128, 2 * H],
    )
    assert (fused.missing, fused.unread) == ((), ())
    prefixed = {f"model.{name}": entry for name, entry in header().items()}
    assert check(header_from_dict(prefixed), draft).missing == ()


def test_the_width_of_fc_follows_the_number_of_states() -> None:
    four = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 3, 4]}}
    found = report(four)
    assert (found.fc_in, found.expected_fc_in) == (192, 256)


def test_a_small_vocabulary_without_a_map_is_named() -> None:
    found = report(without=("d2t",))
    assert [problem.kind for problem in found.map_problems] == ["no-map"]
    assert "t2d is not read" in found.map_problems[0].message
    same = report({"draft_vocab_size": V}, without=("d2t", "t2d"), lm_head__weight=[V, H])
    assert same.map_problems == ()


def test_maps_of_wrong_length_and_shapes_that_disagree_are_named() -> None:
    assert {p.kind for p in report(d2t=[10]).map_problems} == {"length"}
    assert {p.kind for p in report(t2d=[10]).map_problems} == {"t2d-length"}
    assert {p.kind for p in report({"draft_vocab_size": 600}).map_problems} >= {"too-large"}
    wrong = report(midlayer__self_attn__q_proj__weight=[64, H])
    assert [name for name, _ in wrong.shape_problems] == ["midlayer.self_attn.q_proj.weight"]


def test_a_map_of_offsets_passes() -> None:
    targets = [0, 1, 5, 9, 100]
    assert check_d2t([t - i for i, t in enumerate(targets)], 5, 512) == []
    assert check_d2t([0] * 5, 5, 5) == []


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 1, 5, 9, 511], "absolute"),
        ([0, 0, 0, 0, 508], "out-of-range"),
        ([0, 0, -5, 0, 0], "out-of-range"),
        ([0, 5, 1, 0, 0], "not-increasing"),
        ([0, 0, 0, 0], "length"),
    ],
)
def test_maps_that_lead_astray_are_told_apart(values: list[int], kind: str) -> None:
    assert kind in {problem.kind for problem in check_d2t(values, 5, 512)}


@given(st.sets(st.integers(0, 511), min_size=2, max_size=400))
def test_every_true_map_passes_and_its_absolute_form_does_not(targets: set[int]) -> None:
    ids = sorted(targets)
    assert check_d2t([t - i for i, t in enumerate(ids)], len(ids), 512) == []
    if ids[-1] > 512 - len(ids):
        assert check_d2t(ids, len(ids), 512)[0].kind == "absolute"


def test_a_file_gives_its_header_and_its_map(tmp_path: Path) -> None:
    path = safetensors(
        tmp_path / "m.safetensors",
        {
            "fc.weight": ("F32", [2, 2], b"\0" * 16),
            "d2t": ("I64", [3], struct.pack("<3q", 0, 4, 9)),
            "t2d": ("BOOL", [4], b"\1\0\0\1"),
        },
    )
    assert read_header(path).tensors["fc.weight"].shape == (2, 2)
    assert read_ints(path, "d2t") == [0, 4, 9]
    assert read_ints(path, "t2d") == [1, 0, 0, 1]
    assert header_from_bytes(path.read_bytes()).tensors.keys() == {"fc.weight", "d2t", "t2d"}
    for name, message in (("fc.weight", "not whole numbers"), ("none", "no tensor")):
        with pytest.raises(ValueError, match=message):
            read_ints(path, name)
    with pytest.raises(ValueError, match="holds 3 values"):
        read_ints(path, "d2t", limit=2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "too short"),
        (b"version https://git-lfs.github.com/spec/v1\n", "LFS"),
        (struct.pack("<Q", 1 << 40) + b"{}", "not a safetensors"),
        (struct.pack("<Q", 5000) + b"{}", "cut short"),
        (struct.pack("<Q", 5) + b"{{{{{", "no JSON"),
        (struct.pack("<Q", 9) + b'{"a": {}}', "no dtype and shape"),
    ],
)
def test_files_that_are_none_say_why(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_header(path)


def test_the_start_of_an_upload_must_hold_the_header() -> None:
    with pytest.raises(ValueError, match="send more"):
        header_from_bytes(struct.pack("<Q", 5000) + b"{}")


@given(st.binary(max_size=300))
def test_bytes_are_a_header_of_tensors_or_a_clear_error(data: bytes) -> None:
    for raw in (data, struct.pack("<Q", max(2, len(data))) + data):
        try:
            found = header_from_bytes(raw)
        except ValueError as error:
            said = str(error)
        else:
            said = f"{len(found.tensors)} tensors, each with a shape and a dtype"
            assert all(n >= 0 for t in found.tensors.values() for n in t.shape)
        assert len(said) > 20


def test_a_drafts_own_tensors_betray_its_sizes_and_a_models_do_not() -> None:
    tensors = {"midlayer.a": [1], "norm.weight": [64], "d2t": [300], "t2d": [1000]}
    raw = {name: {"dtype": "BF16", "shape": shape} for name, shape in tensors.items()}
    found = draft_betrayed(header_from_dict(raw))
    assert found is not None
    assert (found.hidden_size, found.draft_vocab_size, found.vocab_size) == (64, 300, 1000)
    other = {"model.layers.0.a": {"dtype": "BF16", "shape": [64]}}
    assert draft_betrayed(header_from_dict(other)) is None
