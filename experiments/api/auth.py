"""Who asks: a program with a token in `Authorization: Bearer`, or a person's browser session."""

from __future__ import annotations

from typing import Any

from rest_framework import authentication, exceptions

from experiments.api import rates
from experiments.lifecycle import access
from experiments.models import ApiToken

REALM = 'Bearer realm="specdebug"'


class TokenAuthentication(authentication.BaseAuthentication):
    """A token of `lifecycle.access`; anything else in the header is refused, never ignored."""

    def authenticate(self, request: Any) -> tuple[Any, ApiToken] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            raise exceptions.AuthenticationFailed(
                "the Authorization header must be 'Bearer sdb_...'; make a token on the Tokens page"
            )
        token = access.token_of(text.strip())
        if token is None:
            rates.wrong(request)
            raise exceptions.AuthenticationFailed(
                "the token is unknown, over or revoked; make a new one on the Tokens page"
            )
        return token.user, token

    def authenticate_header(self, request: Any) -> str:
        return REALM


class BrowserSession(authentication.SessionAuthentication):
    """The pages' own login; writes need the CSRF token as everywhere."""

    def authenticate_header(self, request: Any) -> str:
        return REALM
