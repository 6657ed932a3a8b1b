"""Hugging Face folders to models and back, in the names SGLang reads; trains nothing."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from specdebug.reference import tokenizer as tokenizers_file
from specdebug.reference.capture import EAGLE_KEY, LAYER_IDS_KEY
from specdebug.reference.draft import Draft
from specdebug.reference.layers import MLP, Attention, Shape
from specdebug.reference.target import Target

TARGET_ARCHITECTURE = "LlamaForCausalLM"
DRAFT_ARCHITECTURE = "LlamaForCausalLMEagle3"
CONFIG, WEIGHTS = "config.json", "model.safetensors"
# What this engine's layers are; a model that says otherwise would be computed wrongly.
FIXED = {
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "rope_scaling": None,
}


class CheckpointError(Exception):
    """A checkpoint that cannot be used; the message names the file, the key and what to do."""


def save_target(model: Target, folder: Path, vocabulary: Tokenizer) -> None:
    """Write config.json, generation_config.json, model.safetensors and the tokenizer."""
    tensors = {
        "model.embed_tokens.weight": model.embed.weight,
        "model.norm.weight": model.norm.weight,
        "lm_head.weight": model.head.weight,
    }
    for number, layer in enumerate(model.stack):
        prefix = f"model.layers.{number}."
        tensors |= _block_out(prefix, layer.attention, layer.mlp)
        tensors[f"{prefix}input_layernorm.weight"] = layer.input_norm.weight
        tensors[f"{prefix}post_attention_layernorm.weight"] = layer.post_norm.weight
    config = {"architectures": [TARGET_ARCHITECTURE], **_config(model.shape)}
    _write(folder, config, tensors)
    tokenizers_file.save(vocabulary, folder, model.shape.max_position_embeddings)
    ends = {"bos_token_id": config["bos_token_id"], "eos_token_id": config["eos_token_id"]}
    (folder / "generation_config.json").write_text(json.dumps(ends) + "\n")


def save_draft(model: Draft, folder: Path, vocabulary: Tokenizer, layer_ids: Sequence[int]) -> None:
    """Write config.json with the layer ids, model.safetensors and the tokenizer."""
    tensors = {
        "fc.weight": model.fc.weight,
        "norm.weight": model.norm.weight,
        "lm_head.weight": model.head.weight,
        "d2t": model.d2t,
        "t2d": model.t2d,
        "midlayer.input_layernorm.weight": model.input_norm.weight,
        "midlayer.hidden_norm.weight": model.hidden_norm.weight,
        "midlayer.post_attention_layernorm.weight": model.post_norm.weight,
        **_block_out("midlayer.", model.attention, model.mlp),
    }
    config = {
        "architectures": [DRAFT_ARCHITECTURE],
        **_config(model.shape),
        "draft_vocab_size": model.head.weight.shape[0],
        EAGLE_KEY: {LAYER_IDS_KEY: list(layer_ids), "use_aux_hidden_state": True},
    }
    _write(folder, config, tensors)
    tokenizers_file.save(vocabulary, folder, model.shape.max_position_embeddings)


def _block_out(prefix: str, attention: Attention, mlp: MLP) -> dict[str, Tensor]:
    """Fused matrices to the separate ones of the HF layout."""
    query, key, value = attention.qkv.weight.chunk(3)
    gate, up = mlp.gate_up.weight.chunk(2)
    return {
        f"{prefix}self_attn.q_proj.weight": query,
        f"{prefix}self_attn.k_proj.weight": key,
        f"{prefix}self_attn.v_proj.weight": value,
        f"{prefix}self_attn.o_proj.weight": attention.out.weight,
        f"{prefix}mlp.gate_proj.weight": gate,
        f"{prefix}mlp.up_proj.weight": up,
        f"{prefix}mlp.down_proj.weight": mlp.down.weight,
    }


def _config(shape: Shape) -> dict[str, Any]:
    return {
        "model_type": "llama",
        **vars(shape),
        "num_key_value_heads": shape.num_attention_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": "float32",
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
    }


def _write(folder: Path, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(json.dumps(config, indent=1) + "\n")
    copies = {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
    save_file(copies, folder / WEIGHTS, metadata={"format": "pt"})


def load_target(folder: Path) -> Target:
    """Load a Llama target; raises CheckpointError."""
    config = read_config(folder)
    model = Target(_shape(config, folder / CONFIG, TARGET_ARCHITECTURE))
    tensors = Tensors(folder / WEIGHTS)
    tensors.fill(model.embed.weight, "model.embed_tokens.weight")
    tensors.fill(model.norm.weight, "model.norm.weight")
    tensors.fill(model.head.weight, "lm_head.weight")
    for number, layer in enumerate(model.stack):
        prefix = f"model.layers.{number}."
        tensors.fill_block(prefix, layer.attention, layer.mlp)
        tensors.fill(layer.input_norm.weight, f"{prefix}input_layernorm.weight")
        tensors.fill(layer.post_norm.weight, f"{prefix}post_attention_layernorm.weight")
    tensors.none_left()
    return model.eval()


def load_draft(folder: Path, target: Target) -> Draft:
    """Load an EAGLE-3 draft for this target, whose embedding it shares; raises CheckpointError."""
    config = read_config(folder)
    file = folder / CONFIG
    shape = _shape(config, file, DRAFT_ARCHITECTURE)
    for key in ("hidden_size", "vocab_size"):
        ours, theirs = getattr(shape, key), getattr(target.shape, key)
        if ours != theirs:
            raise CheckpointError(f"{file}: {key} is {ours}, the target's is {theirs}")
    if shape.num_hidden_layers != 1:
        raise CheckpointError(
            f"{file}: num_hidden_layers is {shape.num_hidden_layers}, an EAGLE-3 draft has 1"
        )
    if shape.max_position_embeddings < target.shape.max_position_embeddings:
        raise CheckpointError(
            f"{file}: max_position_embeddings is {shape.max_position_embeddings}, the target's is "
            f"{target.shape.max_position_embeddings}; the draft would end before the target"
        )
    size = _whole(config, "draft_vocab_size", file)
    tensors = Tensors(folder / WEIGHTS)
    fused = tensors.take("fc.weight")
    hidden = shape.hidden_size
    if fused.dim() != 2 or fused.shape[0] != hidden or fused.shape[1] % hidden:
        raise CheckpointError(
            f"{tensors.file}: fc.weight is {tuple(fused.shape)}, expected ({hidden}, n * {hidden})"
        )
    model = Draft(shape, size, fused.shape[1] // hidden)
    model.embed.weight.data = target.embed.weight.data
    model.fc.weight.data.copy_(fused)
    tensors.fill(model.norm.weight, "norm.weight")
    tensors.fill(model.head.weight, "lm_head.weight")
    tensors.fill(model.input_norm.weight, "midlayer.input_layernorm.weight")
    tensors.fill(model.hidden_norm.weight, "midlayer.hidden_norm.weight")
    tensors.fill(model.post_norm.weight, "midlayer.post_attention_layernorm.weight")
    tensors.fill_block("midlayer.", model.attention, model.mlp)
    model.set_vocabulary(_offsets(tensors, size, shape.vocab_size))
    tensors.left.pop("t2d", None)  # follows from d2t
    tensors.none_left()
    return model.eval()


def read_config(folder: Path) -> dict[str, Any]:
    """Read a folder's config.json; raises CheckpointError."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such folder; give the folder of a checkpoint")
    file = folder / CONFIG
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{file}: cannot read it: {error.strerror}") from None
    except ValueError as error:
        raise CheckpointError(f"{file}: not JSON: {error}") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"{file}: must hold an object, found {type(config).__name__}")
    return config


