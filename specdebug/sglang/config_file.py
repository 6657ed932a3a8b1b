"""The file that --config names: server arguments as flat YAML, a key and a value to a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from specdebug.sglang.flags import FlagValue, parse_argv
from specdebug.sglang.patterns import regex

__all__ = ["read_config"]

_FEWEST = 2  # keys in a row; a single one may be a sentence
_MOST_LINES = 2_000
_ENTRY = regex(r"(?P<key>[A-Za-z][\w-]{1,60})\s*:(?:\s+(?P<value>\S.*?))?\s*$")
_COMMENT = regex(r"(?:^|\s)#.*$")
_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def read_config(text: str) -> Mapping[str, FlagValue]:
    """The arguments that such a body sets, by the engine's own names; {} where there is none.

    The body may be a whole file or lines among others: entries that stand together, each with a key
    the engine knows or one written like a flag. Keys have dashes or underscores; the engine takes
    both. Items of a list over several lines are not read.
    """
    best: dict[str, FlagValue] = {}
    block: dict[str, FlagValue] = {}
    for number, raw in enumerate(text.splitlines()[:_MOST_LINES], start=1):
        line = _COMMENT.sub("", raw).rstrip()
        if not line or line == "---" or (block and line[0] in " \t-"):
            continue  # the items of a list over several lines belong to the key above
        found = _entry(line, number)
        if found is None:
            block = {}
            continue
        block.update(found)
        if len(block) >= max(_FEWEST, len(best)):
            best = block
    return best


def _entry(line: str, number: int) -> dict[str, FlagValue] | None:
    """The argument of one line, {} for one that is switched off; None for no entry."""
    match = _ENTRY.match(line)
    if match is None:
        return None
    option = f"--{match['key'].replace('_', '-')}"
    value = (match["value"] or "").strip()
    words = [w.strip().strip("\"'") for w in value.strip("[]").split(",")]
    words = words if value.startswith("[") else [value.strip("\"'")]
    if (switch := _SWITCHES.get(value.lower())) is not None:
        words = []
    command = parse_argv([option, *(word for word in words if word)])
    if (command.unknown and not {"-", "_"} & set(match["key"])) or not command.flags:
        return None
    if switch is False or (switch is None and not value):
        return {}
    return {
        dest: replace(given, line=number, flag_as_written=f"{match['key']}:", raw=value)
        for dest, given in command.flags.items()
    }
