"""vLLM's speculative figures in SGLang's words: log lines, counters, flags; the window counts the
bonus token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specdebug.sglang.flags import LaunchCommand, Value
from specdebug.sglang.metrics import Metrics


@dataclass(frozen=True)
class SpecMetricsLine:
    """One `SpecDecoding metrics:` line.

    `accept_len` includes the bonus; `per_position` is unconditional (accepted at that position /
    drafts); `accept_rate` is accepted / drafted as a fraction.
    """

    line: int
    text: str
    accept_len: float
    accept_rate: float | None
    accepted: int | None
    drafted: int | None
    accepted_tok_s: float | None
    drafted_tok_s: float | None
    per_position: tuple[float, ...]


@dataclass(frozen=True)
class ThroughputLine:
    """One engine throughput line: generated tokens per second, requests running and waiting."""

    line: int
    text: str
    generation_tok_s: float
    prompt_tok_s: float | None
    running: int | None
    waiting: int | None


@dataclass(frozen=True)
class VllmLog:
    """What a vLLM log says about speculation; `version` if the start banner is in it."""

    spec: tuple[SpecMetricsLine, ...]
    throughput: tuple[ThroughputLine, ...]
    version: str | None
    config_text: str | None
    total_lines: int


def read_vllm_log(text: str | bytes) -> VllmLog:
    """Read a vLLM log; an empty `spec` means no speculative figures were logged."""
    raise NotImplementedError


def conditional(per_position: tuple[float, ...]) -> tuple[float, ...]:
    """Conditional acceptance per position from vLLM's unconditional figures; stops at the first
    zero."""
    raise NotImplementedError


@dataclass(frozen=True)
class SpecCounters:
    """vLLM's Prometheus counters: drafts, drafted and accepted tokens, accepted per position."""

    drafts: float
    drafted: float
    accepted: float
    per_position: tuple[float, ...]

    @property
    def accept_len(self) -> float | None:
        """1 + accepted / drafts, None before the first draft."""
        return 1 + self.accepted / self.drafts if self.drafts else None


def counters(metrics: Metrics) -> SpecCounters | None:
    """The speculative counters of a scrape, None when the engine exports none."""
    raise NotImplementedError


def as_sglang_flags(command: LaunchCommand) -> Mapping[str, Value]:
    """A vLLM command's speculation under SGLang's names (num_speculative_tokens n: steps n, window
    n + 1)."""
    raise NotImplementedError
