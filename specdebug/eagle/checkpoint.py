"""A draft checkpoint by its safetensors header: names, shapes, dtypes; of weights, small maps."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from specdebug.eagle.draft_config import DraftConfig, TargetConfig

_MAX_HEADER = 100_000_000
_MAX_TENSORS = 200_000
_INTS = {"I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "BOOL": "B"}


@dataclass(frozen=True)
class TensorInfo:
    """One tensor; `offsets` are bytes from the end of the header, None in a header without them."""

    dtype: str
    shape: tuple[int, ...]
    offsets: tuple[int, int] | None = None


@dataclass(frozen=True)
class Checkpoint:
    """Tensor names to shapes and dtypes; `header_bytes` is its length in a file, else 0."""

    tensors: Mapping[str, TensorInfo]
    metadata: Mapping[str, str]
    header_bytes: int = 0


def read_header(path: str | os.PathLike[str]) -> Checkpoint:
    """Read the header of a safetensors file, nothing else.

    Raises ValueError saying what is wrong when it is none (cut short, a pointer file, too large).
    """
    size = Path(path).stat().st_size
    with Path(path).open("rb") as file:
        start = file.read(8)
        length = _header_length(start, size)
        return _parse(file.read(length), length)


def header_from_bytes(start: bytes) -> Checkpoint:
    """The same from the first bytes of a file (an upload's beginning)."""
    length = _header_length(start, None)
    if len(start) < 8 + length:
        raise ValueError(
            f"the safetensors header is {length:,} bytes long and only {len(start) - 8:,} are "
            "here: send more of the file, or the header as JSON"
        )
    return _parse(start[8 : 8 + length], length)


def _header_length(start: bytes, size: int | None) -> int:
    if start.startswith(b"version"):
        raise ValueError(
            "this is a Git LFS pointer and not the weights: fetch the file (git lfs pull) first"
        )
    if len(start) < 8:
        raise ValueError("too short for a safetensors file: it begins with eight bytes of length")
    (length,) = struct.unpack("<Q", start[:8])
    if not 2 <= length <= _MAX_HEADER:
        raise ValueError(
            f"not a safetensors file: its first eight bytes would mean a header of {length:,} bytes"
        )
    if size is not None and length + 8 > size:
        raise ValueError(
            f"the safetensors file is cut short: a header of {length:,} bytes, a file of {size:,}"
        )
    return int(length)


def _parse(raw: bytes, length: int) -> Checkpoint:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the safetensors header is no JSON: {error}") from None
    found = header_from_dict(data)
    return Checkpoint(found.tensors, found.metadata, length)


def header_from_dict(data: Mapping[str, Any]) -> Checkpoint:
    """A header written as JSON: name -> {dtype, shape}. Raises ValueError if it is none."""
    if not isinstance(data, Mapping) or not data:
        raise ValueError("a safetensors header is an object of tensor names")
    if len(data) > _MAX_TENSORS:
        raise ValueError(f"{len(data):,} tensors are more than any draft has: not a draft's header")
    tensors: dict[str, TensorInfo] = {}
    for name, entry in data.items():
        if name == "__metadata__":
            continue
        shape = entry.get("shape") if isinstance(entry, Mapping) else None
        dtype = entry.get("dtype") if isinstance(entry, Mapping) else None
        if not (
            isinstance(dtype, str)
            and isinstance(shape, list)
            and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape)
        ):
            raise ValueError(f"tensor {name!r:.80} has no dtype and shape")
        offsets = entry.get("data_offsets")
        pair = (
            (offsets[0], offsets[1])
            if isinstance(offsets, list)
            and len(offsets) == 2
            and all(isinstance(n, int) and n >= 0 for n in offsets)
            else None
        )
        tensors[name] = TensorInfo(dtype, tuple(shape), pair)
    meta = data.get("__metadata__")
    metadata = {str(k): str(v) for k, v in meta.items()} if isinstance(meta, Mapping) else {}
    return Checkpoint(tensors, metadata)


def read_ints(path: str | os.PathLike[str], name: str, limit: int = 2_000_000) -> list[int]:
    """The values of one integer or boolean tensor (d2t, t2d).

    Raises ValueError if it is absent, not of whole numbers, or longer than `limit`.
    """
    found = read_header(path)
    info = found.tensors.get(name)
    if info is None or info.offsets is None:
        raise ValueError(f"no tensor {name!r} in this checkpoint")
    code = _INTS.get(info.dtype)
    if code is None:
        raise ValueError(f"{name} is {info.dtype}, not whole numbers")
    count = 1
    for size in info.shape:
        count *= size
    width = struct.calcsize(code)
    if count > limit or info.offsets[1] - info.offsets[0] != count * width:
        raise ValueError(f"{name} holds {count:,} values, or its offsets do not fit its shape")
    with Path(path).open("rb") as file:
        file.seek(8 + found.header_bytes + info.offsets[0])
        raw = file.read(count * width)
    if len(raw) != count * width:
        raise ValueError(f"the file is cut short inside {name}")
    return list(struct.unpack(f"<{count}{code}", raw))


