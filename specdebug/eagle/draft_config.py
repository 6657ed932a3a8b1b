"""A draft's and a target's config.json as far as speculation needs them; knows no releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

AUX_KEY = "eagle_aux_hidden_state_layer_ids"
NORM_FLAGS = ("norm_before_fc", "fc_norm", "use_aux_norm", "norm_output", "norm_before_residual")
AuxSource = Literal["eagle_config", "top-level", "misspelled", "malformed", "absent"]


@dataclass(frozen=True)
class ConfigProblem:
    """Something in a config that the engine reads otherwise; `key` is a dotted path."""

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

    @property
    def ids_as_written(self) -> str:
        """What the file says of layer ids, with their key; "" where it says nothing."""
        if self.aux_source == "malformed":
            return f"{self.aux_key} is no list of layer numbers"
        ids = self.written_aux_layer_ids
        return "" if ids is None else f"{self.aux_key}: {list(ids)}"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DraftConfig:
        """Read a decoded config.json; wrong types become problems. Raises ValueError if it is no
        object."""
        reader = _Reader(data, "transformer_layer_config")
        ids, written, aux_key, source = _aux_ids(reader)
        eagle = data.get("eagle_config")
        section = eagle if isinstance(eagle, Mapping) else {}
        if reader.nested_in:
            reader.problem(
                reader.nested_in,
                "sizes stand in a nested section, as the speculators library writes them; SGLang "
                "reads them at the top level",
                "convert the checkpoint to a plain Llama config with an eagle_config",
            )
        norms = {
            flag: bool(place[flag])
            for flag in NORM_FLAGS
            for place in (data, section)
            if isinstance(place.get(flag), bool)
        }
        use_aux = section.get("use_aux_hidden_state", True)
        aux_count = data.get("num_aux_hidden_states", section.get("num_aux_hidden_states"))
        return cls(
            architectures=reader.architectures(),
            model_type=reader.text("model_type"),
            hidden_size=reader.whole("hidden_size"),
            target_hidden_size=reader.whole("target_hidden_size"),
            intermediate_size=reader.whole("intermediate_size"),
            num_hidden_layers=reader.whole("num_hidden_layers"),
            num_attention_heads=reader.whole("num_attention_heads"),
            num_key_value_heads=reader.whole("num_key_value_heads"),
            head_dim=reader.whole("head_dim"),
            vocab_size=reader.whole("vocab_size"),
            draft_vocab_size=reader.whole("draft_vocab_size"),
            max_position_embeddings=reader.whole("max_position_embeddings"),
            rope_theta=reader.rope_theta(),
            rope_scaling=reader.rope_scaling(),
            tie_word_embeddings=reader.flag("tie_word_embeddings"),
            dtype=reader.text("torch_dtype") or reader.text("dtype"),
            aux_layer_ids=ids,
            written_aux_layer_ids=written,
            aux_key=aux_key,
            aux_source=source,
            use_aux_hidden_state=use_aux if isinstance(use_aux, bool) else True,
            num_aux_hidden_states=aux_count if _is_whole(aux_count) else None,
            norm_flags=norms,
            unknown_keys=tuple(sorted(key for key in data if key not in _KNOWN_KEYS)),
            problems=tuple(reader.problems),
            raw=data,
        )

    @property
    def is_eagle3(self) -> bool:
        """Whether the architecture or its eagle_config says EAGLE-3."""
        named = any("eagle3" in name.lower() for name in self.architectures)
        return named or isinstance(self.raw.get("eagle_config"), Mapping)

    @property
    def is_mla(self) -> bool:
        """Whether the draft itself uses multi-head latent attention."""
        return self.raw.get("kv_lora_rank") is not None

    @property
    def aux_count(self) -> int:
        """How many states fc takes: num_aux_hidden_states, else the number of ids, else 3."""
        if self.num_aux_hidden_states:
            return self.num_aux_hidden_states
        return len(self.aux_layer_ids) if self.aux_layer_ids else 3


@dataclass(frozen=True)
class TargetConfig:
    """A target's config.json; a multimodal target's figures come from its text_config."""

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
        reader = _Reader(data, "text_config", "llm_config", "language_config", "thinker_config")
        return cls(
            architectures=reader.architectures(),
            model_type=reader.text("model_type", nested=False),
            text_model_type=reader.text("model_type"),
            num_hidden_layers=reader.whole("num_hidden_layers"),
            hidden_size=reader.whole("hidden_size"),
            vocab_size=reader.whole("vocab_size"),
            num_attention_heads=reader.whole("num_attention_heads"),
            num_key_value_heads=reader.whole("num_key_value_heads"),
            max_position_embeddings=reader.whole("max_position_embeddings"),
            rope_theta=reader.rope_theta(),
            rope_scaling=reader.rope_scaling(),
            kv_lora_rank=reader.whole("kv_lora_rank"),
            tie_word_embeddings=reader.flag("tie_word_embeddings"),
            dtype=reader.text("torch_dtype") or reader.text("dtype"),
            nested_in=reader.nested_in,
            problems=tuple(reader.problems),
            raw=data,
        )

    @property
    def is_mla(self) -> bool:
        """Whether attention is multi-head latent (kv_lora_rank present)."""
        return self.kv_lora_rank is not None


class _Reader:
    """Typed reading of one config, the nested section before the top level; collects problems."""

    def __init__(self, data: Mapping[str, Any], *sections: str) -> None:
        if not isinstance(data, Mapping):
            raise ValueError(
                f"a config.json is an object of keys and values, not {type(data).__name__}"
            )
        self.data = data
        self.problems: list[ConfigProblem] = []
        self.nested_in: str | None = None
        self.nested: Mapping[str, Any] = {}
        for name in sections:
            inner = data.get(name)
            if isinstance(inner, Mapping):
                self.nested_in, self.nested = name, inner
                deeper = inner.get("text_config")
                if isinstance(deeper, Mapping) and "hidden_size" not in inner:
                    self.nested_in, self.nested = f"{name}.text_config", deeper
                break

    def problem(self, key: str, message: str, fix: str = "") -> None:
        self.problems.append(ConfigProblem(key, message, fix))

    def get(self, key: str, nested: bool = True) -> Any:
        if nested and self.nested.get(key) is not None:
            return self.nested[key]
        return self.data.get(key)

    def whole(self, key: str) -> int | None:
        """A size or a count, so at least one."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            value = int(value)
        if _is_whole(value) and value > 0:
            return int(value)
        self.problem(key, f"is {value!r:.60}, not a whole number above 0; it is left out", "")
        return None

    def real(self, value: Any, key: str) -> float | None:
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value) if abs(value) < 1e300 else None
        self.problem(key, f"is {value!r:.60}, not a number; it is left out")
        return None

    def text(self, key: str, nested: bool = True) -> str | None:
        value = self.get(key, nested)
        return value if isinstance(value, str) else None

    def flag(self, key: str) -> bool:
        value = self.get(key)
        return value if isinstance(value, bool) else False

    def architectures(self) -> tuple[str, ...]:
        value = self.data.get("architectures")
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        if value is not None:
            self.problem("architectures", "is not a list of names; it is left out")
        return ()

    def rope_theta(self) -> float | None:
        value = self.get("rope_theta")
        for section in ("rope_parameters", "rope_scaling"):
            inner = self.get(section)
            if value is None and isinstance(inner, Mapping):
                value = inner.get("rope_theta")
        return self.real(value, "rope_theta")

    def rope_scaling(self) -> Mapping[str, Any] | None:
        for section in ("rope_scaling", "rope_parameters"):
            value = self.get(section)
            if isinstance(value, Mapping):
                return value
        return None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _as_ids(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, list) and all(_is_whole(item) and abs(item) < 2**31 for item in value):
        return tuple(value)
    return None


