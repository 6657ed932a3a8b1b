"""Accounts: opened and closed by an admin; a person comes in by a one-time link at first."""

from __future__ import annotations

import re

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from experiments.lifecycle.access import may, set_role
from experiments.lifecycle.text import needed
from experiments.refusal import Refused

_NAME = re.compile(r"[\w.@+-]{1,150}")


def _admin(by: User) -> None:
    if not may(by, "admin"):
        raise Refused("only an admin decides about people")


def add_person(*, name: str, role: str, by: User) -> User:
    """Open an account without a password; the caller makes its first login link."""
    _admin(by)
    name = needed(name, "name", 150)
    if not _NAME.fullmatch(name):
        raise Refused(f"{name!r} is no name of an account; use letters, digits and . @ + - _")
    if User.objects.filter(username__iexact=name).exists():
        raise Refused(f"there is an account {name!r} already")
    try:
        with transaction.atomic():
            person = User(username=name)
            person.set_unusable_password()
            person.save()
            set_role(user=person, name=role, by=by)
    except IntegrityError:
        raise Refused(f"there is an account {name!r} already") from None
    return person


def set_active(*, person: User, active: bool, by: User) -> User:
    """Close an account or open it again; what it wrote stays. Nobody closes their own."""
    _admin(by)
    if person.pk == by.pk:
        raise Refused("your own account is closed by another admin")
    if person.is_superuser and not active:
        raise Refused(f"{person} owns this installation and cannot be closed out")
    person.is_active = active
    person.save(update_fields=["is_active"])
    return person
