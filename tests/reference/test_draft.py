"""The draft's training unroll against its cached serving path, and its vocabulary map."""

import pytest
import torch
from torch import Tensor

from specdebug.reference.draft import Draft
from specdebug.reference.target import Target

IDS = torch.tensor([3, 17, 5, 5, 31, 0, 22, 9, 14, 38, 2, 8])
DEPTH = 4


def served(target: Target, draft: Draft, rows: int, position_offset: int) -> list[Tensor]:
    """Logits of a chain of DEPTH served behind `rows` extended tokens, fed with IDS."""
    _, captured = target.step(IDS[:rows], target.new_cache(), (0, 2, 4))
    cache = draft.new_cache()
    logits, hidden = draft.step(IDS[1 : rows + 1], draft.fuse(captured), cache)
    out = [logits]
    for k in range(1, DEPTH):
        token = IDS[rows + k : rows + k + 1]
        logits, hidden = draft.step(token, hidden, cache, position_offset)
        out.append(logits)
    return out


@torch.inference_mode()
@pytest.mark.parametrize("rows", [1, 3, 7])
def test_the_training_unroll_equals_the_cached_serving_path(
    tiny_target: Target, tiny_draft: Draft, rows: int
) -> None:
    _, states = tiny_target(IDS[None])
    captured = torch.cat([states[k] for k in (0, 2, 4)], -1)[:, :rows]
    unrolled = tiny_draft.unroll(captured, IDS[None, 1:], DEPTH)
    for k, logits in enumerate(served(tiny_target, tiny_draft, rows, 0)):
        torch.testing.assert_close(logits, unrolled[k][0, rows - 1], rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_the_position_offset_of_older_releases_changes_the_chain_but_not_the_extend(
    tiny_target: Target, tiny_draft: Draft
) -> None:
    straight = served(tiny_target, tiny_draft, 5, 0)
    skipping = served(tiny_target, tiny_draft, 5, 1)
    assert torch.equal(straight[0], skipping[0])
    assert not torch.allclose(straight[1], skipping[1], atol=1e-4)


def test_d2t_holds_offsets_from_draft_ids_to_target_ids(tiny_draft: Draft) -> None:
    tiny_draft.set_vocabulary(torch.tensor([0] * 10 + [10] * 20))
    assert tiny_draft.target_ids.tolist() == [*range(10), *range(20, 40)]
    assert tiny_draft.t2d.nonzero().flatten().tolist() == [*range(10), *range(20, 40)]
