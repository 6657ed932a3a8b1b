"""Lines of scripts and YAML files made ready for the reader of commands; it splits no words."""

from __future__ import annotations

import itertools
import re

from specdebug.sglang.patterns import regex

_NAMED = regex(r"^\s*(?:-\s+)?name\s*:\s*[\"']?([A-Z][A-Z0-9_]+)[\"']?\s*$")
_NAMED_VALUE = regex(r"^\s*value\s*:\s*[\"']?(.*?)[\"']?\s*$")
_ENV_LINE = regex(r"^\s*(?:-\s+)?[\"']?([A-Z][A-Z0-9_]{2,})\s*[=:]\s*[\"']?([^\"'#]*?)[\"']?\s*$")

_SECTION = regex(r"^(?:-\s+)?(?:env|environment)\s*:\s*$")
_DOCKER = regex(r"^ENV\s+([A-Z][A-Z0-9_]*)[=\s]\s*(\S+)\s*$")
_SCRIPT = regex(r"\s*(?:#!|export\s|[^#\s].*(?:launch_server|(?:sglang|vllm) serve\b))")


def uncommented(lines: list[str]) -> list[str]:
    """A script without its comments; elsewhere "# " may be root's prompt and stays."""
    if not any(line and _SCRIPT.match(line[:2_000]) for line in lines):
        return lines
    return [
        "" if line.lstrip().startswith("#") and not before.rstrip().endswith("\\") else line
        for before, line in itertools.pairwise(["", *lines])
    ]


_BLOCK = regex(
    r"^(\s*)(?:-\s+)?(?:command|args|entrypoint|run)\s*:\s*(>[+-]?\s*$|[^\s|>\[{&*!-].*$)"
)


def folded(lines: list[str]) -> list[str]:
    """YAML text that folds over lines (">", or a plain value that goes on) as continued lines."""
    out = list(lines)
    at = 0
    while at < len(lines):
        key = _BLOCK.match(lines[at][:2_000]) if ":" in lines[at] else None
        at += 1
        if key is None:
            continue
        first = at if key[2].startswith(">") else at - 1
        while at < len(lines) and _deeper(lines[at], len(key[1])):
            at += 1
        for n in range(first, at - 1):
            if not out[n].rstrip().endswith("\\"):
                out[n] = out[n].rstrip() + " \\"
    return out


def _deeper(line: str, indent: int) -> bool:
    """Whether a line goes on with the value of a YAML key that is indented so far."""
    body = line.lstrip()
    return (
        len(line) - len(body) > indent
        and bool(body)
        and not body.startswith(("- ", "#"))
        and re.match(r"[\w.-]+\s*:(?:\s|$)", body) is None
    )


def environment_of(lines: list[str]) -> dict[str, str]:
    """Upper-case variables of YAML `env:`/`environment:` sections and of Dockerfile ENV lines."""
    values: dict[str, str] = {}
    inside = False
    pending: str | None = None
    for line in lines:
        if not line or not (inside or "env" in line or "ENV" in line):
            continue
        stripped = line.strip()
        if _SECTION.match(stripped):
            inside = True
            continue
        if docker := _DOCKER.match(stripped):
            values[docker[1]] = docker[2].strip("\"'")
        if not inside:
            continue
        if named := _NAMED.match(line):
            pending = named[1]
        elif pending is not None and (value := _NAMED_VALUE.match(line)):
            values[pending] = value[1]
            pending = None
        elif pair := _ENV_LINE.match(line):
            values[pair[1]] = pair[2].strip()
        elif stripped:
            inside = False
    return values
