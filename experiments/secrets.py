"""Keys in a plan: kept in files of their own beside the record, never in a row.

A plan names such a value `secret:` and a random name; the value lies under that name in the data
folder, readable by the owner alone. Pages, exports, reports and the database see the name only, and
the worker puts the value back when it starts the engine. A back-up of the data folder holds both.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings

from experiments.refusal import Refused
from workers import engines
from workers.plan import RunPlan

PREFIX = "secret:"
_NAMED = re.compile(rf"{PREFIX}[0-9a-f]{{24}}")
# Shorter values stand in half the words of a log.
SHORTEST = 6
MASK = "[removed]"


def hidden(
    server_args: Sequence[str], env: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The same plan with its keys put away. Raises Refused where the disk cannot take them."""
    return engines.replace_secrets(server_args, env, _put)


def revealed(plan: RunPlan) -> RunPlan:
    """The plan as the engine needs it. Raises Refused where a value is not on this machine."""
    return replace(
        plan,
        server_args=tuple(_reveal(argument) for argument in plan.server_args),
        env={name: _reveal(value) for name, value in plan.env.items()},
    )


def values_of(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """The values behind a kept plan, as far as they are on this machine: no log may show them."""
    found = []
    texts = [*plan.get("server_args", []), *dict(plan.get("env") or {}).values()]
    for name in _names(texts):
        value = _read(name)
        if value and len(value) >= SHORTEST:
            found.append(value)
    return tuple(found)


def masked(text: str, values: Sequence[str]) -> str:
    """The text without these values."""
    for value in values:
        text = text.replace(value, MASK)
    return text


def _names(texts: Sequence[Any]) -> Iterator[str]:
    for text in texts:
        yield from _NAMED.findall(str(text))


def _reveal(text: str) -> str:
    for name in _NAMED.findall(text):
        value = _read(name)
        if value is None:
            raise Refused(
                f"the value of {name} is not on this machine; plan the run again with the key"
            )
        text = text.replace(name, value)
    return text


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "secrets"


def _put(value: str) -> str:
    if _NAMED.fullmatch(value) or not value:
        return value
    name = secrets.token_hex(12)
    try:
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(value)
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        raise Refused(f"the key cannot be put away: {problem.strerror or problem}") from None
    return PREFIX + name


def _read(name: str) -> str | None:
    try:
        return (_folder() / name.removeprefix(PREFIX)).read_text(encoding="utf-8")
    except OSError:
        return None