@dataclass(frozen=True)
class MapProblem:
    """What is wrong with a vocabulary map, with the first offending index."""

    kind: str
    message: str
    index: int | None = None


def check_d2t(
    values: Sequence[int], draft_vocab: int | None, vocab: int | None
) -> list[MapProblem]:
    """Check a d2t of offsets: i + d2t[i] must increase strictly and stay inside the vocabulary."""
    out: list[MapProblem] = []
    if draft_vocab is not None and len(values) != draft_vocab:
        out.append(
            MapProblem("length", f"d2t has {len(values)} entries for {draft_vocab} draft tokens")
        )
    rising = all(a < b for a, b in pairwise(values))
    targets = [at + value for at, value in enumerate(values)]
    outside = next((i for i, t in enumerate(targets) if t < 0 or (vocab and t >= vocab)), None)
    # Offsets can be at most vocab - draft_vocab; ids rise to the end of the vocabulary.
    room = vocab - len(values) if vocab else None
    if (
        len(values) > 1
        and rising
        and (outside is not None or (room is not None and values[-1] > room))
    ):
        out.append(
            MapProblem(
                "absolute",
                "d2t holds target ids; the engine adds each entry to its index, so it must hold "
                "target id minus draft id",
                outside,
            )
        )
        return out
    if outside is not None:
        out.append(
            MapProblem(
                "out-of-range",
                f"draft token {outside} maps to {targets[outside]}, outside the target's "
                f"{vocab} tokens",
                outside,
            )
        )
    falls = next((i for i in range(1, len(targets)) if targets[i] <= targets[i - 1]), None)
    if falls is not None:
        out.append(
            MapProblem(
                "not-increasing",
                f"draft tokens {falls - 1} and {falls} map to {targets[falls - 1]} and "
                f"{targets[falls]}: the map must rise",
                falls,
            )
        )
    return out


@dataclass(frozen=True)
class CheckpointReport:
    """The checkpoint against its configs.

    `missing` are tensors the loader needs and does not find, `unread` names it skips in silence,
    `fc_in`/`fc_out` the fc shape, `expected_fc_in` = aux states * target hidden size.
    `map_problems` concern d2t and t2d presence and shape (values: check_d2t). `shape_problems` are
    (name, message). A missing embedding is no fault where the target's is shared (equal widths).
    `draft_vocab` and `vocab` are the sizes the check went by.
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
    draft_vocab: int | None = None
    vocab: int | None = None


# What the loader of a Llama EAGLE-3 draft fills (llama_eagle3.py, 0.5.10.post1 and later): each
# entry is one parameter, its alternatives are names that reach it.
_LAYER = (
    ("midlayer.input_layernorm.weight",),
    ("midlayer.hidden_norm.weight",),
    ("midlayer.post_attention_layernorm.weight",),
    ("midlayer.self_attn.q_proj.weight", "midlayer.self_attn.qkv_proj.weight"),
    ("midlayer.self_attn.k_proj.weight", "midlayer.self_attn.qkv_proj.weight"),
    ("midlayer.self_attn.v_proj.weight", "midlayer.self_attn.qkv_proj.weight"),
    ("midlayer.self_attn.o_proj.weight",),
    ("midlayer.mlp.gate_proj.weight", "midlayer.mlp.gate_up_proj.weight"),
    ("midlayer.mlp.up_proj.weight", "midlayer.mlp.gate_up_proj.weight"),
    ("midlayer.mlp.down_proj.weight",),
)
_READ = re.compile(
    r"(?:model\.)?(?:fc\.(?:weight|bias)|norm\.weight|embed_tokens\.weight|lm_head\.weight"
    r"|(?:midlayer|additional_layers\.\d+)\..+|fc_norm\..+|norm_before_fc\..+|input_norm\..+)$"
    r"|.*(?:d2t|t2d).*|.*rotary_emb\.inv_freq$"
)


def check(
    checkpoint: Checkpoint, draft: DraftConfig, target: TargetConfig | None = None
) -> CheckpointReport:
    """Hold an EAGLE-3 checkpoint against what its config promises and the engine's loader needs."""
    tensors = {name.removeprefix("model."): info for name, info in checkpoint.tensors.items()}
    fc = tensors.get("fc.weight")
    fc_out, fc_in = fc.shape if fc is not None and len(fc.shape) == 2 else (None, None)
    width = (
        draft.target_hidden_size or (target.hidden_size if target else None) or draft.hidden_size
    )
    head = "lm_head.weight" in tensors
    embedding = "embed_tokens.weight" in tensors
    needed: list[tuple[str, ...]] = [("fc.weight",), ("norm.weight",)]
    if not draft.is_mla:
        needed += _LAYER
    if not draft.tie_word_embeddings and draft.draft_vocab_size is not None:
        needed.append(("lm_head.weight",))
    own_width = draft.target_hidden_size not in (None, draft.hidden_size)
    if own_width or draft.tie_word_embeddings:
        needed.append(("embed_tokens.weight",))
    missing = [names[0] for names in needed if not any(name in tensors for name in names)]
    unread = [] if draft.is_mla else [name for name in checkpoint.tensors if not _READ.match(name)]
    maps = {kind: _map(tensors, kind) for kind in ("d2t", "t2d")}
    return CheckpointReport(
        missing=tuple(missing),
        unread=tuple(sorted(unread)),
        fc_in=fc_in,
        fc_out=fc_out,
        expected_fc_in=draft.aux_count * width if width else None,
        has_lm_head=head,
        has_embedding=embedding,
        has_d2t=maps["d2t"] is not None,
        has_t2d=maps["t2d"] is not None,
        map_problems=tuple(_map_problems(maps, draft, target)),
        shape_problems=tuple(_shape_problems(tensors, draft)),
        draft_vocab=draft.draft_vocab_size,
        vocab=(target.vocab_size if target else None) or draft.vocab_size,
    )


