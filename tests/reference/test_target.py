"""The target's cached serving pass against its plain training pass."""

import torch

from specdebug.reference.target import Target

IDS = torch.tensor([3, 17, 5, 5, 31, 0, 22, 9, 14, 38, 2])


@torch.inference_mode()
def test_serving_in_pieces_gives_the_logits_of_one_pass(tiny_target: Target) -> None:
    whole, _ = tiny_target(IDS[None])
    cache = tiny_target.new_cache()
    pieces = [tiny_target.step(part, cache)[0] for part in torch.split(IDS, [4, 1, 3, 1, 2])]
    assert cache.used == len(IDS)
    torch.testing.assert_close(torch.cat(pieces), whole[0], rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_captured_states_are_the_numbered_hidden_states_in_layer_order(
    tiny_target: Target,
) -> None:
    _, states = tiny_target(IDS[None])
    _, captured = tiny_target.step(IDS, tiny_target.new_cache(), (0, 2, 4))
    expected = torch.cat([states[k][0] for k in (0, 2, 4)], -1)
    torch.testing.assert_close(captured, expected, rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_no_capture_gives_width_zero(tiny_target: Target) -> None:
    _, captured = tiny_target.step(IDS, tiny_target.new_cache())
    assert captured.shape == (len(IDS), 0)


@torch.inference_mode()
def test_setting_the_cache_back_forgets_the_rejected_tokens(tiny_target: Target) -> None:
    cache = tiny_target.new_cache()
    tiny_target.step(IDS[:5], cache)
    tiny_target.step(torch.tensor([7, 7, 7]), cache)
    cache.used = 5
    after, _ = tiny_target.step(IDS[5:], cache)
    clean, _ = tiny_target(IDS[None])
    torch.testing.assert_close(after, clean[0, 5:], rtol=1e-4, atol=1e-5)
