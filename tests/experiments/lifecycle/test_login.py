"""A login link works once, within its hour, and is not kept itself."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from experiments import lifecycle
from experiments.models import LoginLink


@pytest.fixture
def token(db: None) -> str:
    return lifecycle.make_login_link(user=lifecycle.owner())


def test_a_link_logs_in_once(token: str) -> None:
    user = lifecycle.spend_login_link(token=token)
    assert user is not None
    assert user.username == "owner"
    assert lifecycle.spend_login_link(token=token) is None


def test_another_token_does_not(token: str) -> None:
    assert lifecycle.spend_login_link(token=token[:-1]) is None
    assert lifecycle.spend_login_link(token="") is None
    assert lifecycle.spend_login_link(token=token) is not None


def test_a_link_expires(token: str) -> None:
    LoginLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert lifecycle.spend_login_link(token=token) is None


def test_a_link_of_a_closed_account_does_not_work(token: str) -> None:
    owner = lifecycle.owner()
    owner.is_active = False
    owner.save()
    assert lifecycle.spend_login_link(token=token) is None


def test_the_token_is_long_and_only_its_hash_is_kept(token: str) -> None:
    assert len(token) >= 43
    link = LoginLink.objects.get()
    assert token not in {str(v) for v in vars(link).values()}
    assert len(link.token_sha256) == 64


def test_the_owner_is_made_once_and_has_no_password(db: None) -> None:
    first, second = lifecycle.owner(), lifecycle.owner()
    assert first == second
    assert not first.has_usable_password()


def test_links_that_are_long_over_are_removed(token: str) -> None:
    LoginLink.objects.update(expires_at=timezone.now() - timedelta(hours=2))
    lifecycle.make_login_link(user=lifecycle.owner())
    assert LoginLink.objects.count() == 1


def test_the_command_prints_a_link_that_works(db: None) -> None:
    out = StringIO()
    call_command("login_link", base="http://host:8000/", stdout=out)
    link = out.getvalue().strip()
    assert link.startswith("http://host:8000/")
    assert lifecycle.spend_login_link(token=link.rstrip("/").rsplit("/", 1)[1]) is not None
