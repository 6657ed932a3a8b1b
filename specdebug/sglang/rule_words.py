"""The words that the rule table's conditions may use, filled from arguments and configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from specdebug.sglang.flags import Value
from specdebug.sglang.rules import UNKNOWN, table


class Target(Protocol):
    """What the rules ask of a target model; eagle.draft_config.TargetConfig satisfies it."""

    @property
    def architectures(self) -> tuple[str, ...]: ...


class Draft(Protocol):
    """What the rules ask of a draft; eagle.draft_config.DraftConfig satisfies it."""

    @property
    def architectures(self) -> tuple[str, ...]: ...

    @property
    def num_hidden_layers(self) -> int | None: ...

    @property
    def raw(self) -> Mapping[str, Any]: ...


# Short words of the rule table and the arguments they stand for.
_WORDS = {
    "algorithm": "speculative_algorithm",
    "steps": "speculative_num_steps",
    "topk": "speculative_eagle_topk",
    "draft_tokens": "speculative_num_draft_tokens",
    "draft_path": "speculative_draft_model_path",
    "token_map": "speculative_token_map",
    "dflash_block_size": "speculative_dflash_block_size",
    "use_rejection_sampling": "speculative_use_rejection_sampling",
    "accept_threshold_single": "speculative_accept_threshold_single",
    "accept_threshold_acc": "speculative_accept_threshold_acc",
    "ngram_breadth": "speculative_ngram_max_bfs_breadth",
}
DEFAULTS: dict[str, Value] = {
    "disable_overlap_schedule": False,
    "enable_mixed_chunk": False,
    "enable_beta_spec": False,
    "enable_lora": False,
    "enable_dp_attention": False,
    "speculative_adaptive": False,
    "speculative_use_rejection_sampling": False,
    "speculative_accept_threshold_single": 1.0,
    "speculative_accept_threshold_acc": 1.0,
    "speculative_ngram_max_bfs_breadth": 10,
    "pp_size": 1,
    "dp_size": 1,
    **dict.fromkeys(
        (
            "max_running_requests",
            "mem_fraction_static",
            "cuda_graph_bs",
            "device",
            "disaggregation_mode",
            "model_path",
            "decode_attention_backend",
            "prefill_attention_backend",
        )
    ),
}
_PLAIN_PAGES = ("flashinfer", "fa3", "fa4", "triton", "torch_native", "flex_attention")
NUMBERS = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def assign(names: dict[str, Any], dest: str, value: Any) -> None:
    names[dest] = value
    for word, stands_for in _WORDS.items():
        if stands_for == dest:
            names[word] = value


def names_of(
    asked: Mapping[str, Value],
    env: Mapping[str, str],
    target: Target | None,
    draft: Draft | None,
) -> dict[str, Any]:
    """What the conditions of the table may name, before any rule has run."""
    names: dict[str, Any] = {**DEFAULTS, **dict.fromkeys(_WORDS.values()), **asked}
    for dest, value in DEFAULTS.items():
        names[dest] = names[dest] if names[dest] is not None else value
    algorithm = asked.get("speculative_algorithm")
    if isinstance(algorithm, str):
        names["speculative_algorithm"] = algorithm.upper()
    for word, dest in _WORDS.items():
        names[word] = names[dest] if names[dest] is not None else DEFAULTS.get(dest)
    backend = asked.get("attention_backend")
    names["asked_attention_backend"] = backend
    names["attention_backend"] = UNKNOWN if backend is None else backend
    if asked.get("page_size") is None:
        # Pages are one token long unless a backend has its own size.
        names["page_size"] = 1 if backend is None or backend in _PLAIN_PAGES else UNKNOWN
    names["none_given"] = all(asked.get(dest) is None for dest in NUMBERS)
    names["spec_v2"] = _switch(env.get("SGLANG_ENABLE_SPEC_V2"))
    lists = table().lists
    arch = target.architectures[0] if target is not None and target.architectures else UNKNOWN
    names["target_arch"] = arch
    for word, listed in (
        ("target_is_deepseek_like", lists["deepseek_like"]),
        ("target_is_deepseek_like_later", lists["deepseek_like_later"]),
        ("target_is_deep_tree", lists["deep_tree"]),
    ):
        names[word] = UNKNOWN if arch is UNKNOWN else arch in listed
    if arch in lists["own_draft_later"]:
        names["target_has_own_draft"] = UNKNOWN
    else:
        names["target_has_own_draft"] = UNKNOWN if arch is UNKNOWN else arch in lists["own_draft"]
    names["draft_arch"] = names["draft_is_eagle3"] = UNKNOWN
    names["draft_layers"] = None
    names["draft_block_size"] = UNKNOWN
    if draft is not None:
        names["draft_arch"] = draft.architectures[0] if draft.architectures else None
        names["draft_is_eagle3"] = "eagle3" in str(names["draft_arch"]).lower()
        names["draft_layers"] = draft.num_hidden_layers
        names["draft_block_size"] = _block_size(draft)
    return names


def _block_size(draft: Draft) -> int | None:
    """The block a DFLASH draft proposes at once: its own section's size before the top level's
    (0.5.11 dflash_utils.py:334)."""
    own = draft.raw.get("dflash_config")
    block = own.get("block_size") if isinstance(own, Mapping) else None
    block = draft.raw.get("block_size") if block is None else block
    return block if isinstance(block, int) and not isinstance(block, bool) else None


def _switch(text: str | None) -> bool | None:
    if text is None:
        return None
    return text.strip().lower() in ("1", "true", "yes", "y", "on", "t")