def draft_betrayed(checkpoint: Checkpoint) -> DraftConfig | None:
    """The config that an EAGLE-3 checkpoint's own tensors betray; None when it is no such draft.

    Only what cannot be otherwise: hidden size and both vocabularies. Whether the head is tied or
    taken from the target stays open where there is neither a head nor a d2t.
    """
    tensors = {name.removeprefix("model."): info for name, info in checkpoint.tensors.items()}
    maps = {kind: _map(tensors, kind) for kind in ("d2t", "t2d")}
    if not any(name.startswith("midlayer.") for name in tensors) and maps["d2t"] is None:
        return None

    def rows(info: TensorInfo | None) -> int | None:
        return info.shape[0] if info is not None and info.shape else None

    return DraftConfig.from_dict(
        {
            "architectures": ["LlamaForCausalLMEagle3"],
            "hidden_size": rows(tensors.get("norm.weight") or tensors.get("fc.weight")),
            "draft_vocab_size": rows(tensors.get("lm_head.weight")) or rows(maps["d2t"]),
            "vocab_size": rows(tensors.get("embed_tokens.weight")) or rows(maps["t2d"]),
        }
    )


def _map(tensors: Mapping[str, TensorInfo], kind: str) -> TensorInfo | None:
    return next((info for name, info in tensors.items() if kind in name), None)


def _map_problems(
    maps: Mapping[str, TensorInfo | None], draft: DraftConfig, target: TargetConfig | None
) -> list[MapProblem]:
    out: list[MapProblem] = []
    vocab = (target.vocab_size if target else None) or draft.vocab_size
    small, d2t, t2d = draft.draft_vocab_size, maps["d2t"], maps["t2d"]
    if small is not None and vocab is not None:
        if small > vocab:
            out.append(
                MapProblem("too-large", f"draft_vocab_size {small} is above the target's {vocab}")
            )
        elif small < vocab and d2t is None:
            more = "; its t2d is not read by SGLang" if t2d is not None else ""
            out.append(
                MapProblem(
                    "no-map",
                    f"the draft proposes from {small} of {vocab} tokens and the checkpoint has no "
                    f"d2t to say which{more}",
                )
            )
    if d2t is not None:
        if small is not None and d2t.shape != (small,):
            out.append(
                MapProblem("length", f"d2t has shape {list(d2t.shape)} for {small} draft tokens")
            )
        if d2t.dtype not in _INTS:
            out.append(MapProblem("dtype", f"d2t is {d2t.dtype}, not whole numbers"))
    if t2d is not None and vocab is not None and t2d.shape != (vocab,):
        out.append(
            MapProblem("t2d-length", f"t2d has shape {list(t2d.shape)} for {vocab} target tokens")
        )
    return out


def _shape_problems(tensors: Mapping[str, TensorInfo], draft: DraftConfig) -> list[tuple[str, str]]:
    hidden, heads = draft.hidden_size, draft.num_attention_heads
    size = draft.head_dim or (hidden // heads if hidden and heads else None)
    key_heads = draft.num_key_value_heads or heads
    expected: dict[str, tuple[int | None, int | None]] = {
        "lm_head.weight": (draft.draft_vocab_size or draft.vocab_size, hidden),
        "embed_tokens.weight": (draft.vocab_size, hidden),
        "fc.weight": (hidden, None),
    }
    if not draft.is_mla:
        twice = 2 * hidden if hidden else None
        expected |= {
            "midlayer.self_attn.q_proj.weight": (heads * size if heads and size else None, twice),
            "midlayer.self_attn.k_proj.weight": (
                key_heads * size if key_heads and size else None,
                twice,
            ),
            "midlayer.mlp.gate_proj.weight": (draft.intermediate_size, hidden),
            "midlayer.mlp.down_proj.weight": (hidden, draft.intermediate_size),
        }
    out = []
    for name, wanted in expected.items():
        info = tensors.get(name)
        if info is None:
            continue
        fits = len(info.shape) == 2 and all(
            want is None or got == want for want, got in zip(wanted, info.shape, strict=True)
        )
        if not fits and not info.dtype.startswith("U"):
            shown = " x ".join("?" if want is None else str(want) for want in wanted)
            out.append((name, f"has shape {list(info.shape)}, the config says {shown}"))
    return out
