"""Turns files and pasted text into a Case: recognises, reads, converts; draws no conclusion.

An input that cannot be used is named with its reason and the rest goes on.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from specdebug.diagnosis import bench_rows, convert, log_rows
from specdebug.diagnosis.facts import (
    Boot,
    Case,
    ConfigFile,
    Input,
    InputSummary,
    Stretch,
)
from specdebug.diagnosis.gathered import Gathered, assemble
from specdebug.eagle import checkpoint
from specdebug.sglang import benches, flags, meta_info, metrics, server_info, vllm
from specdebug.sglang.log_line import clean, engine_free
from specdebug.sglang.pasted import json_values
from specdebug.sglang.recognise import announces, of_value, recognise

__all__ = ["build_case"]

HEAD = 1 << 20
WHOLE = 64 << 20


class Unusable(Exception):
    """The input cannot be used; the message says why and what to do."""


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
            head = _head(given)
            told = recognise(given.name, head)
            kind = told.kind
            if kind == "unusable":
                raise Unusable(told.reason)
            text = _READERS[kind](found, given)
            summaries.append(InputSummary(given.name, kind, text))
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
    return assemble(found, tuple(summaries))


def _head(given: Input) -> bytes:
    if isinstance(given.data, bytes):
        return given.data[:HEAD]
    if given.data.is_dir():
        raise Unusable("is a folder; name the files in it")
    with given.data.open("rb") as file:
        return file.read(HEAD)


def _bytes(given: Input) -> bytes:
    if isinstance(given.data, bytes):
        return given.data
    if given.data.stat().st_size > WHOLE:
        raise Unusable(f"larger than {WHOLE >> 20} MiB, which only a log may be")
    return given.data.read_bytes()


def _json(given: Input) -> dict[str, Any]:
    data = json.loads(convert.decode(_bytes(given)))
    if not isinstance(data, dict):
        raise Unusable("holds JSON, but not an object")
    return data


def _read_launches(found: Gathered, given: Input, text: str) -> int:
    commands = [convert.launch(command, given.name) for command in flags.parse_command(text)]
    if not commands:
        # Prose that quotes flags says what was asked, though not the whole command.
        commands = [c for c in [convert.quoted_flags(text[: 1 << 16], given.name)] if c]
    found.launches += commands
    _read_release(found, given, text)
    return len(commands)


def _read_release(found: Gathered, given: Input, text: str) -> bool:
    """A release named beside the engine's name: an image tag, an install line, prose."""
    version = convert.release_in_prose(text[: 1 << 16])
    if version is None or "engine_version" in found.notes:
        return False
    found.notes["engine_version"] = (version, given.name)
    return True


def _read_command(found: Gathered, given: Input) -> str:
    text = convert.decode(_bytes(given))
    count = _read_launches(found, given, text)
    extra = _read_runs(found, given, text)
    _read_values(found, given, text)
    _read_pasted_log(found, given, text)
    if not count and not extra:
        raise Unusable("looks like a command, but launches no server this tool knows")
    return _counted(count, "launch command") + (f", {_counted(extra, 'run')}" if extra else "")


def _read_runs(found: Gathered, given: Input, text: str) -> int:
    report = benches.read_benches(text)
    count = 0
    for run in report.runs:
        if run.kind == "bench-serving-command":
            found.bench_flags.update(bench_rows.bench_flags(run, given.name))
            count += 1
            continue
        found.measured.append(bench_rows.measured(run, given.name))
        position = bench_rows.positions_of_run(run, given.name)
        if position is not None:
            found.positions.append(position)
        if run.server_info is not None:
            found.states.append(convert.state(run.server_info, given.name))
        count += 1
    return count


def _read_bench(found: Gathered, given: Input) -> str:
    text = convert.decode(_bytes(given))
    count = _read_runs(found, given, text)
    launches = _read_launches(found, given, text)
    lines = _read_pasted_log(found, given, text)
    if not (count or launches or lines):
        raise Unusable("no benchmark figure could be read from it")
    return _counted(count, "run")


