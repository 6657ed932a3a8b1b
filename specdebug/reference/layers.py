"""The Llama building blocks that target and draft share, with their KV cache; no whole model.

Shapes: T tokens, H heads, D = head size, C = tokens already in the cache. Serving runs one request
at a time and has no batch axis; training adds a leading batch axis and uses no cache.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Rows beyond max_position_embeddings: a chain may run past the end before it is cut.
SLACK = 128


@dataclass(frozen=True)
class Shape:
    """The sizes of a Llama-type model, in the words of its config.json."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    max_position_embeddings: int
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5

    @property
    def head_dim(self) -> int:
        """Size of one attention head."""
        return self.hidden_size // self.num_attention_heads


def rope_table(shape: Shape) -> tuple[Tensor, Tensor]:
    """Cosine and signed sine of the rotary angles, each [max_position + SLACK, D].

    The sine's first half is negated, so that `x * cos + roll(x, D/2) * sin` rotates (the usual
    "rotate half" form with one operation fewer).
    """
    size = shape.head_dim
    inverse = 1.0 / (shape.rope_theta ** (torch.arange(0, size, 2).float() / size))
    angles = torch.arange(shape.max_position_embeddings + SLACK).float()[:, None] * inverse
    sine = angles.sin()
    return torch.cat([angles.cos(), angles.cos()], -1), torch.cat([-sine, sine], -1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply rotary positions; x is [..., T, D], cos and sin [T, D]."""
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin


class RMSNorm(nn.Module):
    """x / rms(x) * weight."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps
        self.mean = torch.full((size, 1), 1 / size)
        self.floor = torch.full((1,), eps)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis; any leading shape."""
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)

    def rows(self, x: Tensor) -> Tensor:
        """The same over [T, hidden] in half the time: rms_norm has no fused CPU kernel."""
        return (x * torch.addmm(self.floor, x * x, self.mean).rsqrt_()).mul_(self.weight)


class MLP(nn.Module):
    """SwiGLU; gate and up projection share one matrix."""

    def __init__(self, hidden: int, intermediate: int) -> None:
        super().__init__()
        self.gate_up = nn.Linear(hidden, 2 * intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[..., hidden] -> [..., hidden]."""
        gate, up = F.linear(x, self.gate_up.weight).chunk(2, -1)
        return F.linear(F.silu(gate) * up, self.down.weight)


class Attention(nn.Module):
    """Causal self-attention; the input may be wider than the output (EAGLE-3 feeds 2 x hidden)."""

    def __init__(self, width_in: int, shape: Shape) -> None:
        super().__init__()
        self.heads, self.head_dim = shape.num_attention_heads, shape.head_dim
        self.qkv = nn.Linear(width_in, 3 * shape.hidden_size, bias=False)
        self.out = nn.Linear(shape.hidden_size, shape.hidden_size, bias=False)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[B, T, width_in] -> q, k, v, each [B, H, T, D]."""
        batch, tokens, _ = x.shape
        parts = self.qkv(x).view(batch, tokens, 3, self.heads, self.head_dim)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        return q, k, v

    def merge(self, mixed: Tensor) -> Tensor:
        """[B, H, T, D] -> [B, T, hidden]."""
        batch, heads, tokens, size = mixed.shape
        merged: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, tokens, heads * size))
        return merged

    def cached(self, x: Tensor, cos: Tensor, sin: Tensor, cache: "KVCache", layer: int) -> Tensor:
        """[T, width_in] -> [T, hidden]; writes T rows behind the cache's `used` rows, reads all."""
        tokens = x.shape[0]
        parts = F.linear(x, self.qkv.weight).view(tokens, 3 * self.heads, self.head_dim)
        parts = parts.transpose(0, 1)
        turned = rotate(parts[: 2 * self.heads], cos, sin)
        used, end = cache.used, cache.used + tokens
        keys, values = cache.keys[layer], cache.values[layer]
        keys[:, used:end] = turned[self.heads :]
        values[:, used:end] = parts[2 * self.heads :]
        mask = cache.mask[used:end, :end] if tokens > 1 else None
        mixed = F.scaled_dot_product_attention(
            turned[None, : self.heads], keys[None, :, :end], values[None, :, :end], attn_mask=mask
        )
        merged = mixed[0].transpose(0, 1).reshape(tokens, self.heads * self.head_dim)
        return F.linear(merged, self.out.weight)


class KVCache:
    """Keys and values of one request, allocated once; `used` rows are valid, the rest is scrap.

    Rejected draft tokens are dropped by setting `used` back: later rows are overwritten.
    """

    def __init__(self, shape: Shape, layers: int) -> None:
        rows = shape.max_position_embeddings + SLACK
        size = (layers, shape.num_attention_heads, rows, shape.head_dim)
        self.keys = torch.zeros(size)
        self.values = torch.zeros(size)
        self.mask = torch.ones(rows, rows, dtype=torch.bool).tril()
        self.used = 0

    @property
    def gib(self) -> float:
        """Size of keys and values together, in GiB."""
        return 2 * self.keys.numel() * self.keys.element_size() / (1 << 30)


def init_matrix(weight: Tensor) -> None:
    """Normal with half the usual fan-in scale: Muon sets the growth, not the start."""
    nn.init.normal_(weight, 0.0, 0.5 / math.sqrt(weight.shape[1]))
