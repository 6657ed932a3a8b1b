"""How the OpenAPI document is made: what every address shares is said once, here."""

from __future__ import annotations

from typing import Any, Literal

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from experiments.api.problems import MEDIA_TYPE, TITLES
from experiments.api.shapes import Problem

FILTER = OpenApiParameter(
    "filter", str, description="Which rows, in the query language of docs/api.md."
)
ORDER = OpenApiParameter("order", str, description="A field to order by, - for downwards.")
LIMIT = OpenApiParameter(
    "limit", {"type": "integer", "minimum": 1, "maximum": 1000}, description="Rows at most."
)
CURSOR = OpenApiParameter("cursor", str, description="`next` of the answer before.")
LIST = [FILTER, ORDER, LIMIT, CURSOR]

_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255},
    OpenApiParameter.HEADER,
    description="Any text of yours; the same request with it is done once, for a day.",
)
_IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The ETag that was read: 412 where the object has changed since.",
)


class EndpointSchema(AutoSchema):
    """Adds scope, problems, and the headers for repeated writes and edits to every operation."""

    def get_description(self) -> str:
        said = super().get_description() or ""
        needed = (
            self.view.asks.get(self.method, "read" if self.method == "GET" else "write")
            if hasattr(self.view, "asks")
            else "read"
        )
        return f"{said}\n\nNeeds: `{needed}`.".strip()

    def get_override_parameters(self) -> list[Any]:
        found = list(super().get_override_parameters())
        if self.method == "POST" and getattr(self.view, "repeatable", False):
            found.append(_KEY)
        if self.method == "PATCH":
            found.append(_IF_MATCH)
        return found

    def _get_response_bodies(
        self, direction: Literal["request", "response"] = "response"
    ) -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        codes = [400, 401, 403, 429, 503]
        if "{" in self.path:
            codes.append(404)
        if self.method in ("POST", "PUT", "PATCH", "DELETE"):
            codes += [409, 413, 415]
        if self.method == "POST":
            codes.append(422)
        if self.method == "PATCH":
            codes.append(412)
        if self.method == "GET":
            bodies.setdefault("304", {"description": "The caller has it already (If-None-Match)."})
        for code in codes:
            if str(code) not in bodies:
                bodies[str(code)] = self._get_response_for_code(  # type: ignore[no-untyped-call]
                    OpenApiResponse(Problem, description=TITLES[code]),
                    str(code),
                    media_types=[MEDIA_TYPE],
                )
        return dict(sorted(bodies.items()))


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "experiments.api.auth.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of the Tokens page, sdb_...; scopes read, write and worker.",
        }


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "experiments.api.auth.BrowserSession"
    name = "session"
    priority = 1

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "apiKey", "in": "cookie", "name": "specdebug_session"}


FILE = OpenApiTypes.BINARY
