"""Turns files and pasted text into a Case: recognises each input and has it read; judges nothing.

An input that cannot be used is named with its reason and the rest goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from specdebug.diagnosis import bench_rows, content
from specdebug.diagnosis.configs import arguments_in
from specdebug.diagnosis.content import Unusable
from specdebug.diagnosis.facts import Case, ConfigFile, Input, InputSummary
from specdebug.diagnosis.gather_json import (
    read_answers,
    read_draft,
    read_header,
    read_notes,
    read_state,
    read_target,
)
from specdebug.diagnosis.gather_logs import read_log, read_pasted_log, read_vllm
from specdebug.diagnosis.gather_text import read_launches, read_release, read_runs, read_values
from specdebug.diagnosis.gathered import Gathered, assemble, counted
from specdebug.diagnosis.remarks import remarked
from specdebug.sglang import server_info
from specdebug.sglang.recognise import recognise

__all__ = ["build_case"]


def build_case(
    inputs: Iterable[Input],
    *,
    engine_version: str | None = None,
    baseline: float | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Case:
    """Read every input into one Case.

    engine_version, baseline (output tok/s without speculation) and notes (the keys of a notes.json)
    win over what the files say. Never raises on the content of an input: see Case.inputs.
    """
    found = Gathered()
    summaries: list[InputSummary] = []
    seen: set[str] = set()
    for given in inputs:
        kind = "unusable"
        if isinstance(given.data, Path) and str(given.data) in seen:
            summaries.append(InputSummary(given.name, "again", "given twice, used once"))
            continue
        seen.add(str(given.data) if isinstance(given.data, Path) else "")
        try:
            given = content.mended(content.unwrapped(given))
            told = recognise(given.name, content.head(given))
            kind = told.kind
            if kind == "unusable":
                raise Unusable(told.reason)
            found.remarks = []
            text = _READERS[kind](found, given)
            said = "; ".join([text, *dict.fromkeys(found.remarks)])
            summaries.append(InputSummary(given.name, kind, said))
        except Unusable as error:
            summaries.append(InputSummary(given.name, kind, "", str(error)))
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            summaries.append(InputSummary(given.name, kind, "", why))
        except ValueError as error:
            summaries.append(InputSummary(given.name, kind, "", f"cannot be read: {error}"))
    for key, value in (notes or {}).items():
        found.notes[key] = (value, "notes")
    if engine_version is not None:
        found.notes["engine_version"] = (engine_version, "--engine-version")
    if baseline is not None:
        found.notes["baseline_tok_s"] = (baseline, "--baseline")
    case = assemble(found, tuple(summaries))
    return replace(case, inputs=remarked(case))


def _json_object(given: Input) -> dict[str, Any]:
    data = json.loads(content.text(given))
    if not isinstance(data, dict):
        raise Unusable("holds JSON, but not an object")
    return data


def _of_object(
    read: Callable[[Gathered, str, Mapping[str, Any]], str],
) -> Callable[[Gathered, Input], str]:
    """The reader of a file that is one JSON object."""
    return lambda found, given: read(found, given.name, _json_object(given))


def _read_config(found: Gathered, name: str, text: str) -> int:
    """The body of a file for --config; returns how many arguments it sets."""
    arguments = arguments_in(text, name)
    if arguments:
        found.configs[name] = arguments
    return len(arguments)


def _read_command(found: Gathered, given: Input) -> str:
    text = content.text(given)
    count = read_launches(found, given.name, text)
    _read_config(found, given.name, text)
    extra = read_runs(found, given.name, text)
    read_values(found, given.name, text)
    read_pasted_log(found, given.name, text)
    if not count and not extra:
        raise Unusable("looks like a command, but launches no server this tool knows")
    return counted(count, "launch command") + (f", {counted(extra, 'run')}" if extra else "")


def _read_bench(found: Gathered, given: Input) -> str:
    text = content.text(given)
    count = read_runs(found, given.name, text)
    launches = read_launches(found, given.name, text)
    values = read_values(found, given.name, text)
    lines = read_pasted_log(found, given.name, text)
    if not (count or launches or lines or values):
        raise Unusable("no benchmark figure could be read from it")
    return counted(count, "run")


def _read_server_info(found: Gathered, given: Input) -> str:
    info = server_info.read_server_info(content.whole(given))
    return read_state(found, given.name, info)


def _read_metrics(found: Gathered, given: Input) -> str:
    from specdebug.sglang import metrics  # late: few inputs are a scrape

    scrape = metrics.read_metrics(content.whole(given))
    run, positions = bench_rows.scrape(scrape, given.name)
    if run is not None:
        found.measured.append(run)
    if positions is not None:
        found.positions.append(positions)
    return counted(len(scrape.samples), "sample")


def _read_answers(found: Gathered, given: Input) -> str:
    text = content.text(given)
    requests = read_answers(found, given.name, text)
    if requests:
        return counted(requests, "request")
    # Rows of a benchmark also count completion tokens.
    count = read_runs(found, given.name, text)
    return counted(count, "run") if count else "answers without a speculative figure"


def _read_safetensors(found: Gathered, given: Input) -> str:
    from specdebug.eagle import checkpoint  # late: few inputs are weights

    if isinstance(given.data, Path):
        header = checkpoint.read_header(given.data)
        for name in ("d2t",):
            if name in header.tensors:
                try:
                    found.tensors[name] = checkpoint.read_ints(given.data, name)
                except ValueError:
                    continue
    else:
        header = checkpoint.header_from_bytes(given.data)
    raw = {n: {"dtype": t.dtype, "shape": list(t.shape)} for n, t in header.tensors.items()}
    found.header = ConfigFile(given.name, raw)
    return counted(len(header.tensors), "tensor")


def _read_text(found: Gathered, given: Input) -> str:
    text = content.text(given)
    parts = {
        "launch command": read_launches(found, given.name, text),
        "decode line": read_pasted_log(found, given.name, text),
        "run": read_runs(found, given.name, text),
    }
    for kind in read_values(found, given.name, text):
        parts[kind.replace("-", " ")] = 1
    if read_release(found, given.name, text):
        parts["engine version"] = 1
    parts["config argument"] = _read_config(found, given.name, text)
    said = [counted(n, what) for what, n in parts.items() if n]
    if not said:
        raise Unusable("nothing in it is a command, a log, a benchmark, a config or notes")
    return ", ".join(said)


_READERS: Mapping[str, Callable[[Gathered, Input], str]] = {
    "command": _read_command,
    "server-log": read_log,
    "vllm-log": read_vllm,
    "server-info": _read_server_info,
    "metrics": _read_metrics,
    "generate-answers": _read_answers,
    "bench": _read_bench,
    "draft-config": _of_object(read_draft),
    "target-config": _of_object(read_target),
    "safetensors": _read_safetensors,
    "safetensors-header": _of_object(read_header),
    "notes": _of_object(read_notes),
    "text": _read_text,
}
