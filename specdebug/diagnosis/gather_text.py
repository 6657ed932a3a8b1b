"""What a text holds besides log lines, into a Case: commands, releases, figures, pasted JSON."""

from __future__ import annotations

import json
from typing import Any

from specdebug.diagnosis import bench_rows, convert
from specdebug.diagnosis.gather_json import PASTED, read_answers
from specdebug.diagnosis.gathered import Gathered
from specdebug.diagnosis.headed_parts import headed_releases
from specdebug.sglang import benches, flags
from specdebug.sglang.pasted import json_values
from specdebug.sglang.recognise import goes_on, of_value

__all__ = ["read_launches", "read_release", "read_runs", "read_values"]

PROSE = 1 << 16  # flags and releases are looked for in so many characters


def read_launches(found: Gathered, name: str, text: str) -> int:
    """Launch commands, or the flags that prose quotes; returns how many."""
    commands = [convert.launch(command, name) for command in flags.parse_command(text)]
    if not commands:
        # Prose that quotes flags says what was asked, though not the whole command.
        commands = [c for c in [convert.quoted_flags(text[:PROSE], name)] if c]
    found.launches += commands
    read_release(found, name, text)
    return len(commands)


def read_release(found: Gathered, name: str, text: str) -> bool:
    """A release named beside the engine's name: an image tag, an install line, prose."""
    version = convert.release_in_prose(text[:PROSE])
    if version is None or "engine_version" in found.notes:
        return False
    if len(headed_releases(text[:PROSE])) > 1:
        return False  # each log under its own heading is of its own release
    found.notes["engine_version"] = (version, name)
    return True


def read_runs(found: Gathered, name: str, text: str) -> int:
    """Benchmark rows, reports and the client's own command; returns how many."""
    report = benches.read_benches(text)
    found.remarks += report.remarks
    count = 0
    for run in report.runs:
        count += 1
        if run.undecided:
            continue  # with a draft or without one: nothing may be said of it
        if run.kind == "bench-serving-command":
            found.bench_flags.update(bench_rows.bench_flags(run, name))
            continue
        if run.kind != "client-report" or run.output_tok_s:
            found.measured.append(bench_rows.measured(run, name))
        position = bench_rows.positions_of_run(run, name)
        if position is not None:
            found.positions.append(position)
        if run.server_info is not None:
            found.states.append(convert.state(run.server_info, name))
    return count


def read_values(found: Gathered, name: str, text: str) -> list[str]:
    """Configs, headers and notes pasted among other words; returns their kinds."""
    start = text.lstrip()[:4]
    if start[:1] == "{" and not start.startswith("{'") and not goes_on(text.lstrip()):
        return []  # a file of JSON was recognised as a whole
    out: list[str] = []
    answers: list[Any] = []
    for _, value in json_values(text):
        kind = of_value(value).kind
        if kind == "generate-answers":
            answers += value if isinstance(value, list) else [value]
        elif kind in PASTED and PASTED[kind](found, name, value):
            out.append(kind)
    if answers and read_answers(found, name, json.dumps(answers)):
        out.append("generate-answers")
    return out
