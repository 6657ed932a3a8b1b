"""The answer of /server_info (or /get_server_info), as JSON or pasted; not the log's server_args
line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specdebug.sglang.releases import Release


@dataclass(frozen=True)
class RankState:
    """One data-parallel rank's internal state; figures are None where the release does not report
    them."""

    avg_accept_len: float | None
    last_throughput: float | None
    max_running: int | None
    memory_gb: Mapping[str, float]
    step_times: Mapping[str, tuple[float, ...]]
    raw: Mapping[str, Any]


@dataclass(frozen=True)
class ServerInfo:
    """Effective arguments and state of a running server.

    `args` holds the effective server arguments only; `launch_command` is there from 0.5.20 on.
    """

    args: Mapping[str, Any]
    release: Release | None
    ranks: tuple[RankState, ...]
    launch_command: str | None
    max_total_tokens: int | None
    raw: Mapping[str, Any]


def read_server_info(text: str | bytes) -> ServerInfo:
    """Read the JSON answer; prose around it (a prompt line, a code fence) is skipped.

    Raises ValueError naming what is wrong when there is no such object in `text`.
    """
    raise NotImplementedError


def from_mapping(data: Mapping[str, Any]) -> ServerInfo:
    """The same from a decoded object (bench_serving embeds one as `server_info`)."""
    raise NotImplementedError
