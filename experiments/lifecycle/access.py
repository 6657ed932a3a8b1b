"""Who may do what: roles of people, and the tokens that their programs carry."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from experiments.lifecycle.text import needed
from experiments.models import ApiToken, Role
from experiments.queries.prepared import Prepared
from experiments.refusal import Refused

# Recognisable, so that scanners for leaked secrets can find it.
PREFIX = "sdb_"
HINT_LENGTH = len(PREFIX) + 6
LONGEST_DAYS = 366
MOST_TOKENS = 100
_USED_EVERY = timedelta(minutes=1)

# What a role may do at most, and what a token's scope lets through of it.
GRANTS: dict[str, frozenset[str]] = {
    Role.Name.VIEWER: frozenset({"read"}),
    Role.Name.MEMBER: frozenset({"read", "write", "worker"}),
    Role.Name.ADMIN: frozenset({"read", "write", "worker", "admin"}),
}
SCOPES: dict[str, frozenset[str]] = {
    ApiToken.Scope.READ: frozenset({"read"}),
    ApiToken.Scope.WRITE: frozenset({"read", "write", "worker", "admin"}),
    ApiToken.Scope.WORKER: frozenset({"worker"}),
}


def role_of(user: User) -> str:
    """viewer, member or admin; a member where nothing was said."""
    if user.is_superuser:
        return Role.Name.ADMIN
    row: Role | None = getattr(user, "role", None)  # fetched with the user where it was
    return Role.Name.MEMBER if row is None else row.name


def may(user: User, what: str, token: ApiToken | None = None) -> bool:
    """Whether the person, through the token if there is one, may read, write, send as a worker, or
    act as an admin."""
    allowed = GRANTS[role_of(user)]
    return what in (allowed if token is None else allowed & SCOPES[token.scope])


def set_role(*, user: User, name: str, by: User) -> Role:
    """Give a person a role; refused where nobody would be left who can give one."""
    if name not in Role.Name.values:
        raise Refused(f"{name!r} is no role; choose one of {', '.join(Role.Name.values)}")
    if role_of(by) != Role.Name.ADMIN:
        raise Refused("only an admin gives roles")
    if user.is_superuser and name != Role.Name.ADMIN:
        raise Refused(f"{user} owns this installation and stays an admin")
    with transaction.atomic():
        row = Role.objects.update_or_create(user=user, defaults={"name": name})[0]
        admins = User.objects.filter(is_active=True).filter(
            Q(is_superuser=True) | Q(role__name=Role.Name.ADMIN)
        )
        if not admins.exists():
            raise Refused(f"{user} is the last admin; make somebody else one first")
    return row


def make_token(
    *, user: User, name: str, scope: str = ApiToken.Scope.READ, days: int = 90
) -> tuple[ApiToken, str]:
    """A new token and its text, which is shown this once and kept nowhere."""
    if scope not in ApiToken.Scope.values:
        raise Refused(f"{scope!r} is no scope; choose one of {', '.join(ApiToken.Scope.values)}")
    if not 1 <= days <= LONGEST_DAYS:
        raise Refused(f"a token lasts 1 to {LONGEST_DAYS} days, not {days}")
    if role_of(user) == Role.Name.VIEWER and scope != ApiToken.Scope.READ:
        raise Refused("a viewer's token can only read")
    now = timezone.now()
    if ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=now).count() >= (
        MOST_TOKENS
    ):
        raise Refused(f"{user} has {MOST_TOKENS} tokens; revoke some that are no longer needed")
    text = PREFIX + secrets.token_urlsafe(32)
    row = ApiToken.objects.create(
        user=user,
        name=needed(name, "token's name", 100),
        sha256=_hash(text),
        hint=text[:HINT_LENGTH],
        scope=scope,
        expires_at=now + timedelta(days=days),
    )
    return row, text


def revoke_token(token: ApiToken) -> ApiToken:
    """End a token now; a second time changes nothing."""
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    token.refresh_from_db()
    return token


_BY_HASH = Prepared(
    lambda sha256: ApiToken.objects.select_related("user", "user__role").filter(sha256=sha256)
)


def token_of(text: str) -> ApiToken | None:
    """The token that this text is, with its user; None when it is none, is over or is revoked."""
    now = timezone.now()
    try:
        row = _BY_HASH.get(_hash(text))
    except ApiToken.DoesNotExist:
        return None
    if row.revoked_at is not None or row.expires_at <= now or not row.user.is_active:
        return None
    if row.last_used_at is None or row.last_used_at < now - _USED_EVERY:
        ApiToken.objects.filter(pk=row.pk).update(last_used_at=now)
    return row


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
