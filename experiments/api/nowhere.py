"""What is no address of the API: a problem like any other, not a page."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions

from experiments.api.endpoint import Endpoint


class Nowhere(Endpoint):
    asks = dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"), "")
    repeatable = False

    @extend_schema(exclude=True)
    def get(self, request: Any) -> None:
        """404, for whatever method."""
        said = "there is no such address; /api/v1/openapi lists them all"
        if request.path.endswith("/"):
            said += ", none with a slash at its end"
        raise exceptions.NotFound(said)

    post = put = patch = delete = get
