"""What was read from the inputs so far, and how it becomes a Case; opens no file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from specdebug.diagnosis import convert
from specdebug.diagnosis.facts import (
    Boot,
    Case,
    ConfigFile,
    Fact,
    InputSummary,
    Launch,
    Measured,
    Positions,
    ServerState,
    Training,
)

__all__ = ["Gathered", "assemble", "counted"]


@dataclass
class Gathered:
    """Rows read so far; of notes the last value of a key counts, with the file that gave it."""

    launches: list[Launch] = field(default_factory=list)
    boots: list[Boot] = field(default_factory=list)
    states: list[ServerState] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    positions: list[Positions] = field(default_factory=list)
    draft: ConfigFile | None = None
    target: ConfigFile | None = None
    header: ConfigFile | None = None
    tensors: dict[str, list[int]] = field(default_factory=dict)
    notes: dict[str, tuple[Any, str]] = field(default_factory=dict)
    bench_flags: dict[str, Fact] = field(default_factory=dict)


def counted(count: int, noun: str) -> str:
    """A number with its noun: "1 run", "2 runs"."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _note(found: Gathered, key: str, kinds: tuple[type, ...]) -> Fact | None:
    value, source = found.notes.get(key, (None, ""))
    if value is None or isinstance(value, bool) or not isinstance(value, kinds):
        return None
    return Fact(value, source, None, f"{key}: {value}")


def assemble(found: Gathered, summaries: tuple[InputSummary, ...]) -> Case:
    """The Case; notes that make no sense are named beside the unusable inputs."""
    problems: list[InputSummary] = []
    training, problem = convert.training(*found.notes.get("training", (None, "notes")))
    if problem:
        problems.append(InputSummary("notes: training", "notes", "", problem))
    env_value, env_source = found.notes.get("env", ({}, "notes"))
    env = {
        str(k): Fact(v, env_source, None, f"{k}={v}")
        for k, v in (env_value.items() if isinstance(env_value, dict) else ())
    }
    for launch in found.launches:
        env = {**launch.env, **env}
    baseline = _note(found, "baseline_tok_s", (int, float))
    if baseline is not None and baseline.value <= 0:
        baseline = None
    version = _note(found, "engine_version", (str,))
    if version is not None and convert.release(version.value) is None:
        problems.append(
            InputSummary(
                version.source,
                "notes",
                "",
                f"engine_version {version.value!r} is no release; write it like 0.5.10.post1",
            )
        )
        version = None
    exit_code = _note(found, "exit_code", (int,))
    case = Case(
        inputs=summaries + tuple(problems),
        launches=tuple(found.launches),
        boots=tuple(found.boots),
        states=tuple(found.states),
        measured=tuple(found.measured),
        positions=tuple(found.positions),
        draft=found.draft,
        target=found.target,
        header=found.header,
        tensors=found.tensors,
        training=training or Training(),
        bench_flags=found.bench_flags,
        env=env,
        engine_version=version,
        baseline_tok_s=baseline,
        concurrency=_note(found, "concurrency", (int, float)),
    )
    return case if exit_code is None else replace(case, exit_code=exit_code.value)
