"""Prompts out of a shipped set or a file: JSONL or ShareGPT; asks nothing and picks nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.plan import RunEnded

SHIPPED = Path(__file__).resolve().parent / "prompts"
LARGEST_FILE = 64 * 1024 * 1024
SUFFIXES = (".jsonl", ".json")
_BY_HASH = re.compile(r"[0-9a-f]{64}")  # how the record keeps a file that was uploaded
# Who asks, in the names that ShareGPT files use.
_ASKERS = ("human", "user")


@dataclass(frozen=True)
class Prompt:
    """`body` is what goes into the request: {"text": ...} or {"input_ids": [...]}."""

    id: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class PromptFile:
    """All prompts of one file, with the SHA-256 of its content."""

    path: Path
    sha256: str
    prompts: tuple[Prompt, ...]


def shipped() -> list[str]:
    """The names of the sets that come with the program."""
    return sorted(file.stem for file in SHIPPED.glob("*.jsonl"))


def read_prompts(name: str) -> PromptFile:
    """A shipped set by its name, or a file: JSON lines, or one JSON list.

    Each entry has "text" (or "prompt"), "input_ids", or ShareGPT's "conversations", of which the
    first question is taken. Raises RunEnded naming file and line.
    """
    own = SHIPPED / f"{name}.jsonl"
    path = own if "/" not in name and own.is_file() else Path(name)
    named = path.suffix in SUFFIXES or _BY_HASH.fullmatch(path.name)
    if not named or not path.is_file():
        raise RunEnded(
            "failed",
            f"Prompts {name!r}: neither a shipped set ({', '.join(shipped()) or 'none'}) nor a "
            ".jsonl or .json file on this machine.",
        )
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise RunEnded("failed", f"Prompts {path}: larger than {LARGEST_FILE >> 20} MiB.")
        data = path.read_bytes()
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise RunEnded("failed", f"Prompts {path} cannot be read: {problem}") from None
    found = _of_list(path, text) if text.lstrip()[:1] == "[" else _of_lines(path, text)
    if not found:
        raise RunEnded("failed", f"Prompts {path}: there is none in it.")
    return PromptFile(path, hashlib.sha256(data).hexdigest(), tuple(found))


def _of_lines(path: Path, text: str) -> list[Prompt]:
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{path}:{number}"
            found.append(_prompt(where, number, _decoded(where, line)))
    return found


def _of_list(path: Path, text: str) -> list[Prompt]:
    """ShareGPT files are one list; conversations that nobody begins with a question are left out,
    as the benchmarks that read such files do."""
    entries = _decoded(str(path), text)
    found = []
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, dict) and "conversations" in entry and _question(entry) is None:
            continue
        found.append(_prompt(f"{path}, entry {number}", number, entry))
    return found


def _decoded(where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise RunEnded("failed", f"Prompts {where}: not JSON ({problem}).") from None


def _prompt(where: str, number: int, given: Any) -> Prompt:
    if isinstance(given, dict):
        text, ids = given.get("text", given.get("prompt")), given.get("input_ids")
        if text is None and ids is None:
            text = _question(given)
        if isinstance(text, str) and text:
            return Prompt(_name(given, number, text), {"text": text})
        if isinstance(ids, list) and ids and all(type(token) is int for token in ids):
            return Prompt(_name(given, number, str(ids)), {"input_ids": ids})
    raise RunEnded(
        "failed", f'Prompts {where}: needs "text" (or "prompt"), "input_ids" or "conversations".'
    )


def _name(given: Mapping[str, Any], number: int, content: str) -> str:
    """The entry's own id, else its place and content: equal names must be equal prompts."""
    own = given.get("id")
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    return str(number) + "-" + digest[:8] if own is None else str(own)


def _question(given: Mapping[str, Any]) -> str | None:
    """The first thing that is asked in a conversation."""
    turns = given.get("conversations")
    if not isinstance(turns, list) or not turns or not isinstance(turns[0], dict):
        return None
    first = turns[0]
    said = first.get("value", first.get("content"))
    asks = first.get("from", first.get("role")) in _ASKERS
    return said if asks and isinstance(said, str) and said.strip() else None
