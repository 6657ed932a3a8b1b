"""Which hidden states the target hands to the draft, given the draft's config; moves no tensors.

Written for Llama targets as the releases in release.py serve them: an explicit id k means the
OUTPUT of layer k (counted from 0), which is hidden_states[k + 1]. Without ids the release captures
hidden_states [2, n // 2, n - 3]. States arrive in layer order whatever the order of the list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EAGLE_KEY = "eagle_config"
LAYER_IDS_KEY = "eagle_aux_hidden_state_layer_ids"
EMBEDDING_ID = -1
# An id names the output of a layer, hidden_states[id + 1], in every release for Llama targets. With
# 0 it names the input, as in the DeepSeek family from 0.5.13 on for ids that begin with 0.
ID_OFFSET = 1


class CaptureError(Exception):
    """Layer ids that cannot be captured; the message names the file, the key and what to do."""


@dataclass(frozen=True)
class Capture:
    """Captured hidden-state numbers in ascending order, and how they came about."""

    hidden_states: tuple[int, ...]
    layer_ids: tuple[int, ...] | None
    notes: tuple[str, ...]


def from_config(
    config: Mapping[str, Any],
    file: Path,
    *,
    num_layers: int,
    num_aux: int,
    id_offset: int = ID_OFFSET,
) -> Capture:
    """Read the ids from a draft config and resolve them for a target of `num_layers` layers.

    num_aux is the number of states the draft's fc takes. Raises CaptureError.
    """
    eagle = config.get(EAGLE_KEY)
    if eagle is not None and not isinstance(eagle, Mapping):
        raise CaptureError(f"{file}: {EAGLE_KEY} must be an object, found {eagle!r}")
    ids = None if eagle is None else eagle.get(LAYER_IDS_KEY)
    key = f"{EAGLE_KEY}.{LAYER_IDS_KEY}"
    if ids is None:
        states = tuple(sorted({2, num_layers // 2, num_layers - 3}))
        if len(states) != num_aux or states[0] < 0:
            raise CaptureError(
                f"{file}: no {key}, and the default layers {list(states)} of a {num_layers}-layer "
                f"target are not the {num_aux} states the draft's fc takes; set {key}"
            )
        note = f"no {key} in {file}: default hidden_states {list(states)} are captured"
        return Capture(states, None, (note,))
    if not isinstance(ids, list) or not all(type(k) is int for k in ids):
        raise CaptureError(f"{file}: {key} must be a list of whole numbers, found {ids!r}")
    return resolve(
        ids, f"{file}: {key}", num_layers=num_layers, num_aux=num_aux, id_offset=id_offset
    )


def resolve(
    ids: list[int], where: str, *, num_layers: int, num_aux: int, id_offset: int = ID_OFFSET
) -> Capture:
    """Ids -> hidden-state numbers; `where` opens every message. Raises CaptureError."""
    embedding = -id_offset
    for k in ids:
        if not embedding <= k < num_layers:
            raise CaptureError(
                f"{where}: id {k} is out of range, the target has layers 0 to {num_layers - 1} "
                f"({embedding} is the embedding)"
            )
        if k + id_offset == num_layers:
            raise CaptureError(
                f"{where}: id {k} is the output of the last layer, which is never captured; "
                f"the highest id that works is {num_layers - 1 - id_offset}"
            )
    states = tuple(sorted({k + id_offset for k in ids}))
    if len(states) != num_aux:
        raise CaptureError(
            f"{where}: {ids} gives {len(states)} different states, the draft's fc takes {num_aux}"
        )
    notes = []
    if id_offset and EMBEDDING_ID in ids:
        notes.append(
            f"{where} holds -1: capturing the embedding (hidden_states[0]). SGLang itself needs a "
            "patched model file for that; this engine does it without one"
        )
    if list(states) != [k + id_offset for k in ids]:
        notes.append(f"{where} {ids} is not ascending: states are captured in layer order")
    return Capture(states, tuple(ids), tuple(notes))
