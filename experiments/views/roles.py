"""Viewers read: the one place that keeps a viewer's browser from writing, on whatever page."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.urls import resolve

from experiments.lifecycle import access

READING = ("GET", "HEAD", "OPTIONS")
# What a viewer does to nobody but themselves, or what keeps nothing.
ALLOWED = frozenset(
    {"login", "login-link", "logout", "check", "tokens", "token-revoke", "share"}
    | {"view-keep", "view-forget", "password", "preview"}
)


class ViewersOnlyRead:
    """Refuses writes of people whose role is viewer; the API asks for itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: object
    ) -> None:
        """Raises PermissionDenied, which is answered with a page that says why."""
        if request.method in READING or request.path_info.startswith("/api/"):
            return
        user = request.user
        if not user.is_authenticated or access.may(user, "write"):
            return
        if resolve(request.path_info).url_name not in ALLOWED:
            raise PermissionDenied(
                "Your role is viewer: you can read everything and change nothing."
            )
