"""The one form in which the API says no: problem details after RFC 9457."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import (
    ObjectDoesNotExist,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db import OperationalError
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response

from experiments.queries.search import BadQuery
from experiments.refusal import Refused
from experiments.streams import Gap

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "The request cannot be understood",
    401: "Who are you?",
    403: "Not allowed",
    404: "Not there",
    405: "Not possible here",
    409: "The record's rules do not allow it",
    412: "It has changed in the meantime",
    413: "Too large",
    415: "Not a form that is read here",
    422: "The key was used for something else",
    429: "Too many requests",
    500: "A fault of ours",
    503: "Not available now",
}
KINDS = {
    400: "invalid",
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    409: "refused",
    412: "changed",
    413: "too-large",
    415: "unsupported-media-type",
    422: "key-reused",
    429: "rate-limited",
    500: "internal",
    503: "unavailable",
}


class Changed(exceptions.APIException):
    """If-Match names another state than the present one."""

    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_detail = "somebody changed it since you read it; read it again and decide anew"


class KeyReused(exceptions.APIException):
    """An Idempotency-Key that came with another request before."""

    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_detail = "this Idempotency-Key was sent with another request; use a fresh one"


class TooLarge(exceptions.APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = "the body is larger than what is taken here; send it in parts"


class Unavailable(exceptions.APIException):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE


def problem(code: int, detail: str, **more: Any) -> dict[str, Any]:
    """The body of a problem; `more` are members of that kind of problem."""
    return {
        "type": f"urn:specdebug:problem:{KINDS.get(code, 'invalid')}",
        "title": TITLES.get(code, "It did not work"),
        "status": code,
        "detail": detail,
        **more,
    }


def handled(error: Exception, context: Any) -> Response | None:
    """The answer to an exception of a view; None for a fault of ours, which is logged and a 500."""
    error = _known(error)
    if not isinstance(error, exceptions.APIException):
        return None
    code = error.status_code
    more: dict[str, Any] = dict(getattr(error, "more", {}))
    headers: dict[str, str] = dict(getattr(error, "headers", {}))
    if isinstance(error, exceptions.UnsupportedMediaType):
        detail = f"the body must come with 'Content-Type: {_taken(context['view'])}'"
    elif isinstance(error, exceptions.ValidationError):
        errors = list(_errors(error.detail))
        detail = "; ".join(_said(e) for e in errors)
        more["errors"] = errors
    else:
        detail = str(error.detail)
    if header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = header
    if (wait := getattr(error, "wait", None)) is not None:
        headers["Retry-After"] = str(max(1, int(wait)))
    return Response(
        problem(code, detail, **more), status=code, headers=headers, content_type=MEDIA_TYPE
    )


def _taken(view: Any) -> str:
    """What a body at this address is."""
    return " or ".join(parser.media_type for parser in view.parser_classes)


def _known(error: Exception) -> Any:
    """An exception of the record or of Django as the framework's own."""
    if isinstance(error, BadQuery):
        return exceptions.ValidationError({"filter": [str(error)]})
    if isinstance(error, Refused):
        known = exceptions.APIException(str(error))
        known.status_code = status.HTTP_409_CONFLICT
        more: dict[str, Any] = {}
        if error.obstacles:
            more["obstacles"] = list(error.obstacles)
        if isinstance(error, Gap):
            more["expected"] = error.expected
        known.more = more
        return known
    if isinstance(error, ObjectDoesNotExist | Http404):
        return exceptions.NotFound("there is no such object; look at the list above it")
    if isinstance(error, PermissionDenied):
        return exceptions.PermissionDenied(str(error) or None)
    if isinstance(error, RequestDataTooBig):
        return TooLarge()
    if isinstance(error, SuspiciousOperation):
        return exceptions.ParseError("the request is malformed")
    if isinstance(error, OperationalError) and "locked" in str(error):
        log.warning("the database is busy: %s", error)
        busy = Unavailable("the database is busy; try again in a moment")
        busy.wait = 1
        return busy
    return error


def _errors(detail: Any, field: str = "") -> Iterator[dict[str, str]]:
    """Each complaint with the dotted path of its field."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            path = "" if name == "non_field_errors" else str(name)
            yield from _errors(inner, ".".join(filter(None, (field, path))))
    elif isinstance(detail, list):
        for place, inner in enumerate(detail):
            nested = isinstance(inner, dict | list)
            yield from _errors(inner, f"{field}.{place}" if nested and inner else field)
    else:
        yield {"field": field, "reason": str(detail)}


def _said(error: dict[str, str]) -> str:
    return f"{error['field']}: {error['reason']}" if error["field"] else error["reason"]
