"""The answer of /server_info (or /get_server_info), as JSON or pasted; not a log's dump."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specdebug.sglang.pasted import as_text, json_values, number, whole
from specdebug.sglang.releases import Release

# Keys of the answer that are no server arguments.
_STATE_KEYS = frozenset(
    {
        "internal_states",
        "status",
        "version",
        "max_total_num_tokens",
        "max_req_input_len",
        "launch_command",
        "startup_time",
        "kv_events",
        "use_mla_backend",
        "last_gen_throughput",
        "memory_usage",
        "effective_max_running_requests_per_dp",
        "avg_spec_accept_length",
        "step_time_dict",
        "_mx_config_cache",
        "load",
    }
)
_SIGNS = (
    "internal_states",
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_num_draft_tokens",
    "tp_size",
    "mem_fraction_static",
    "max_running_requests",
    "disable_cuda_graph",
)


@dataclass(frozen=True)
class RankState:
    """One data-parallel rank's internal state; None where the release does not report a figure.

    `avg_accept_len` averages everything since the start or the last flush, warm-up included.
    `memory_gb` maps weight, kvcache and graph to GB; `step_times` a batch size to seconds per step.
    """

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


def looks_like(data: Any) -> bool:
    """Whether a decoded value is such an answer."""
    return isinstance(data, Mapping) and sum(sign in data for sign in _SIGNS) >= 2


def read_server_info(text: str | bytes) -> ServerInfo:
    """Read the JSON answer; prose around it (a prompt line, a code fence) is skipped.

    Raises ValueError naming what is wrong when there is no such object in `text`.
    """
    seen = False
    for _, value in json_values(as_text(text)):
        seen = True
        if looks_like(value):
            return from_mapping(value)
    if seen:
        raise ValueError(
            "the JSON here is no /server_info answer: it has no internal_states and no arguments"
        )
    raise ValueError("no JSON object in it; paste the whole answer of /server_info")


def from_mapping(data: Mapping[str, Any]) -> ServerInfo:
    """The same from a decoded object (bench_serving embeds one as `server_info`)."""
    states = data.get("internal_states")
    ranks = (
        [state for state in states if isinstance(state, Mapping)]
        if isinstance(states, list)
        else [data]
    )
    version = data.get("version")
    if not isinstance(version, str) and ranks:
        version = ranks[0].get("version")
    command = data.get("launch_command")
    if isinstance(command, list):
        command = " ".join(str(word) for word in command)
    return ServerInfo(
        args={key: value for key, value in data.items() if key not in _STATE_KEYS},
        release=Release.find(version) if isinstance(version, str) else None,
        ranks=tuple(_rank(state) for state in ranks),
        launch_command=command if isinstance(command, str) else None,
        max_total_tokens=whole(data.get("max_total_num_tokens")),
        raw=data,
    )


def _rank(state: Mapping[str, Any]) -> RankState:
    memory: dict[str, float] = {}
    usage = state.get("memory_usage")
    for key, value in usage.items() if isinstance(usage, Mapping) else ():
        # From 0.5.23 on the graph's memory is split by phase.
        parts = value.items() if isinstance(value, Mapping) else [("", value)]
        for part, size in parts:
            if (found := number(size)) is not None and key != "token_capacity":
                memory[f"{key}.{part}" if part else str(key)] = found
    times: dict[str, tuple[float, ...]] = {}
    steps = state.get("step_time_dict")
    for batch, values in steps.items() if isinstance(steps, Mapping) else ():
        if isinstance(values, list):
            times[str(batch)] = tuple(t for t in map(number, values) if t is not None)
    return RankState(
        avg_accept_len=number(state.get("avg_spec_accept_length")),
        last_throughput=number(state.get("last_gen_throughput")),
        max_running=whole(state.get("effective_max_running_requests_per_dp")),
        memory_gb=memory,
        step_times=times,
        raw=state,
    )
