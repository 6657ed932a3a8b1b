"""How often somebody may ask: requests a minute for each person, wrong tokens for each address.

Counted in this process alone: with n web processes up to n times as much gets through.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from rest_framework import exceptions

WINDOW = 60
WRONG_TOKENS = 30
_MOST_KEYS = 10_000


@dataclass(slots=True)
class _Count:
    window: int
    used: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """limit: requests a window; left: how many remain; reset: seconds until the next window."""

    limit: int
    left: int
    reset: int

    @property
    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.left),
            "RateLimit-Reset": str(self.reset),
        }


class TooMany(exceptions.Throttled):
    """More than was allowed in this window; headers: where its sender stands."""

    def __init__(self, what: str, reset: int, headers: Mapping[str, str]) -> None:
        super().__init__(wait=reset)
        self.detail = f"{what}; go on in {reset} s"
        self.headers = headers


_counts: dict[str, _Count] = {}
_lock = threading.Lock()


def _counted(key: str) -> tuple[int, int]:
    """Count one; how many came in this window, and the seconds until the next."""
    now = int(time.time())
    window = now // WINDOW
    with _lock:
        if len(_counts) > _MOST_KEYS:
            for old in [k for k, c in _counts.items() if c.window != window]:
                del _counts[old]
        count = _counts.get(key)
        if count is None or count.window != window:
            count = _counts[key] = _Count(window)
        count.used += 1
        return count.used, WINDOW - now % WINDOW


def use(request: Any) -> Standing:
    """Count one request of the person who asks. Raises TooMany when there were too many."""
    limit: int = settings.API_REQUESTS_PER_MINUTE
    used, reset = _counted(f"person {request.user.pk}")
    standing = Standing(limit, max(limit - used, 0), reset)
    if used > limit:
        raise TooMany(f"more than {limit} requests in this minute", reset, standing.headers)
    return standing


def wrong(request: Any) -> None:
    """Count a wrong token. Raises TooMany when too many came from this address; a right one is
    never held up, since many people may come through one proxy."""
    used, reset = _counted(f"address {request.META.get('REMOTE_ADDR', '')}")
    if used > WRONG_TOKENS:
        raise TooMany("too many wrong tokens from this address", reset, {})


def forget() -> None:
    """Start counting anew; for tests."""
    with _lock:
        _counts.clear()
