"""What SGLang's torch_native attention lacks for EAGLE: the verify mode with a tree mask, and the
draft's decode steps. One request at a time, for small models."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

Tensor = Any


def _attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    scale: float | None,
    grouped: bool,
) -> Tensor:
    """query [new, heads, dim], keys and values [all, heads, dim] -> [new, heads, dim]."""
    q, k, v = (part.movedim(0, 1).unsqueeze(0) for part in (query, keys, values))
    found = scaled_dot_product_attention(
        q, k.to(q.dtype), v.to(q.dtype), attn_mask=mask, enable_gqa=grouped, scale=scale
    )
    return found.squeeze(0).movedim(1, 0)


def with_verify(base: Any) -> Any:
    """The torch_native backend with a verify mode."""

    class TorchNativeWithVerify(base):  # type: ignore[misc]
        def forward_extend(
            self,
            q: Tensor,
            k: Tensor,
            v: Tensor,
            layer: Any,
            forward_batch: Any,
            save_kv_cache: bool = True,
        ) -> Tensor:
            self._batch = forward_batch
            return super().forward_extend(q, k, v, layer, forward_batch, save_kv_cache)

        def _run_sdpa_forward_extend(
            self,
            query: Tensor,
            output: Tensor,
            k_cache: Tensor,
            v_cache: Tensor,
            req_to_token: Tensor,
            req_pool_indices: Tensor,
            seq_lens: Tensor,
            extend_prefix_lens: Tensor,
            extend_seq_lens: Tensor,
            scaling: float | None = None,
            enable_gqa: bool = False,
            causal: bool = False,
        ) -> Tensor:
            batch = self._batch
            verify = batch.forward_mode.is_target_verify()
            begin = mask_begin = 0
            for row, length in enumerate(seq_lens.tolist()):
                new = batch.spec_info.draft_token_num if verify else int(extend_seq_lens[row])
                # While verifying, the drafts are not yet counted in the length.
                whole = length + new if verify else length
                mask = None
                if verify:
                    size = new * whole
                    mask = batch.spec_info.custom_mask[mask_begin : mask_begin + size]
                    mask = mask.view(new, whole)
                    mask_begin += size
                elif causal:
                    mask = torch.ones(new, whole, dtype=torch.bool).tril(whole - new)
                slots = req_to_token[req_pool_indices[row], :whole].long()
                output[begin : begin + new] = _attend(
                    query[begin : begin + new],
                    k_cache[slots],
                    v_cache[slots],
                    mask,
                    scaling,
                    enable_gqa,
                )
                begin += new
            return output

    return TorchNativeWithVerify


def draft_steps(base: Any) -> Any:
    """One backend per draft step, as SGLang's multi-step draft backends are built."""

    class DraftStep(base):  # type: ignore[misc]
        def __init__(self, runner: Any, topk: int, steps: int, step: int) -> None:
            super().__init__(runner)
            self.topk, self.steps, self.step = topk, steps, step

        def forward_decode(
            self,
            q: Tensor,
            k: Tensor,
            v: Tensor,
            layer: Any,
            forward_batch: Any,
            save_kv_cache: bool = True,
        ) -> Tensor:
            pool = forward_batch.token_to_kv_pool
            if save_kv_cache:
                pool.set_kv_buffer(layer, forward_batch.out_cache_loc, k, v)
            keys, values = (
                pool.get_key_buffer(layer.layer_id),
                pool.get_value_buffer(layer.layer_id),
            )
            query = q.reshape(-1, 1, layer.tp_q_head_num, layer.qk_head_dim)
            output = q.new_empty((query.shape[0], layer.tp_q_head_num, layer.v_head_dim))
            table = forward_batch.req_to_token_pool.req_to_token
            for row, length in enumerate(forward_batch.seq_lens.tolist()):
                slots = table[forward_batch.req_pool_indices[row]]
                for branch in range(self.topk):
                    # Each branch keeps room for all its steps behind the verified tokens.
                    own = length + branch * self.steps
                    seen = torch.cat([slots[:length], slots[own : own + self.step + 1]]).long()
                    place = row * self.topk + branch
                    grouped = layer.tp_q_head_num != layer.tp_k_head_num
                    output[place] = _attend(
                        query[place], keys[seen], values[seen], None, layer.scaling, grouped
                    )[0]
            return output.reshape(output.shape[0], -1)

    class DraftSteps:
        def __init__(self, runner: Any, topk: int, steps: int) -> None:
            self.attn_backends = [DraftStep(runner, topk, steps, step) for step in range(steps)]

        def init_forward_metadata(self, forward_batch: Any) -> None:
            """Nothing to prepare."""

    return DraftSteps


def offer_torch_native(factory: Any) -> None:
    """Let the factory of draft backends know torch_native, for decoding and for extending."""
    create = factory._create_backend

    def create_backend(self: Any, name: str, backend_map: dict[str, Any], message: str) -> Any:
        native = importlib.import_module("sglang.srt.layers.attention.torch_native_backend")
        runner = self.draft_model_runner
        if "decode" in message.split("backend")[0]:
            steps = draft_steps(native.TorchNativeAttnBackend)
            backend_map["torch_native"] = lambda: steps(
                runner, self.topk, self.speculative_num_steps
            )
        else:
            backend_map["torch_native"] = lambda: native.TorchNativeAttnBackend(runner)
        return create(self, name, backend_map, message)

    factory._create_backend = create_backend
