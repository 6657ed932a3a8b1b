"""One-time login links: made for the local owner, spent once; only their hash is kept."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from experiments.models import LoginLink

LIFETIME = timedelta(hours=1)
OWNER = "owner"


def owner() -> User:
    """The local owner's account, made on first use with a password that nobody can log in with."""
    model = get_user_model()
    with transaction.atomic():
        user, made = model.objects.get_or_create(
            username=OWNER, defaults={"is_staff": True, "is_superuser": True}
        )
        if made:
            user.set_unusable_password()
            user.save(update_fields=["password"])
    return user


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def make_login_link(*, user: User) -> str:
    """A fresh token for `user`, valid for an hour; links that are over are removed."""
    now = timezone.now()
    LoginLink.objects.filter(expires_at__lt=now - LIFETIME).delete()
    token = secrets.token_urlsafe(32)
    LoginLink.objects.create(token_sha256=_hash(token), user=user, expires_at=now + LIFETIME)
    return token


def spend_login_link(*, token: str) -> User | None:
    """The user of an unused link, which is used up by this call; None for any other token."""
    now = timezone.now()
    digest = _hash(token)
    won = LoginLink.objects.filter(
        token_sha256=digest, used_at=None, expires_at__gt=now, user__is_active=True
    ).update(used_at=now)
    if not won:
        return None
    return LoginLink.objects.select_related("user").get(token_sha256=digest).user
