"""Hugging Face folders to models and back, in the keys and tensor names SGLang reads; trains nothing."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from specdebug.reference import tokenizer as tokenizers_file
from specdebug.reference.draft import Draft
from specdebug.reference.layers import Attention, MLP, Shape
from specdebug.reference.target import Target

TARGET_ARCHITECTURE = "LlamaForCausalLM"
DRAFT_ARCHITECTURE = "LlamaForCausalLMEagle3"
EAGLE_KEY, LAYER_IDS_KEY = "eagle_config", "eagle_aux_hidden_state_layer_ids"


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
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    copies = {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
    save_file(copies, folder / "model.safetensors", metadata={"format": "pt"})


def load_target(folder: Path) -> Target:
    shape = Shape(
        **{
            k: v
            for k, v in json.loads((folder / "config.json").read_text()).items()
            if k in Shape.__dataclass_fields__
        }
    )
    model = Target(shape)
    t = load_file(folder / "model.safetensors")
    with torch.no_grad():
        model.embed.weight.copy_(t["model.embed_tokens.weight"])
        model.norm.weight.copy_(t["model.norm.weight"])
        model.head.weight.copy_(t["lm_head.weight"])
        for i, layer in enumerate(model.stack):
            p = f"model.layers.{i}."
            layer.attention.qkv.weight.copy_(
                torch.cat([t[f"{p}self_attn.{x}_proj.weight"] for x in "qkv"])
            )
            layer.attention.out.weight.copy_(t[p + "self_attn.o_proj.weight"])
            layer.mlp.gate_up.weight.copy_(
                torch.cat([t[f"{p}mlp.{x}_proj.weight"] for x in ("gate", "up")])
            )
            layer.mlp.down.weight.copy_(t[p + "mlp.down_proj.weight"])
            layer.input_norm.weight.copy_(t[p + "input_layernorm.weight"])
            layer.post_norm.weight.copy_(t[p + "post_attention_layernorm.weight"])
    return model.eval()
