"""Everything known about one check, in one frozen shape; it reads nothing and judges nothing.

Two ways lead here: `gather.build_case` from files, and `case_from_rows` from rows a program holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from specdebug.diagnosis.findings import Evidence

if TYPE_CHECKING:  # a check without GPU samples starts sooner
    from specdebug.measure.gpu_samples import GpuSummary

Feature = int | Literal["embed"]
# Engine of a launch known only from flags quoted in prose: what is absent was not left out.
FRAGMENT = "sglang flags"

__all__ = [
    "FRAGMENT",
    "Boot",
    "Case",
    "ConfigFile",
    "Fact",
    "Feature",
    "Input",
    "InputSummary",
    "Launch",
    "Measured",
    "Notice",
    "Positions",
    "ServerState",
    "Stretch",
    "Training",
    "case_from_rows",
]


@dataclass(frozen=True, slots=True)
class Input:
    """One input as given: a name to show, and its bytes or the path they are read from."""

    name: str
    data: bytes | Path


@dataclass(frozen=True, slots=True)
class InputSummary:
    """What became of one input. unusable: the reason it could not be used, None when it was."""

    name: str
    kind: str
    summary: str = ""
    unusable: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A value together with the place it was read from."""

    value: Any
    source: str
    line: int | None = None
    text: str = ""

    def evidence(self) -> Evidence:
        return Evidence(self.source, self.line, self.text)


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """One server launch command. requested: SGLang argument name -> asked value; env likewise."""

    source: str
    line: int | None
    text: str
    engine: str
    requested: Mapping[str, Fact]
    env: Mapping[str, Fact] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """One log line worth keeping that is not a decode line.

    kind: an event kind of sglang/logs.py, "argument-warning" or "model-load". fields: what the
    reader took out of the line, rank: the rank that printed it ("" when none is named).
    """

    kind: str
    source: str
    line: int | None
    text: str
    fields: Mapping[str, str] = field(default_factory=dict)
    rank: str = ""

    def evidence(self) -> Evidence:
        return Evidence(self.source, self.line, self.text)


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """The decode lines of one rank of one start, as columns of equal length.

    accept_len and accept_rate hold NaN where a line has none; graph holds 1, 0, or -1 for absent.
    throughput in tokens per second of that rank, tokens in KV-cache tokens, lines 1-based.
    texts: verbatim lines by line number, where the input was small enough to keep them. every:
    one line in `every` was kept of a long log. drafts: verifications behind each line, where the
    engine counts them (vLLM). assumed: running and queue are not told; one request, none waiting.
    """

    rank: str
    lines: Sequence[int]
    running: Sequence[float]
    queue: Sequence[float]
    tokens: Sequence[float]
    accept_len: Sequence[float]
    accept_rate: Sequence[float]
    graph: Sequence[int]
    throughput: Sequence[float]
    texts: Mapping[int, str] = field(default_factory=dict)
    every: int = 1
    drafts: Sequence[float] = ()
    assumed: bool = False

    def __len__(self) -> int:
        return len(self.lines)


@dataclass(frozen=True, slots=True, eq=False)
class Boot:
    """One server start seen in a log.

    excerpt: the start-up lines are not in the file, so nothing follows from a line being absent.
    effective: the engine's own argument list, after it resolved them. release: named by the log;
    release_from, release_until: bounds by what only some releases print, None where open. heading:
    the words of a person above an excerpt that tell it from the next, "" where there are none.
    """

    source: str
    line: int
    excerpt: bool
    effective: Mapping[str, Fact]
    stretches: tuple[Stretch, ...] = ()
    notices: tuple[Notice, ...] = ()
    release: str | None = None
    release_from: str | None = None
    release_until: str | None = None
    ready: bool = False
    engine: str = "sglang"
    heading: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ServerState:
    """What a running server said about itself (/server_info, or embedded in a benchmark row)."""

    source: str
    effective: Mapping[str, Fact]
    release: str | None = None
    accept_len: Fact | None = None
    max_running_per_rank: Fact | None = None
    rank_accept_lens: tuple[float, ...] = ()  # bonus included, since the start or the last flush


@dataclass(frozen=True, slots=True)
class Measured:
    """One configuration with the figures measured for it.

    speculative: False for a plain run, None when unknown. tok_s: one output throughput in tokens
    per second per repeat. accept_len: bonus token included. running: requests decoded at once.
    counted_by: "server" (log, gauge) or "client". dataset: the client's name of its prompts.
    keys: (title, value) of what a table says the run was measured on; its baseline has the same.
    """

    label: str
    source: str
    line: int | None = None
    text: str = ""
    speculative: bool | None = None
    num_steps: int | None = None
    topk: int | None = None
    draft_tokens_asked: int | None = None
    draft_tokens: int | None = None
    tok_s: tuple[float, ...] = ()
    accept_len: float | None = None
    accept_rate: float | None = None
    running: float | None = None
    concurrency: float | None = None
    drafts: int | None = None
    counted_by: str = "client"
    dataset: str | None = None
    ignore_eos: bool | None = None
    step_ms: float | None = None
    workload: str | None = None
    changes: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()

    def evidence(self) -> Evidence:
        return Evidence(self.source, self.line, self.text or self.label)


