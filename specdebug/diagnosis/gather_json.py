"""Decoded JSON into a Case: configs, a checkpoint's header, notes, a server's own answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from specdebug.diagnosis import bench_rows, convert
from specdebug.diagnosis.content import Unusable
from specdebug.diagnosis.facts import ConfigFile
from specdebug.diagnosis.gathered import Gathered, counted
from specdebug.sglang import meta_info, server_info
from specdebug.sglang.flags import parse_command
from specdebug.sglang.server_info import ServerInfo

__all__ = [
    "PASTED",
    "read_answers",
    "read_draft",
    "read_header",
    "read_notes",
    "read_state",
    "read_target",
]


def _architectures(data: Mapping[str, Any]) -> str:
    named = data.get("architectures")
    return ", ".join(map(str, named)) if isinstance(named, list) and named else "no architecture"


def read_draft(found: Gathered, name: str, data: Mapping[str, Any]) -> str:
    """The draft's config.json. Raises Unusable when another one was given before."""
    if found.draft is not None and found.draft.raw != data:
        raise Unusable(f"a second draft config; {found.draft.source} is used")
    found.draft = found.draft or ConfigFile(name, data)
    return _architectures(data)


def read_target(found: Gathered, name: str, data: Mapping[str, Any]) -> str:
    """The target's config.json. Raises Unusable when another one was given before."""
    if found.target is not None and found.target.raw != data:
        raise Unusable(f"a second target config; {found.target.source} is used")
    found.target = found.target or ConfigFile(name, data)
    return _architectures(data)


def read_header(found: Gathered, name: str, data: Mapping[str, Any]) -> str:
    """A safetensors header as JSON. Raises ValueError when it is none."""
    from specdebug.eagle import checkpoint  # late: few inputs are a header

    header = checkpoint.header_from_dict(data)
    found.header = ConfigFile(name, data)
    return counted(len(header.tensors), "tensor")


def read_notes(found: Gathered, name: str, data: Mapping[str, Any]) -> str:
    """What a person knows; of a key given twice the last value counts."""
    for key, value in data.items():
        found.notes[key] = (value, name)
    return ", ".join(data)


def read_state(found: Gathered, name: str, info: ServerInfo) -> str:
    """A server's answer about itself, with the command that started it where it names one."""
    found.states.append(convert.state(info, name))
    if info.launch_command:
        found.launches += [convert.launch(c, name) for c in parse_command(info.launch_command)]
    return f"release {info.release or 'unknown'}, {len(info.args)} arguments"


def read_answers(found: Gathered, name: str, text: str) -> int:
    """Answers of /generate with their meta_info, pooled; returns how many."""
    requests = meta_info.read_meta_info(text)
    if requests:
        loops = bench_rows.looping_text(text)
        found.positions.append(bench_rows.positions(requests, name, loops=loops))
    return len(requests)


def _pasted_state(found: Gathered, name: str, data: Mapping[str, Any]) -> str:
    return read_state(found, name, server_info.from_mapping(data))


def _quietly(
    read: Callable[[Gathered, str, Mapping[str, Any]], str],
) -> Callable[[Gathered, str, Any], bool]:
    """The reader for a value among other words, where one that does not fit is simply left out."""

    def pasted(found: Gathered, name: str, value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        try:
            read(found, name, value)
        except (Unusable, ValueError):
            return False
        return True

    return pasted


# By the kinds of sglang/recognise.py: what may stand in a paste beside other things.
PASTED: Mapping[str, Callable[[Gathered, str, Any], bool]] = {
    "draft-config": _quietly(read_draft),
    "target-config": _quietly(read_target),
    "safetensors-header": _quietly(read_header),
    "notes": _quietly(read_notes),
    "server-info": _quietly(_pasted_state),
}
