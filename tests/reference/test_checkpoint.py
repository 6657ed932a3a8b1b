"""Checkpoint folders: what is written reads back, and what is broken is named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from specdebug.reference import checkpoint, tokenizer
from specdebug.reference.checkpoint import CheckpointError
from specdebug.reference.draft import Draft
from specdebug.reference.target import Target

IDS = torch.tensor([3, 17, 5, 31, 0])


@pytest.fixture(scope="module")
def vocabulary() -> Tokenizer:
    return tokenizer.train(["x = 1\n"])


@pytest.fixture
def target_dir(tmp_path: Path, tiny_target: Target, vocabulary: Tokenizer) -> Path:
    checkpoint.save_target(tiny_target, tmp_path / "target", vocabulary)
    return tmp_path / "target"


@pytest.fixture
def draft_dir(tmp_path: Path, tiny_draft: Draft, vocabulary: Tokenizer) -> Path:
    checkpoint.save_draft(tiny_draft, tmp_path / "draft", vocabulary, [-1, 1, 3])
    return tmp_path / "draft"


def edit_config(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    config = {**json.loads(file.read_text()), **changes}
    kept = {key: value for key, value in config.items() if value is not ...}
    file.write_text(json.dumps(kept))


def edit_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    file = folder / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


@torch.inference_mode()
def test_a_target_reads_back_as_it_was(target_dir: Path, tiny_target: Target) -> None:
    loaded = checkpoint.load_target(target_dir)
    assert loaded.shape == tiny_target.shape
    assert torch.equal(loaded(IDS[None])[0], tiny_target(IDS[None])[0])


def test_a_draft_reads_back_as_it_was(
    draft_dir: Path, tiny_target: Target, tiny_draft: Draft
) -> None:
    loaded = checkpoint.load_draft(draft_dir, tiny_target)
    hidden = torch.randn(5, 48)
    with torch.inference_mode():
        ours = loaded.step(IDS, loaded.fuse(hidden), loaded.new_cache())[0]
        theirs = tiny_draft.step(IDS, tiny_draft.fuse(hidden), tiny_draft.new_cache())[0]
    assert torch.equal(ours, theirs)
    assert torch.equal(loaded.target_ids, tiny_draft.target_ids)


def test_the_tensor_names_are_those_sglang_reads(target_dir: Path, draft_dir: Path) -> None:
    names = set(load_file(target_dir / "model.safetensors"))
    assert {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"} <= names
    assert "model.layers.4.self_attn.q_proj.weight" in names
    names = set(load_file(draft_dir / "model.safetensors"))
    assert {"fc.weight", "d2t", "t2d", "midlayer.hidden_norm.weight", "norm.weight"} <= names
    config = json.loads((draft_dir / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLMEagle3"]
    assert config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 1, 3]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"architectures": ["MistralForCausalLM"]}, "architectures is ['MistralForCausalLM']"),
        ({"architectures": ...}, "architectures is None"),
        ({"hidden_size": ...}, "hidden_size must be a whole number above 0, found None"),
        ({"hidden_size": "16"}, "hidden_size must be a whole number above 0, found '16'"),
        ({"hidden_size": 18}, "hidden_size 18 does not give 2 even-sized heads"),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be a whole number above 0"),
        ({"num_key_value_heads": 1}, "num_key_value_heads is 1"),
        ({"head_dim": 4}, "head_dim is 4"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"tie_word_embeddings": True}, "tie_word_embeddings is True"),
        ({"rope_scaling": {"type": "yarn"}}, "rope_scaling is {'type': 'yarn'}"),
        ({"rope_theta": 0}, "rope_theta must be a number above 0"),
    ],
)
def test_a_bad_key_of_the_target_is_named_with_its_file(
    target_dir: Path, changes: dict[str, Any], words: str
) -> None:
    edit_config(target_dir, **changes)
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load_target(target_dir)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(target_dir / "config.json"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, "runs ['LlamaForCausalLMEagle3'] here"),
        ({"hidden_size": 32}, "hidden_size is 32, the target's is 16"),
        ({"vocab_size": 41}, "vocab_size is 41, the target's is 40"),
        ({"num_hidden_layers": 2}, "an EAGLE-3 draft has 1"),
        ({"max_position_embeddings": 32}, "the draft would end before the target"),
        ({"draft_vocab_size": None}, "draft_vocab_size must be a whole number"),
    ],
)
def test_a_bad_key_of_the_draft_is_named_with_its_file(
    draft_dir: Path, tiny_target: Target, changes: dict[str, Any], words: str
) -> None:
    edit_config(draft_dir, **changes, **({"head_dim": 16} if "hidden_size" in changes else {}))
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load_draft(draft_dir, tiny_target)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(draft_dir / "config.json"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.pop("fc.weight"), "tensor fc.weight is missing"),
        (lambda t: t.pop("midlayer.mlp.up_proj.weight"), "midlayer.mlp.up_proj.weight is missing"),
        (lambda t: t.update({"fc.weight": torch.zeros(16, 50)}), "expected (16, n * 16)"),
        (lambda t: t.update({"norm.weight": torch.zeros(9)}), "norm.weight is (9,)"),
        (lambda t: t.update({"d2t": torch.zeros(9, dtype=torch.long)}), "d2t is (9,)"),
        (lambda t: t.update({"d2t": torch.arange(30) + 5}), "holds offsets"),
        (lambda t: t.update({"extra": torch.zeros(1)}), "1 tensors of no use here: extra"),
    ],
)
def test_a_bad_tensor_of_the_draft_is_named_with_its_file(
    draft_dir: Path, tiny_target: Target, change: Callable[[Any], object], words: str
) -> None:
    edit_tensors(draft_dir, change)
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load_draft(draft_dir, tiny_target)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(draft_dir / "model.safetensors"))


def test_missing_files_and_folders_are_named(target_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere: no such folder"):
        checkpoint.load_target(tmp_path / "nowhere")
    (target_dir / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(CheckpointError, match=r"model\.safetensors: not a readable"):
        checkpoint.load_target(target_dir)
    (target_dir / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors: no such file"):
        checkpoint.load_target(target_dir)
    (target_dir / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json: not JSON"):
        checkpoint.load_target(target_dir)
    (target_dir / "config.json").write_text("[]")
    with pytest.raises(CheckpointError, match=r"config\.json: must hold an object"):
        checkpoint.load_target(target_dir)
    (target_dir / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config\.json: cannot read it"):
        checkpoint.load_target(target_dir)


def test_the_shipped_pair_is_small() -> None:
    from specdebug.reference import variants

    files = [file for file in variants.MODELS.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 5_000_000
