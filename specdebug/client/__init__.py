"""The Python client and the command line: httpx and the library only, no Django, no torch.

    from specdebug.client import Client

What is imported here stays small, so that the command line starts at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specdebug.client.api import Client
    from specdebug.client.http import ApiError, Unreachable
    from specdebug.client.investigation import Investigation
    from specdebug.client.run import Run

__all__ = ["ApiError", "Client", "Investigation", "Run", "Unreachable"]

_WHERE = {
    "Client": "api",
    "Investigation": "investigation",
    "Run": "run",
    "ApiError": "http",
    "Unreachable": "http",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(f"specdebug.client.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
