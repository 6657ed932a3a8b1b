"""From an address to rows: what is not there becomes a 404 with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404

P = ParamSpec("P")
T = TypeVar("T")


def found(read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `read` returns; a row that does not exist is a 404."""
    try:
        return read(*args, **kwargs)
    except ObjectDoesNotExist:
        raise Http404 from None