@dataclass(frozen=True, slots=True)
class Positions:
    """Acceptance by draft position.

    conditional[k]: P(position k+1 accepted | all before accepted). drafts: verifications pooled.
    formula: how it was computed, to stand beside the figure. num_steps: None when unknown.
    """

    source: str
    line: int | None
    text: str
    conditional: tuple[float, ...]
    drafts: int
    formula: str
    num_steps: int | None = None
    accept_len: float | None = None
    outputs_repeat: bool = False


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A config.json as it was read, with its name."""

    source: str
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Training:
    """What a person knows of the draft's training.

    val_accuracy: top-1 accuracy as a fraction. features: "embed" for the embedding output, a number
    k for the input of target layer k (the hidden state k of a model whose state 0 is the
    embedding), in the order they were concatenated.
    """

    source: str = "notes"
    val_accuracy: float | None = None
    features: tuple[Feature, ...] | None = None
    samples: int | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Case:
    """All that is known about one check. Every part may be empty; nothing is guessed.

    Compared by identity, so that what is derived from a case can be kept beside it.

    engine_version: the release the person named (None: unknown unless the inputs betray it).
    header: tensor name -> {"dtype", "shape"} of the draft checkpoint; tensors: small integer
    tensors that could be read (d2t).
    """

    inputs: tuple[InputSummary, ...] = ()
    launches: tuple[Launch, ...] = ()
    boots: tuple[Boot, ...] = ()
    states: tuple[ServerState, ...] = ()
    measured: tuple[Measured, ...] = ()
    positions: tuple[Positions, ...] = ()
    draft: ConfigFile | None = None
    target: ConfigFile | None = None
    header: ConfigFile | None = None
    tensors: Mapping[str, Sequence[int]] = field(default_factory=dict)
    training: Training = field(default_factory=Training)
    bench_flags: Mapping[str, Fact] = field(default_factory=dict)
    env: Mapping[str, Fact] = field(default_factory=dict)
    engine_version: Fact | None = None
    baseline_tok_s: Fact | None = None
    concurrency: Fact | None = None
    exit_code: int | None = None
    gpus: tuple[GpuSummary, ...] = ()


def _facts(values: Mapping[str, Any] | None, source: str) -> dict[str, Fact]:
    return {k: Fact(v, source, None, f"{k}={v!r}") for k, v in (values or {}).items()}


def _asked(requested: Mapping[str, Any], env: Mapping[str, str] | None) -> Launch:
    text = " ".join(f"{k}={v!r}" for k, v in requested.items())
    facts = _facts(requested, "requested")
    return Launch("requested", None, text, "sglang", facts, _facts(env, "env"))


def _stated(effective: Mapping[str, Any]) -> ServerState:
    version = effective.get("version")
    return ServerState(
        "effective", _facts(effective, "effective"), str(version) if version else None
    )


def case_from_rows(
    *,
    requested: Mapping[str, Any] | None = None,
    effective: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    runs: Iterable[Measured] = (),
    boots: Iterable[Boot] = (),
    positions: Iterable[Positions] = (),
    draft_config: Mapping[str, Any] | None = None,
    target_config: Mapping[str, Any] | None = None,
    header: Mapping[str, Any] | None = None,
    training: Training | None = None,
    engine_version: str | None = None,
    baseline_tok_s: float | None = None,
    concurrency: float | None = None,
    exit_code: int | None = None,
    gpus: Iterable[GpuSummary] = (),
    base: Case | None = None,
) -> Case:
    """A Case from what a program already holds, without files.

    requested and effective use SGLang's argument names ("speculative_num_steps"). base: a case to
    extend, usually from `build_case` over the run's stored files; what is given here wins.
    """
    start = base or Case()

    def config(values: Mapping[str, Any] | None, name: str, kept: ConfigFile | None) -> Any:
        return kept if values is None else ConfigFile(name, values)

    def fact(value: Any, name: str, kept: Fact | None) -> Fact | None:
        return kept if value is None else Fact(value, "notes", None, f"{name}: {value}")

    return Case(
        inputs=start.inputs,
        launches=start.launches if requested is None else (_asked(requested, env),),
        boots=(*start.boots, *boots),
        states=start.states if effective is None else (_stated(effective), *start.states),
        measured=(*start.measured, *runs),
        positions=(*start.positions, *positions),
        draft=config(draft_config, "draft config", start.draft),
        target=config(target_config, "target config", start.target),
        header=config(header, "draft header", start.header),
        tensors=start.tensors,
        training=training or start.training,
        bench_flags=start.bench_flags,
        env={**start.env, **_facts(env, "env")},
        engine_version=fact(engine_version, "engine_version", start.engine_version),
        baseline_tok_s=fact(baseline_tok_s, "baseline_tok_s", start.baseline_tok_s),
        concurrency=fact(concurrency, "concurrency", start.concurrency),
        exit_code=start.exit_code if exit_code is None else exit_code,
        gpus=(*start.gpus, *gpus),
    )
