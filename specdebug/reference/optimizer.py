"""Muon in fp32, for training small matrices on a CPU; not a general optimizer.

torch.optim.Muon runs its Newton-Schulz iteration in bf16, which CPUs without AMX do a hundred
times slower than fp32 (0.8 against 80 GFLOPS where it was measured).
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

# Quintic Newton-Schulz coefficients, Keller Jordan, "Muon", 2024.
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


class Muon:
    """Momentum, then the nearest orthogonal matrix; same-shaped matrices go through together."""

    def __init__(self, params: Iterable[nn.Parameter], lr: float, momentum: float = 0.95) -> None:
        self.groups: dict[tuple[int, ...], list[nn.Parameter]] = {}
        for param in params:
            self.groups.setdefault(tuple(param.shape), []).append(param)
        self.buffers = {
            shape: torch.zeros(len(group), *shape) for shape, group in self.groups.items()
        }
        self.lr = lr
        self.momentum = momentum

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for group in self.groups.values():
            for param in group:
                param.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every matrix by lr along its orthogonalised Nesterov momentum."""
        a, b, c = NEWTON_SCHULZ
        for shape, group in self.groups.items():
            grads = torch.stack([_grad(param) for param in group])
            buffer = self.buffers[shape]
            buffer.lerp_(grads, 1 - self.momentum)
            update = grads.lerp(buffer, self.momentum)
            tall = shape[0] > shape[1]
            if tall:
                update = update.transpose(1, 2)
            update = update / (update.norm(dim=(1, 2), keepdim=True) + 1e-7)
            for _ in range(5):
                gram = update @ update.transpose(1, 2)
                update = a * update + (b * gram + c * gram @ gram) @ update
            if tall:
                update = update.transpose(1, 2)
            scale = max(1.0, shape[0] / shape[1]) ** 0.5
            for param, move in zip(group, update, strict=True):
                param.add_(move, alpha=-self.lr * scale)


def _grad(param: nn.Parameter) -> Tensor:
    if param.grad is None:
        raise RuntimeError("Muon.step() before backward(): a parameter has no gradient")
    return param.grad
