"""What crosses the border between record and worker: a plan in, progress and an outcome out.

Frozen and JSON-able; no process, no database. The record builds a `RunPlan`, the runner returns a
`RunOutcome`, whatever happened in between: a crashed server is an outcome with a log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Phase = Literal[
    "preparing", "launching", "loading", "warming up", "measuring", "stopping", "finished"
]
OutcomeState = Literal["done", "failed", "cancelled"]


@dataclass(frozen=True)
class Workload:
    """What the server is asked while it is measured."""

    # A shipped prompt set's name, or the path of a JSONL or ShareGPT file.
    prompts: str = "stdlib"
    max_new_tokens: int = 96
    prompts_per_repeat: int = 8
    repeats: int = 3  # measured repeats; the warm-up is extra and is dropped
    warm_up_prompts: int = 2
    concurrency: int = 1  # the most requests in flight at once
    temperature: float = 0.0
    ignore_eos: bool = True
    # Requests per second on average, at exponentially distributed distances (a Poisson process);
    # None: as fast as `concurrency` allows.
    request_rate: float | None = None
    seed: int = 1  # of the arrival times; each repeat has its own, the same in every run
    client: str = "specdebug"  # or "bench-serving": the engine's own sglang.bench_serving


@dataclass(frozen=True)
class Deadlines:
    """Seconds without any progress after which a phase is given up."""

    # From spawn to the first log line, and between two log lines: each line is progress.
    launch: float = 120.0
    ready: float = 1800.0  # from spawn to ready, in all
    request: float = 300.0
    stop: float = 15.0  # from SIGTERM to SIGKILL

    @classmethod
    def usual(cls, engine: str) -> Deadlines:
        """What suits an engine. SGLang on many GPUs compiles kernels and reads hundreds of
        gigabytes without a word for minutes; a start of ten minutes is normal there."""
        if engine == "sglang":
            return cls(launch=900.0, ready=7200.0, request=900.0, stop=60.0)
        return cls()


@dataclass(frozen=True)
class RunPlan:
    """One configuration to be measured once, with its workload."""

    run: str  # the run's public id, also the name of its folder
    engine: str  # reference | sglang | sglang-cpu | attached
    server_args: tuple[str, ...]  # the engine's own flags as asked, without interpreter and port
    folder: str  # existing, private folder for log, samples and answers
    env: Mapping[str, str] = field(default_factory=dict)  # added to the worker's own
    workload: Workload = field(default_factory=Workload)
    deadlines: Deadlines = field(default_factory=Deadlines)
    # Refuse to measure when an argument would not be, or is not, in force as asked.
    strict: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunPlan:
        """Raises KeyError or TypeError where the data is not a plan."""
        return cls(
            run=data["run"],
            engine=data["engine"],
            server_args=tuple(data["server_args"]),
            folder=data["folder"],
            env=dict(data.get("env", {})),
            workload=Workload(**data.get("workload", {})),
            deadlines=Deadlines(**data.get("deadlines", {})),
            strict=bool(data.get("strict", False)),
        )


@dataclass(frozen=True)
class Progress:
    """Where a run stands now; sent often, only the last one matters."""

    phase: Phase
    detail: str = ""  # one short sentence, e.g. "repeat 2 of 3, prompt 5 of 8"
    fraction: float | None = None  # of the whole run, 0 to 1, None when not known


@dataclass(frozen=True)
class Request:
    """One request's own figures, as the server answered them."""

    prompt: str  # id of the prompt
    seconds: float  # wall time seen by the client
    prompt_tokens: int
    completion_tokens: int
    spec_verify_ct: int | None = None  # verify passes; None without speculation
    accept_histogram: tuple[int, ...] | None = None  # [k] = passes with exactly k drafts accepted
    output_sha256: str = ""  # of the output ids (or text), to compare outputs between runs
    # What else the server said of the request; kept in requests.jsonl, not in the outcome.
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Repeat:
    """One pass over the prompts. Rates are derived from these figures by the library, not here."""

    index: int  # 0-based; warm-up repeats are not in the list
    started_at: float  # seconds since the epoch
    seconds: float  # wall time of the whole repeat
    requests: tuple[Request, ...]


@dataclass(frozen=True)
class Exit:
    """How the server process ended."""

    code: int | None  # negative: killed by that signal; None: it was not ours to stop
    asked: bool  # we asked it to stop
    survivors: tuple[int, ...] = ()  # pids still alive after the kill, normally empty


@dataclass(frozen=True)
class RunOutcome:
    """What came of a plan. `reason` is one sentence for a person; empty when state is done."""

    state: OutcomeState
    phase: Phase  # the phase in which it ended
    reason: str
    argv: tuple[str, ...]  # exact command line
    env: Mapping[str, str]  # recorded environment, secrets removed
    versions: Mapping[str, str]
    host: str
    started_at: float
    ready_at: float | None
    ended_at: float
    log: str  # path, "" when there is none
    server_info: Mapping[str, Any] | None = None
    metrics_text: str = ""
    repeats: tuple[Repeat, ...] = ()
    exit: Exit | None = None
    # What the release was expected to make of the arguments: specdebug.sglang.preflight as JSON.
    preflight: Mapping[str, Any] | None = None
    # Source checkout, checkpoints and GPUs, as found on the machine; see workers.provenance.
    provenance: Mapping[str, Any] = field(default_factory=dict)
    # Other files of the run's folder that belong to the record: (name, kind).
    files: tuple[tuple[str, str], ...] = ()
    folder: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def without_measuring(
        cls, state: OutcomeState, reason: str, *, host: str, started_at: float, ended_at: float
    ) -> RunOutcome:
        """What is left to say where the runner itself did not come to its end."""
        return cls(
            state=state,
            phase="preparing",
            reason=reason,
            argv=(),
            env={},
            versions={},
            host=host,
            started_at=started_at,
            ready_at=None,
            ended_at=ended_at,
            log="",
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunOutcome:
        """The inverse of `as_json`. Raises KeyError or TypeError where the data is no outcome."""
        rest = dict(data)
        rest["argv"] = tuple(rest["argv"])
        rest["files"] = tuple((name, kind) for name, kind in rest.get("files", ()))
        rest["repeats"] = tuple(
            Repeat(**{**repeat, "requests": tuple(map(_request, repeat["requests"]))})
            for repeat in rest["repeats"]
        )
        if rest["exit"] is not None:
            ended = rest["exit"]
            rest["exit"] = Exit(**{**ended, "survivors": tuple(ended["survivors"])})
        return cls(**rest)


def _request(data: Mapping[str, Any]) -> Request:
    histogram = data["accept_histogram"]
    return Request(**{**data, "accept_histogram": None if histogram is None else tuple(histogram)})


class RunEnded(Exception):
    """A run ends before it is done: raised inside the worker, never out of `runner.measure`.

    `reason` is one sentence for a person; `state` is "failed" or "cancelled".
    """

    def __init__(self, state: Literal["failed", "cancelled"], reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


# "" while the run may go on, else why it must stop, as one sentence.
ShouldStop = Callable[[], str]
