"""The target: a small Llama with its KV cache and its captured hidden states; it drafts nothing."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specdebug.reference.layers import (
    MLP,
    Attention,
    KVCache,
    RMSNorm,
    Shape,
    init_matrix,
    rope_table,
    rotate,
)


class Layer(nn.Module):
    """One Llama decoder layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.attention = Attention(shape.hidden_size, shape)
        self.post_norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.mlp = MLP(shape.hidden_size, shape.intermediate_size)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Training pass over [B, T, hidden], causal, without a cache."""
        q, k, v = self.attention.split(self.input_norm(x))
        mixed = F.scaled_dot_product_attention(
            rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True
        )
        x = x + self.attention.merge(mixed)
        out: Tensor = x + self.mlp(self.post_norm(x))
        return out

    def cached(self, x: Tensor, cos: Tensor, sin: Tensor, cache: KVCache, layer: int) -> Tensor:
        """Serving pass over [T, hidden]."""
        x = x + self.attention.cached(self.input_norm.rows(x), cos, sin, cache, layer)
        return x + self.mlp.forward(self.post_norm.rows(x))


class Target(nn.Module):
    """Llama for causal language modelling, untied head, no biases.

    Hidden states are numbered as Hugging Face does: 0 is the embedding, k the output of layer k
    counted from 1 (that is, the input of layer k counted from 0), before the final norm.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))
        self.norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.head = nn.Linear(shape.hidden_size, shape.vocab_size, bias=False)
        cos, sin = rope_table(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.stack = [layer for layer in self.layers if isinstance(layer, Layer)]

    def reset(self) -> None:
        """Random start for training: residual branches begin at zero."""
        for layer in self.stack:
            init_matrix(layer.attention.qkv.weight)
            init_matrix(layer.mlp.gate_up.weight)
            nn.init.zeros_(layer.attention.out.weight)
            nn.init.zeros_(layer.mlp.down.weight)
        nn.init.normal_(self.embed.weight, 0.0, 0.3)
        nn.init.normal_(self.head.weight, 0.0, 0.05)

    def new_cache(self) -> KVCache:
        """An empty cache for one request."""
        return KVCache(self.shape, self.shape.num_hidden_layers)

    def forward(self, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
        """ids [B, T] -> logits [B, T, V] and all L + 1 hidden states, each [B, T, hidden]."""
        tokens = ids.shape[1]
        cos, sin = self.cos[:tokens], self.sin[:tokens]
        states = [self.embed(ids)]
        for layer in self.stack:
            states.append(layer(states[-1], cos, sin))
        return self.head(self.norm(states[-1])), states

    def step(
        self, ids: Tensor, cache: KVCache, capture: Sequence[int] = ()
    ) -> tuple[Tensor, Tensor]:
        """Run T new tokens behind the cache and keep them in it.

        ids [T]; capture holds hidden-state numbers in ascending order. Returns logits [T, V] and
        the captured states side by side, [T, len(capture) * hidden] (width 0 for no capture).
        """
        start, end = cache.used, cache.used + ids.shape[0]
        cos, sin = self.cos[start:end], self.sin[start:end]
        x = F.embedding(ids, self.embed.weight)
        kept = [x] if 0 in capture else []
        for number, layer in enumerate(self.stack):
            x = layer.cached(x, cos, sin, cache, number)
            if number + 1 in capture:
                kept.append(x)
        cache.used = end
        logits = F.linear(self.norm.rows(x), self.head.weight)
        return logits, torch.cat(kept, -1) if kept else x[:, :0]
