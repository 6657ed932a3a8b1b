"""One decode line as an object; the columns of many are in decode_table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class DecodeLine:
    """One decode line.

    `line` is 1-based; `time` is as printed (no zone); `throughput` is tokens per second over all
    running requests; `accept_len` includes the bonus token; `graph` is None where the line does not
    say. `extra` keeps every other `key: value` as printed.
    """

    line: int
    time: datetime | None
    rank: str
    running: int | None
    queue: int | None
    tokens: int | None
    token_usage: float | None
    accept_len: float | None
    accept_rate: float | None
    graph: bool | None
    throughput: float | None
    extra: Mapping[str, str] = field(default_factory=dict)
