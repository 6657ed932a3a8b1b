"""The EAGLE-3 draft head: one layer over captured target states; it verifies nothing.

Semantics as SGLang's llama_eagle3.py has them: fc over the captured states, the un-normed fc output
as residual, one norm for the token embedding and one for the hidden state, the hidden state BEFORE
the final norm fed to the next draft step, an own head over a reduced vocabulary.
"""

import math

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


class Draft(nn.Module):
    """An EAGLE-3 head for a target of the same hidden size.

    `d2t` [draft vocabulary] holds offsets: target id = draft id + d2t[draft id]. `t2d` [vocabulary]
    is true for the target ids the draft can say.
    """

    cos: Tensor
    sin: Tensor
    d2t: Tensor
    t2d: Tensor
    target_ids: Tensor

    def __init__(self, shape: Shape, draft_vocab_size: int, num_aux: int = 3) -> None:
        super().__init__()
        hidden, eps = shape.hidden_size, shape.rms_norm_eps
        self.shape, self.num_aux = shape, num_aux
        self.embed = nn.Embedding(shape.vocab_size, hidden)
        self.embed.weight.requires_grad_(False)  # shared with the target and never trained
        self.fc = nn.Linear(num_aux * hidden, hidden, bias=False)
        self.input_norm = RMSNorm(hidden, eps)
        self.hidden_norm = RMSNorm(hidden, eps)
        self.attention = Attention(2 * hidden, shape)
        self.post_norm = RMSNorm(hidden, eps)
        self.mlp = MLP(hidden, shape.intermediate_size)
        self.norm = RMSNorm(hidden, eps)
        self.head = nn.Linear(hidden, draft_vocab_size, bias=False)
        cos, sin = rope_table(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.set_vocabulary(torch.zeros(draft_vocab_size, dtype=torch.long))

    def set_vocabulary(self, d2t: Tensor) -> None:
        """Install the offsets; derives the target id of every draft id and the t2d mask."""
        ids = d2t + torch.arange(d2t.shape[0])
        t2d = torch.zeros(self.shape.vocab_size, dtype=torch.bool)
        t2d[ids] = True
        self.register_buffer("d2t", d2t, persistent=False)
        self.register_buffer("t2d", t2d, persistent=False)
        self.register_buffer("target_ids", ids, persistent=False)

    def reset(self) -> None:
        """Random start for training."""
        for weight in (self.fc.weight, self.attention.qkv.weight, self.mlp.gate_up.weight):
            init_matrix(weight)
        nn.init.zeros_(self.attention.out.weight)
        nn.init.zeros_(self.mlp.down.weight)

    def new_cache(self) -> KVCache:
        """An empty cache for one request."""
        return KVCache(self.shape, 1)

    def step(
        self, ids: Tensor, hidden: Tensor, cache: KVCache, position_offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Run T tokens behind the cache and keep them in it; logits of the last one only.

        ids [T]; hidden [T, hidden]: `fuse(captured)` at a draft extend, the previous step's hidden
        state in the decode chain. position_offset shifts the rotary position, not the cache row.
        Returns logits [draft vocabulary] and the last token's hidden state [1, hidden].
        """
        start = cache.used + position_offset
        end = start + ids.shape[0]
        token = self.input_norm.rows(F.embedding(ids, self.embed.weight))
        mixed = self.attention.cached(
            torch.cat([token, self.hidden_norm.rows(hidden)], -1),
            self.cos[start:end],
            self.sin[start:end],
            cache,
            0,
        )
        cache.used += ids.shape[0]
        x = hidden[-1:] + mixed[-1:]
        x = x + self.mlp.forward(self.post_norm.rows(x))
        return F.linear(self.norm.rows(x), self.head.weight)[0], x

    def fuse(self, captured: Tensor) -> Tensor:
        """Captured states side by side [..., num_aux * hidden] -> [..., hidden]."""
        return F.linear(captured, self.fc.weight)

    def unroll(self, captured: Tensor, ids: Tensor, depth: int) -> list[Tensor]:
        """Training-time test: `depth` chained draft steps from every position at once.

        captured [B, T, num_aux * hidden] at positions 0..T-1; ids [B, T + depth - 1] or longer,
        where ids[:, t + k] is the token that step k reads at row t (so ids start at token 1).
        Row t of step k attends to the first step's keys up to t and to its own chain's later keys:
        the same mixture that the cached serving path sees. Returns logits [B, T, draft vocabulary]
        per step.
        """
        return self.unroll_fused(self.fuse(captured), ids, depth)

    def unroll_fused(self, hidden: Tensor, ids: Tensor, depth: int) -> list[Tensor]:
        """The same from states that are fused already, [B, T, hidden]."""
        tokens = hidden.shape[1]
        causal = torch.ones(tokens, tokens, dtype=torch.bool).tril()
        scale = 1 / math.sqrt(self.shape.head_dim)
        logits: list[Tensor] = []
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for k in range(depth):
            token = self.input_norm(self.embed(ids[:, k : k + tokens]))
            both = torch.cat([token, self.hidden_norm(hidden)], -1)
            query, key, value = self.attention.split(both)
            cos, sin = self.cos[k : k + tokens], self.sin[k : k + tokens]
            query = rotate(query, cos, sin)
            keys.append(rotate(key, cos, sin))
            values.append(value)
            first = (query @ keys[0].transpose(-1, -2) * scale).masked_fill(~causal, -1e9)
            chain = [(query * key).sum(-1, keepdim=True) * scale for key in keys[1:]]
            weight = torch.softmax(torch.cat([first, *chain], -1), -1)
            mixed = weight[..., :tokens] @ values[0]
            for j, later in enumerate(values[1:]):
                mixed = mixed + weight[..., tokens + j : tokens + j + 1] * later
            x = hidden + self.attention.merge(mixed)
            hidden = x + self.mlp(self.post_norm(x))
            logits.append(self.head(self.norm(hidden)))
        return logits
