"""What was read from the inputs so far, and how it becomes a Case; opens no file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specdebug.diagnosis import convert
from specdebug.diagnosis.configs import completed
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
from specdebug.sglang.table_cells import value_of

__all__ = ["Gathered", "assemble", "counted"]


@dataclass
class Gathered:
    """Rows read so far; of notes the last value of a key counts, with the file that gave it.

    configs: arguments as a file for --config sets them, by the input they stand in.
    remarks: what has to be said about the input that is being read, beside what was found in it.
    """

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
    remarks: list[str] = field(default_factory=list)
    configs: dict[str, Mapping[str, Fact]] = field(default_factory=dict)


def counted(count: int, noun: str) -> str:
    """A number with its noun: "1 run", "2 runs"."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _text(found: Gathered, key: str) -> Fact | None:
    value, source = found.notes.get(key, (None, ""))
    return Fact(value, source, None, f"{key}: {value}") if isinstance(value, str) else None


def _number(found: Gathered, key: str, problems: list[InputSummary]) -> Fact | None:
    """A positive number of the notes, also written as "90 tok/s"; anything else is named."""
    given, source = found.notes.get(key, (None, ""))
    value = value_of(given) if isinstance(given, str) else given
    if given is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        said = f"{key} {given!r:.60} is no positive number; write it like {key}: 90"
        problems.append(InputSummary(f"{source}: {key}", "notes", "", said))
        return None
    return Fact(value, source, None, f"{key}: {given}")


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
    version = _text(found, "engine_version")
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
    baseline = _number(found, "baseline_tok_s", problems)
    concurrency = _number(found, "concurrency", problems)
    exit_code = found.notes.get("exit_code", (None, ""))[0]
    case = Case(
        inputs=summaries + tuple(problems),
        launches=completed(found.launches, found.configs),
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
        concurrency=concurrency,
    )
    known = isinstance(exit_code, int) and not isinstance(exit_code, bool)
    return replace(case, exit_code=exit_code) if known else case
