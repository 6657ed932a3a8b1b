"""A launch command as the engine will see it: argv, environment, flags by their names inside the
engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Engine = Literal["sglang", "vllm", "unknown"]
Value = bool | int | float | str | list["Value"] | dict[str, "Value"] | None


@dataclass(frozen=True)
class FlagValue:
    """One flag of a command.

    `value` is typed (int, float, bool, str, or parsed JSON), `raw` is the text that was given
    (empty for a switch), `line` the 1-based line of the input on which the flag stands.
    """

    value: Value
    raw: str
    flag_as_written: str
    line: int


@dataclass(frozen=True)
class CommandProblem:
    """Something in a command that the engine would refuse or that reads two ways; `line` is
    1-based."""

    line: int
    message: str


@dataclass(frozen=True)
class LaunchCommand:
    """One launch of an engine: `flags` by the engine's own names (`tp_size`, not `--tp`).

    Flags that no known release has are kept under their plain name and listed in `unknown`.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    engine: Engine
    flags: Mapping[str, FlagValue]
    line: int = 1
    positionals: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    problems: tuple[CommandProblem, ...] = field(default=())

    def value(self, dest: str) -> Value:
        """The value given for `dest`, or None when the flag is absent."""
        given = self.flags.get(dest)
        return None if given is None else given.value


def parse_command(text: str) -> list[LaunchCommand]:
    """Every engine launch found in `text`: shell lines, scripts, docker, compose or Kubernetes
    YAML, traces.

    Returns an empty list when there is none; never raises on bad input.
    """
    raise NotImplementedError


def parse_argv(argv: Sequence[str]) -> LaunchCommand:
    """The launch that `argv` makes; environment assignments and wrappers in front of the engine are
    understood."""
    raise NotImplementedError