def _read_log(found: Gathered, given: Input) -> str:
    from specdebug.sglang import logs  # numpy: a check without a log starts sooner

    if isinstance(given.data, Path):
        log = logs.read_log(given.data, given.name)
    else:
        log = logs.read_log(io.BytesIO(given.data), given.name)
    boots = _with_texts(_with_extra(log_rows.boots(log, given.name), given), given)
    if not boots:
        raise Unusable("no server start, decode line or error of a known engine in it")
    found.boots += boots
    # A start script that traces its command puts it above the first log line.
    head = convert.decode(_head(given)[: 1 << 16])
    quoted = log.is_excerpt and "--speculative-" in head
    if "launch_server" in head or "sglang serve" in head or quoted:
        _read_launches(found, given, head)
    elif log.is_excerpt:
        _read_release(found, given, head)
    runs = _read_beside(found, given, log.is_excerpt)
    count = sum(t.count for b in log.boots for t in b.decode.values())
    excerpt = ", an excerpt without start-up lines" if log.is_excerpt else ""
    unread = (
        f", {_counted(log.unread_decode_lines, 'decode line')} could not be read"
        if log.unread_decode_lines
        else ""
    )
    starts = _counted(len(boots), "start")
    beside = f", {_counted(runs, 'run')}" if runs else ""
    beside += "".join(f"; {said}" for _, said in log.problems if "breaks off" in said)
    return (
        f"{log.total_lines} lines, {starts}, {_counted(count, 'decode line')}{excerpt}{unread}"
        f"{beside}"
    )


def _read_beside(found: Gathered, given: Input, is_excerpt: bool) -> int:
    """Benchmark figures in the same paste as log lines.

    A whole log may hold a client's printed table; an excerpt also what a person wrote around it.
    """
    size = len(given.data) if isinstance(given.data, bytes) else given.data.stat().st_size
    if size > HEAD:
        return 0
    text = convert.decode(_bytes(given))
    if not is_excerpt and "Serving Benchmark Result" not in text:
        return 0
    if text.count("\ufffd") > len(text) // 100:
        return 0  # compressed
    _read_values(found, given, text)
    # Blanked, not dropped: line numbers are evidence.
    own = [line if engine_free(line) else "" for line in text.splitlines()]
    return _read_runs(found, given, "\n".join(own))


def _read_values(found: Gathered, given: Input, text: str) -> list[str]:
    """Configs, headers and notes pasted among other words; returns their kinds."""
    if text.lstrip()[:1] == "{":
        return []  # a file of JSON was recognised as a whole
    out: list[str] = []
    for _, value in json_values(text):
        kind = of_value(value).kind
        if kind in _PASTED_KINDS:
            whole = Input(given.name, json.dumps(value).encode())
            try:
                _READERS[kind](found, whole)
            except (Unusable, ValueError):
                continue
            out.append(kind)
    return out


def _with_texts(boots: list[Boot], given: Input) -> list[Boot]:
    """Keep the verbatim decode lines of a small log, so that evidence quotes them."""
    size = len(given.data) if isinstance(given.data, bytes) else given.data.stat().st_size
    if size > HEAD:
        return boots
    lines = convert.decode(_bytes(given)).splitlines()

    def texts(stretch: Stretch) -> dict[int, str]:
        return {
            n: clean(lines[n - 1]).strip()[:400]
            for n in stretch.lines
            if n <= len(lines) and "Decode batch" in lines[n - 1]
        }

    return [
        replace(b, stretches=tuple(replace(s, texts=texts(s)) for s in b.stretches)) for b in boots
    ]


def _with_extra(boots: list[Boot], given: Input) -> list[Boot]:
    """Lines that speak of a start from outside the engine (a launcher, a scheduler, a probe)."""
    size = len(given.data) if isinstance(given.data, bytes) else given.data.stat().st_size
    if size > HEAD:
        return boots
    extra = log_rows.outside_notices(convert.decode(_bytes(given)), given.name)
    if not extra:
        return boots
    if not boots:
        return [Boot(given.name, 1, True, {}, (), extra)]
    known = {n.line for n in boots[-1].notices}
    more = tuple(n for n in extra if n.line not in known)
    return [*boots[:-1], replace(boots[-1], notices=(*boots[-1].notices, *more))]


