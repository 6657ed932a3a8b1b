"""What a file is, told from its content and never from its name; reads the start, judges nothing
inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "command",
    "server-log",
    "vllm-log",
    "server-info",
    "metrics",
    "generate-answers",
    "bench",
    "draft-config",
    "target-config",
    "safetensors",
    "safetensors-header",
    "notes",
    "text",
    "unusable",
]


@dataclass(frozen=True)
class Recognised:
    """`reason` says why: what was seen for a kind, what is wrong (and what to do) for "unusable"."""

    kind: Kind
    reason: str


def recognise(name: str, content: bytes | str) -> Recognised:
    """Tell the kind of one input; `content` may be its first megabyte. Never raises on content."""
    raise NotImplementedError