def _shape(config: dict[str, Any], file: Path, architecture: str) -> Shape:
    named = config.get("architectures")
    if named != [architecture]:
        raise CheckpointError(
            f"{file}: architectures is {named}, the reference engine runs ['{architecture}'] here"
        )
    for key, value in FIXED.items():
        if config.get(key, value) != value:
            raise CheckpointError(
                f"{file}: {key} is {config[key]!r}, the reference engine runs only {value!r}"
            )
    sizes = {
        key: _whole(config, key, file)
        for key in (
            "vocab_size",
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
            "max_position_embeddings",
        )
    }
    heads, hidden = sizes["num_attention_heads"], sizes["hidden_size"]
    if hidden % (2 * heads):
        raise CheckpointError(
            f"{file}: hidden_size {hidden} does not give {heads} even-sized heads"
        )
    for key, value in (("num_key_value_heads", heads), ("head_dim", hidden // heads)):
        if config.get(key, value) != value:
            raise CheckpointError(
                f"{file}: {key} is {config[key]!r}, the reference engine runs only {value}"
            )
    rope = config.get("rope_parameters") or {}
    return Shape(
        **sizes,
        rope_theta=_number(config, "rope_theta", rope.get("rope_theta", 10000.0), file),
        rms_norm_eps=_number(config, "rms_norm_eps", 1e-6, file),
    )


def _whole(config: dict[str, Any], key: str, file: Path) -> int:
    value = config.get(key)
    if type(value) is not int or value < 1:
        raise CheckpointError(f"{file}: {key} must be a whole number above 0, found {value!r}")
    return value


def _number(config: dict[str, Any], key: str, default: float, file: Path) -> float:
    value = config.get(key, default)
    if type(value) not in (int, float) or not value > 0:
        raise CheckpointError(f"{file}: {key} must be a number above 0, found {value!r}")
    return float(value)


def _offsets(tensors: "Tensors", size: int, vocab_size: int) -> Tensor:
    """Check d2t: one offset per draft id, every target id inside the vocabulary."""
    d2t = tensors.take("d2t").long()
    if tuple(d2t.shape) != (size,):
        raise CheckpointError(f"{tensors.file}: d2t is {tuple(d2t.shape)}, expected ({size},)")
    ids = d2t + torch.arange(size)
    if int(ids.min()) < 0 or int(ids.max()) >= vocab_size:
        raise CheckpointError(
            f"{tensors.file}: d2t leads to target ids {int(ids.min())} to {int(ids.max())}, the "
            f"vocabulary has {vocab_size}; d2t holds offsets (target id - draft id), not target ids"
        )
    return d2t


class Tensors:
    """A weights file read into models tensor by tensor; what is asked for must fit exactly."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self.left = load_file(file)
        except FileNotFoundError:
            raise CheckpointError(f"{file}: no such file; the weights are missing") from None
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"{file}: not a readable safetensors file: {error}") from None

    def take(self, name: str) -> Tensor:
        """Remove and return a tensor."""
        if name not in self.left:
            raise CheckpointError(f"{self.file}: tensor {name} is missing")
        return self.left.pop(name)

    def fill(self, weight: Tensor, *names: str) -> None:
        """Copy the named tensors, stacked, into a weight of exactly that shape."""
        parts = [self.take(name) for name in names]
        for name, part in zip(names, parts, strict=True):
            wanted = (weight.shape[0] // len(names), *weight.shape[1:])
            if tuple(part.shape) != wanted:
                raise CheckpointError(
                    f"{self.file}: {name} is {tuple(part.shape)}, config.json asks for {wanted}"
                )
        weight.data.copy_(torch.cat(parts))

    def fill_block(self, prefix: str, attention: Attention, mlp: MLP) -> None:
        """The matrices of one decoder layer, separate in the file and fused here."""
        attn, feed = f"{prefix}self_attn.", f"{prefix}mlp."
        self.fill(attention.qkv.weight, *(f"{attn}{x}_proj.weight" for x in "qkv"))
        self.fill(attention.out.weight, f"{attn}o_proj.weight")
        self.fill(mlp.gate_up.weight, f"{feed}gate_proj.weight", f"{feed}up_proj.weight")
        self.fill(mlp.down.weight, f"{feed}down_proj.weight")

    def none_left(self) -> None:
        """Refuse a file with tensors this engine would ignore."""
        if self.left:
            names = ", ".join(sorted(self.left)[:3])
            raise CheckpointError(f"{self.file}: {len(self.left)} tensors of no use here: {names}")