def _read_pasted_log(found: Gathered, given: Input, text: str) -> int:
    """Decode lines inside a text that also holds other things."""
    failed = announces(text)
    if "Decode batch" not in text and "server_args=" not in text and not failed:
        return 0
    from specdebug.sglang import logs

    log = logs.read_log(io.StringIO(text), given.name)
    boots = [b for b in log_rows.boots(log, given.name) if b.stretches or b.effective or failed]
    found.boots += boots
    return sum(len(s) for b in boots for s in b.stretches)


def _read_vllm(found: Gathered, given: Input) -> str:
    text = convert.decode(_bytes(given))
    log = vllm.read_vllm_log(text)
    boot, positions = log_rows.vllm_boot(log, given.name)
    found.boots.append(boot)
    if positions is not None:
        found.positions.append(positions)
    _read_launches(found, given, text[: 1 << 16])
    return f"{log.total_lines} lines, {_counted(len(log.spec), 'line')} on speculation"


def _read_server_info(found: Gathered, given: Input) -> str:
    info = server_info.read_server_info(_bytes(given))
    found.states.append(convert.state(info, given.name))
    if info.launch_command:
        _read_launches(found, given, info.launch_command)
    return f"release {info.release or 'unknown'}, {len(info.args)} arguments"


def _read_metrics(found: Gathered, given: Input) -> str:
    scrape = metrics.read_metrics(_bytes(given))
    run, positions = bench_rows.scrape(scrape, given.name)
    if run is not None:
        found.measured.append(run)
    if positions is not None:
        found.positions.append(positions)
    return _counted(len(scrape.samples), "sample")


def _read_answers(found: Gathered, given: Input) -> str:
    data = _bytes(given)
    requests = meta_info.read_meta_info(data)
    text = convert.decode(data)
    if not requests:
        # Rows of a benchmark also count completion tokens.
        count = _read_runs(found, given, text)
        return _counted(count, "run") if count else "answers without a speculative figure"
    loops = bench_rows.looping_text(text)
    found.positions.append(bench_rows.positions(requests, given.name, loops=loops))
    return _counted(len(requests), "request")


def _read_draft(found: Gathered, given: Input) -> str:
    data = _json(given)
    if found.draft is not None:
        raise Unusable(f"a second draft config; {found.draft.source} is used")
    found.draft = ConfigFile(given.name, data)
    return ", ".join(str(a) for a in data.get("architectures") or ["no architecture"])


def _read_target(found: Gathered, given: Input) -> str:
    data = _json(given)
    if found.target is not None:
        raise Unusable(f"a second target config; {found.target.source} is used")
    found.target = ConfigFile(given.name, data)
    return ", ".join(str(a) for a in data.get("architectures") or ["no architecture"])


def _read_header(found: Gathered, given: Input) -> str:
    data = _json(given)
    header = checkpoint.header_from_dict(data)
    found.header = ConfigFile(given.name, data)
    return _counted(len(header.tensors), "tensor")


def _read_safetensors(found: Gathered, given: Input) -> str:
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
    return _counted(len(header.tensors), "tensor")


def _read_notes(found: Gathered, given: Input) -> str:
    data = _json(given)
    for key, value in data.items():
        found.notes[key] = (value, given.name)
    return ", ".join(data)


def _read_text(found: Gathered, given: Input) -> str:
    text = convert.decode(_bytes(given))
    parts = {
        "launch command": _read_launches(found, given, text),
        "decode line": _read_pasted_log(found, given, text),
        "run": _read_runs(found, given, text),
    }
    for kind in _read_values(found, given, text):
        parts[kind.replace("-", " ")] = 1
    if _read_release(found, given, text):
        parts["engine version"] = 1
    said = [_counted(n, what) for what, n in parts.items() if n]
    if not said:
        raise Unusable("nothing in it is a command, a log, a benchmark, a config or notes")
    return ", ".join(said)


_PASTED_KINDS = frozenset(
    {"draft-config", "target-config", "safetensors-header", "notes", "server-info"}
)
_READERS = {
    "command": _read_command,
    "server-log": _read_log,
    "vllm-log": _read_vllm,
    "server-info": _read_server_info,
    "metrics": _read_metrics,
    "generate-answers": _read_answers,
    "bench": _read_bench,
    "draft-config": _read_draft,
    "target-config": _read_target,
    "safetensors": _read_safetensors,
    "safetensors-header": _read_header,
    "notes": _read_notes,
    "text": _read_text,
}


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
