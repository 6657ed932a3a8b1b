"""Muon's step: orthogonal directions of one size."""

import pytest
import torch
from torch import nn

from specdebug.reference.optimizer import Muon


@pytest.mark.parametrize("size", [(24, 16), (16, 24), (16, 16)])
def test_a_step_moves_along_a_nearly_orthogonal_matrix(size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    weight = nn.Parameter(torch.zeros(size))
    weight.grad = torch.randn(size)
    Muon([weight], lr=1.0).step()
    scale = max(1.0, size[0] / size[1]) ** 0.5
    singular = torch.linalg.svdvals(weight.detach()) / scale
    assert float(singular.min()) > 0.3
    assert float(singular.max()) < 1.3


def test_it_goes_downhill() -> None:
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(8, 8))
    goal = torch.randn(8, 8)
    muon = Muon([weight], lr=0.05)
    before = float((weight.detach() - goal).pow(2).sum())
    for _ in range(100):
        muon.zero_grad()
        (weight - goal).pow(2).sum().backward()  # type: ignore[no-untyped-call]
        muon.step()
    assert float((weight.detach() - goal).pow(2).sum()) < before / 4


def test_a_step_without_a_gradient_says_so() -> None:
    with pytest.raises(RuntimeError, match="no gradient"):
        Muon([nn.Parameter(torch.zeros(2, 2))], lr=0.1).step()
