"""vLLM's speculative figures in SGLang's words: log lines, counters, flags; not vLLM's rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from specdebug.sglang.flags import LaunchCommand, Value
from specdebug.sglang.metrics import Metrics
from specdebug.sglang.pasted import as_text
from specdebug.sglang.patterns import regex

_LENGTH = regex(r"(?i)mean acceptance length:\s*([\d.]+)")
_RATE = regex(r"(?i)(?:avg )?draft acceptance rate:\s*([\d.]+)\s*%")
_ACCEPTED = regex(r"\bAccepted:\s*([\d,]+) tokens")
_DRAFTED = regex(r"\bDrafted:\s*([\d,]+) tokens")
_ACCEPTED_S = regex(r"(?i)accepted throughput:\s*([\d.]+)")
_DRAFTED_S = regex(r"(?i)drafted throughput:\s*([\d.]+)")
_POSITIONS = regex(r"(?i)per-position acceptance rate:\s*((?:\d[\d.]*,\s*)*\d[\d.]*)")
_GENERATION = regex(r"Avg generation throughput:\s*([\d.]+) tokens/s")
_PROMPT = regex(r"Avg prompt throughput:\s*([\d.]+) tokens/s")
_RUNNING = regex(r"Running:\s*(\d+) reqs")
_WAITING = regex(r"Waiting:\s*(\d+) reqs")
_VERSION = regex(r"(?:LLM engine \(v|vLLM API server version |vLLM version:? )(\d+\.\d+[\w.+]*)")
_KEPT = 2_000


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
    lines = as_text(text).split("\n")
    spec: list[SpecMetricsLine] = []
    throughput: list[ThroughputLine] = []
    version = config = None
    for number, line in enumerate(lines, 1):
        if "SpecDecoding metrics" in line:
            found = _spec_line(line, number)
            if found is not None:
                spec.append(found)
        elif match := _GENERATION.search(line):
            throughput.append(
                ThroughputLine(
                    number,
                    line[:_KEPT],
                    _float(match[1]) or 0.0,
                    _found(_PROMPT, line),
                    _count(_RUNNING, line),
                    _count(_WAITING, line),
                )
            )
        if version is None and (match := _VERSION.search(line[:_KEPT])):
            version = match[1]
        if config is None and ("with config:" in line or "non-default args:" in line):
            config = line[:20_000]
    return VllmLog(tuple(spec), tuple(throughput), version, config, len(lines))


def _spec_line(line: str, number: int) -> SpecMetricsLine | None:
    line = line[:_KEPT]
    length = _found(_LENGTH, line)
    if length is None:
        return None
    positions = _POSITIONS.search(line)
    rates = [_float(part.strip()) for part in positions[1].split(",")] if positions else []
    rate = _found(_RATE, line)
    return SpecMetricsLine(
        line=number,
        text=line,
        accept_len=length,
        accept_rate=None if rate is None else rate / 100,
        accepted=_count(_ACCEPTED, line),
        drafted=_count(_DRAFTED, line),
        accepted_tok_s=_found(_ACCEPTED_S, line),
        drafted_tok_s=_found(_DRAFTED_S, line),
        per_position=tuple(value for value in rates if value is not None),
    )


def _float(text: str) -> float | None:
    try:
        return float(text.rstrip("."))
    except ValueError:
        return None


def _found(pattern: re.Pattern[str], line: str) -> float | None:
    match = pattern.search(line)
    return _float(match[1]) if match else None


def _count(pattern: re.Pattern[str], line: str) -> int | None:
    match = pattern.search(line)
    return int(match[1].replace(",", "")) if match else None


def conditional(per_position: tuple[float, ...]) -> tuple[float, ...]:
    """Conditional acceptance per position from vLLM's unconditional figures; stops at a zero."""
    out: list[float] = []
    before = 1.0
    for value in per_position:
        if before <= 0:
            break
        out.append(min(1.0, value / before))
        before = value
    return tuple(out)


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
    """The speculative counters of a scrape, None when the engine exports none.

    Several engines behind one scrape are added up.
    """

    def total(name: str) -> float | None:
        values = [
            sample.value
            for sample in metrics.samples
            if sample.name.rpartition(":")[2].removesuffix("_total") == name
        ]
        return sum(values) if values else None

    drafts = total("spec_decode_num_drafts")
    drafted = total("spec_decode_num_draft_tokens")
    accepted = total("spec_decode_num_accepted_tokens")
    if drafts is None or drafted is None or accepted is None:
        return None
    positions = metrics.by_label("spec_decode_num_accepted_tokens_per_pos", "position")
    ordered = sorted((int(key), value) for key, value in positions.items() if key.isdigit())
    return SpecCounters(drafts, drafted, accepted, tuple(value for _, value in ordered))


_METHODS = {"eagle3": "EAGLE3", "eagle": "EAGLE", "ngram": "NGRAM", "mtp": "EAGLE"}


def as_sglang_flags(command: LaunchCommand) -> Mapping[str, Value]:
    """A vLLM command's speculation under SGLang's names.

    num_speculative_tokens n becomes steps n and a window of n + 1, as a chain (topk 1).
    """
    given = {dest: flag.value for dest, flag in command.flags.items()}
    config = given.get("speculative_config")
    spec = dict(config) if isinstance(config, dict) else {}
    for old, new in (
        ("num_speculative_tokens", "num_speculative_tokens"),
        ("speculative_model", "model"),
        ("spec_tokens", "num_speculative_tokens"),
        ("spec_model", "model"),
        ("spec_method", "method"),
    ):
        if old in given:
            spec.setdefault(new, given[old])
    out: dict[str, Value] = {}
    steps = spec.get("num_speculative_tokens")
    if isinstance(steps, int) and not isinstance(steps, bool):
        out["speculative_num_steps"] = steps
        out["speculative_eagle_topk"] = 1
        out["speculative_num_draft_tokens"] = steps + 1
    method = spec.get("method")
    if isinstance(method, str):
        known = next((name for key, name in _METHODS.items() if method.endswith(key)), None)
        out["speculative_algorithm"] = known or method.upper()
    if isinstance(spec.get("model"), str):
        out["speculative_draft_model_path"] = spec["model"]
    for vllm_name, name in (("model", "model_path"), ("max_num_seqs", "max_running_requests")):
        if given.get(vllm_name) is not None:
            out[name] = given[vllm_name]
    if given.get("tp_size") is not None:
        out["tp_size"] = given["tp_size"]
    return out
