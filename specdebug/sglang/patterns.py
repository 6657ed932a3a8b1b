"""Regular expressions that compile when they are first used; it holds none of its own.

A command that reads one kind of input imports the readers of all kinds: compiling every pattern of
theirs took a fifth of the time in which `specdebug check` starts.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Later:
    """Stands for a compiled pattern; what is asked of it once is kept, and costs nothing again."""

    def __init__(self, source: Any, flags: int) -> None:
        self._made_of = (source, flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # copying and pickling ask; a pattern answers neither here
        value = getattr(re.compile(*self._made_of), name)
        setattr(self, name, value)
        return value


def regex(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern of `source`: its methods and `.pattern`, not a first argument for `re.sub`.

    A mistake in `source` raises `re.error` at the first use; a test compiles all of them.
    """
    return cast("re.Pattern[AnyStr]", _Later(source, flags))
