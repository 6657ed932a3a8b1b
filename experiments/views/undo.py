"""A word after a deed, with a button that takes it back."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest

MARK = "undo:"


def done(request: HttpRequest, says: str, undo: str) -> None:
    """Say what was done on the next page; `undo`: the address that takes it back by POST."""
    messages.success(request, says, extra_tags=f"{MARK}{undo}")