_Ids = tuple[int, ...] | None
_DEFAULTED = "the engine then captures its default layers without a word"


def _aux_ids(reader: _Reader) -> tuple[_Ids, _Ids, str | None, AuxSource]:
    """(ids the engine reads, ids written anywhere, where, how they were found)."""
    data = reader.data
    section = data.get("eagle_config")
    if section is not None and not isinstance(section, Mapping):
        reader.problem(
            "eagle_config",
            f"is no object, so no ids are read from it; {_DEFAULTED}",
            f'write "eagle_config": {{"{AUX_KEY}": [...]}}',
        )
        return None, None, "eagle_config", "malformed"
    inside: Mapping[str, Any] = section if isinstance(section, Mapping) else {}
    path = f"eagle_config.{AUX_KEY}"
    if inside.get(AUX_KEY) is not None:
        ids = _as_ids(inside[AUX_KEY])
        if ids:
            return ids, ids, path, "eagle_config"
        reader.problem(
            path,
            f"is {inside[AUX_KEY]!r:.80}, not a list of layer numbers",
            f"write {AUX_KEY} as a list of whole numbers",
        )
        return None, None, path, "malformed"
    if data.get(AUX_KEY) is not None:
        reader.problem(
            AUX_KEY,
            f"stands at the top level, where SGLang does not look for it; {_DEFAULTED}",
            f"move it into eagle_config: {path}",
        )
        return None, _as_ids(data[AUX_KEY]), AUX_KEY, "top-level"
    for place, prefix in ((inside, "eagle_config."), (data, "")):
        for key, value in place.items():
            if _like_aux_key(key) and isinstance(value, list):
                reader.problem(
                    prefix + key,
                    f"is not the key the engine reads ({AUX_KEY}); {_DEFAULTED}",
                    f"rename it to {path}",
                )
                return None, _as_ids(value), prefix + key, "misspelled"
    return None, None, None, "absent"


def _like_aux_key(key: Any) -> bool:
    if not isinstance(key, str) or key == AUX_KEY:
        return False
    lowered = key.lower().replace("-", "_")
    if "aux" in lowered and "layer" in lowered:
        return True
    import difflib  # late: most configs have no key that comes near

    return difflib.SequenceMatcher(None, lowered[:80], AUX_KEY).ratio() > 0.85


_KNOWN = """
_name_or_path architectures attention_bias attention_dropout auto_map bias block_size bos_token_id
draft_vocab_size dtype eagle_config eos_token_id head_dim hidden_act hidden_size initializer_range
intermediate_size kv_lora_rank layer_types mask_token_id max_position_embeddings max_window_layers
mlp_bias model_type num_attention_heads num_aux_hidden_states num_hidden_layers
num_key_value_heads pad_token_id pretraining_tp q_lora_rank qk_nope_head_dim qk_rope_head_dim
quantization_config rms_norm_eps rope_parameters rope_scaling rope_theta sliding_window
speculators_config speculators_model_type speculators_version target_hidden_size
tie_word_embeddings torch_dtype transformer_layer_config transformers_version use_cache
use_sliding_window v_head_dim vocab_size
"""
_KNOWN_KEYS = frozenset([*_KNOWN.split(), *NORM_FLAGS])
