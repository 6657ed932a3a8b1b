"""A draft's and a target's config.json as far as speculation depends on them; knows nothing of
releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

AuxSource = Literal["eagle_config", "top-level", "misspelled", "malformed", "absent"]


@dataclass(frozen=True)
class ConfigProblem:
    """Something in a config that the engine reads otherwise than written; `key` is a dotted path."""

    key: str
    message: str
    fix: str = ""


@dataclass(frozen=True)
class DraftConfig:
    """A draft's config.json.

    `aux_layer_ids` are the ids the engine reads (from eagle_config), None when it reads none;
    `written_aux_layer_ids` those found anywhere, under `aux_key`. `norm_flags` are the norm
    switches present. `unknown_keys` are kept in `raw`.
    """

    architectures: tuple[str, ...]
    model_type: str | None
    hidden_size: int | None
    target_hidden_size: int | None
    intermediate_size: int | None
    num_hidden_layers: int | None
    num_attention_heads: int | None
    num_key_value_heads: int | None
    head_dim: int | None
    vocab_size: int | None
    draft_vocab_size: int | None
    max_position_embeddings: int | None
    rope_theta: float | None
    rope_scaling: Mapping[str, Any] | None
    tie_word_embeddings: bool
    dtype: str | None
    aux_layer_ids: tuple[int, ...] | None
    written_aux_layer_ids: tuple[int, ...] | None
    aux_key: str | None
    aux_source: AuxSource
    use_aux_hidden_state: bool
    num_aux_hidden_states: int | None
    norm_flags: Mapping[str, bool]
    unknown_keys: tuple[str, ...]
    problems: tuple[ConfigProblem, ...]
    raw: Mapping[str, Any]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DraftConfig:
        """Read a decoded config.json; wrong types become problems. Raises ValueError if it is no
        object."""
        raise NotImplementedError

    @property
    def is_eagle3(self) -> bool:
        """Whether the architecture or its eagle_config says EAGLE-3."""
        raise NotImplementedError

    @property
    def is_mla(self) -> bool:
        """Whether the draft itself uses multi-head latent attention."""
        raise NotImplementedError

    @property
    def aux_count(self) -> int:
        """How many hidden states fc takes: num_aux_hidden_states, else the number of ids, else 3."""
        raise NotImplementedError


@dataclass(frozen=True)
class TargetConfig:
    """A target's config.json; figures of a multimodal target come from its `text_config`."""

    architectures: tuple[str, ...]
    model_type: str | None
    text_model_type: str | None
    num_hidden_layers: int | None
    hidden_size: int | None
    vocab_size: int | None
    num_attention_heads: int | None
    num_key_value_heads: int | None
    max_position_embeddings: int | None
    rope_theta: float | None
    rope_scaling: Mapping[str, Any] | None
    kv_lora_rank: int | None
    tie_word_embeddings: bool
    dtype: str | None
    nested_in: str | None
    problems: tuple[ConfigProblem, ...]
    raw: Mapping[str, Any]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TargetConfig:
        """Read a decoded config.json; wrong types become problems. Raises ValueError if it is no
        object."""
        raise NotImplementedError

    @property
    def is_mla(self) -> bool:
        """Whether attention is multi-head latent (kv_lora_rank present)."""
        return self.kv_lora_rank is not None
