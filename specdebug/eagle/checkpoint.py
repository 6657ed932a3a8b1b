"""A draft checkpoint by its safetensors header: names, shapes, dtypes; weights are not read, save
small maps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specdebug.eagle.draft_config import DraftConfig, TargetConfig


@dataclass(frozen=True)
class TensorInfo:
    """One tensor; `offsets` are bytes from the end of the header, None in a header without them."""

    dtype: str
    shape: tuple[int, ...]
    offsets: tuple[int, int] | None = None


@dataclass(frozen=True)
class Checkpoint:
    """Tensor names to shapes and dtypes; `header_bytes` is the length of the header in a file, 0
    otherwise."""

    tensors: Mapping[str, TensorInfo]
    metadata: Mapping[str, str]
    header_bytes: int = 0


def read_header(path: str | os.PathLike[str]) -> Checkpoint:
    """Read the header of a safetensors file, nothing else.

    Raises ValueError saying what is wrong when it is none (truncated, a pointer file, an oversized
    header).
    """
    raise NotImplementedError


def header_from_bytes(start: bytes) -> Checkpoint:
    """The same from the first bytes of a file (an upload's beginning)."""
    raise NotImplementedError


def header_from_dict(data: Mapping[str, Any]) -> Checkpoint:
    """A header written as JSON: name -> {dtype, shape}. Raises ValueError if it is none."""
    raise NotImplementedError


def read_ints(path: str | os.PathLike[str], name: str, limit: int = 2_000_000) -> list[int]:
    """The values of one integer or boolean tensor (d2t, t2d). Raises ValueError if absent, float or
    too large."""
    raise NotImplementedError


@dataclass(frozen=True)
class MapProblem:
    """What is wrong with a d2t map, with the first offending index."""

    kind: str
    message: str
    index: int | None = None


def check_d2t(
    values: Sequence[int], draft_vocab: int | None, vocab: int | None
) -> list[MapProblem]:
    """Check a d2t of offsets: i + d2t[i] must increase strictly and stay inside the target's
    vocabulary."""
    raise NotImplementedError


@dataclass(frozen=True)
class CheckpointReport:
    """The checkpoint against its configs.

    `missing` are tensors the loader needs and does not find, `unread` names it skips in silence,
    `fc_in`/`fc_out` the fc shape, `expected_fc_in` = aux states * target hidden size.
    `map_problems` concern d2t and t2d presence and shape (values: check_d2t). `shape_problems` are
    (name, message).
    """

    missing: tuple[str, ...]
    unread: tuple[str, ...]
    fc_in: int | None
    fc_out: int | None
    expected_fc_in: int | None
    has_lm_head: bool
    has_embedding: bool
    has_d2t: bool
    has_t2d: bool
    map_problems: tuple[MapProblem, ...]
    shape_problems: tuple[tuple[str, str], ...]


def check(
    checkpoint: Checkpoint, draft: DraftConfig, target: TargetConfig | None = None
) -> CheckpointReport:
    """Hold an EAGLE-3 checkpoint against what its config promises and the engine's loader needs."""
    raise NotImplementedError
