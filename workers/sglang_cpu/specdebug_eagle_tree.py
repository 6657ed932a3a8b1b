"""EAGLE's two tree kernels in plain Python: what the CUDA ones of sgl_kernel compute, for small
batches; greedy only.

A draft tree of one request has `draft_tokens` nodes, node 0 being the last verified token. Tensors
keep SGLang's names (its `retrive` included) and are written in place, as the kernels do.
"""

from __future__ import annotations

from typing import Any

import torch

Tensor = Any


def build_tree(
    parent_list: Tensor,
    selected_index: Tensor,
    verified_seq_len: Tensor,
    tree_mask: Tensor,
    positions: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    topk: int,
    depth: int,
    draft_token_num: int,
    tree_mask_mode: int = 0,
) -> None:
    """Fill mask, positions and links of each request's tree.

    `selected_index` [requests, draft_tokens - 1] numbers the chosen candidates, topk to a parent;
    `parent_list` says which candidate each group of topk was expanded from. The mask is the full
    one, [draft_tokens, length + draft_tokens] per request, all requests behind one another.
    """
    at = 0
    for row, length in enumerate(verified_seq_len.tolist()):
        chosen = selected_index[row].tolist()
        expanded = parent_list[row].tolist() if parent_list.numel() else []
        parents = [-1]
        for candidate in chosen:
            group = candidate // topk
            parents.append(0 if group == 0 else chosen.index(int(expanded[group])) + 1)
        first = row * draft_token_num
        retrive_index[row] = torch.arange(first, first + draft_token_num)
        width = length + draft_token_num
        mask = torch.zeros(draft_token_num, width, dtype=torch.bool)
        mask[:, :length] = True
        for node in range(draft_token_num):
            ancestors = _line(node, parents)
            mask[node, [length + ancestor for ancestor in ancestors]] = True
            positions[first + node] = length + len(ancestors) - 1
        tree_mask[at : at + draft_token_num * width] = mask.flatten()
        at += draft_token_num * width
        # From the last to the first, so that siblings are linked in ascending order.
        for node in range(draft_token_num - 1, 0, -1):
            retrive_next_sibling[row, node] = retrive_next_token[row, parents[node]]
            retrive_next_token[row, parents[node]] = node


def _line(node: int, parents: list[int]) -> list[int]:
    """The node and its ancestors up to the root."""
    line = []
    while node != -1:
        line.append(node)
        node = parents[node]
    return line


def verify_greedy(
    predicts: Tensor,
    accept_index: Tensor,
    accept_token_num: Tensor,
    candidates: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    target_predict: Tensor,
    topk: int = -1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Walk each tree as far as the target agrees; the token after the last agreed one is its bonus.

    `candidates` [requests, draft_tokens], `accept_index` [requests, steps + 1].
    """
    most = accept_index.shape[1]
    for row in range(candidates.shape[0]):
        tokens, places = candidates[row].tolist(), retrive_index[row].tolist()
        children, siblings = retrive_next_token[row].tolist(), retrive_next_sibling[row].tolist()
        wanted = target_predict[row].tolist()
        node = accepted = 0
        accept_index[row, 0] = places[0]
        while accepted + 1 < most:
            child = children[node]
            while child != -1 and tokens[child] != wanted[node]:
                child = siblings[child]
            if child == -1:
                break
            predicts[places[node]] = wanted[node]
            node = child
            accepted += 1
            accept_index[row, accepted] = places[node]
        accept_token_num[row] = accepted
        predicts[places[node]] = wanted[node]
    return predicts, accept_index, accept_token_num
