"""Norm and rotary positions against plain formulas."""

import torch

from specdebug.reference.layers import RMSNorm, rope_table, rotate
from tests.reference.conftest import tiny_shape


@torch.inference_mode()
def test_the_quick_norm_equals_the_exact_one_also_for_tiny_values() -> None:
    norm = RMSNorm(16, 1e-5)
    norm.weight.data = torch.linspace(0.5, 2, 16)
    for scale in (1e-4, 1.0, 1e3):
        x = torch.randn(5, 16) * scale
        torch.testing.assert_close(norm.rows(x), norm(x), rtol=1e-5, atol=1e-7)


def test_rotation_keeps_lengths_and_turns_by_the_position() -> None:
    shape = tiny_shape()
    cos, sin = rope_table(shape)
    x = torch.randn(3, shape.head_dim)
    turned = rotate(x, cos[4:7], sin[4:7])
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    half = shape.head_dim // 2
    angle = torch.tensor(4.0)  # the first pair turns by one radian a position
    expected = x[0, 0] * angle.cos() - x[0, half] * angle.sin()
    torch.testing.assert_close(turned[0, 0], expected)


def test_only_the_distance_of_two_positions_matters() -> None:
    cos, sin = rope_table(tiny_shape())
    query, key = torch.randn(2, 1, 8)
    near = (rotate(query, cos[9:10], sin[9:10]) * rotate(key, cos[4:5], sin[4:5])).sum()
    far = (rotate(query, cos[25:26], sin[25:26]) * rotate(key, cos[20:21], sin[20:21])).sum()
    torch.testing.assert_close(near, far, rtol=1e-4, atol=1e-4)
