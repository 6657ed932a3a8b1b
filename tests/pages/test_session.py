"""Coming in by password and by one-time link, and going out."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments import lifecycle
from experiments.models import LoginLink


@pytest.fixture
def user(db: Any) -> User:
    """A user with a password, which takes a while to hash."""
    return User.objects.create_user("ada", password="a long enough one")


def logged_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_name_and_password_open_the_page_that_was_asked_for(story: Any, user: User) -> None:
    client = Client()
    answer = client.post(
        "/login/",
        {"username": "ada", "password": "a long enough one", "next": "/i/why-is-it-slow/"},
    )
    assert answer["Location"] == "/i/why-is-it-slow/"
    assert logged_in(client)


def test_a_foreign_address_to_return_to_is_ignored(user: User) -> None:
    answer = Client().post(
        "/login/", {"username": "ada", "password": "a long enough one", "next": "//evil.example/"}
    )
    assert answer["Location"] == "/"


def test_a_wrong_password_says_so_and_keeps_out(user: User) -> None:
    client = Client()
    answer = client.post("/login/", {"username": "ada", "password": "wrong"})
    assert b"do not match" in answer.content
    assert not logged_in(client)


def test_looking_at_a_link_does_not_spend_it_and_the_button_does(user: User) -> None:
    token = lifecycle.make_login_link(user=user)
    address = f"/login/link/{token}/"
    preview = Client()
    for _ in range(3):
        assert preview.get(address).status_code == 200
        assert preview.head(address).status_code == 200
    assert LoginLink.objects.get().used_at is None
    client = Client()
    assert client.post(address)["Location"] == "/"
    assert logged_in(client)
    second = Client()
    answer = second.post(address)
    assert answer.status_code == 403
    assert b"no longer works" in answer.content
    assert not logged_in(second)


@pytest.mark.parametrize("token", ["x", "a" * 43, "a" * 3000, "%00"])
def test_a_made_up_link_opens_nothing(db: Any, token: str) -> None:
    client = Client()
    assert client.post(f"/login/link/{token}/").status_code in (403, 404)
    assert not logged_in(client)


def test_the_link_page_is_not_kept_by_caches(user: User) -> None:
    token = lifecycle.make_login_link(user=user)
    assert "no-store" in Client().get(f"/login/link/{token}/")["Cache-Control"]


def test_logging_out_needs_post(browser: Client) -> None:
    assert browser.get("/logout/").status_code == 405
    assert browser.post("/logout/")["Location"] == "/login/"
    assert not logged_in(browser)


def test_healthz_answers_without_login(db: Any) -> None:
    answer = Client().get("/healthz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
