"""The Tokens page: shown once, one's own alone, and no more than one's role."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.models import User
from django.test import Client

from experiments.models import ApiToken
from tests.api.conftest import Caller

BACKEND = "django.contrib.auth.backends.ModelBackend"


def browser(caller: Callable[..., Caller], role: str) -> Client:
    http = caller(role).http
    ApiToken.objects.all().delete()
    http.force_login(User.objects.get(username=role), backend=BACKEND)
    return http


def test_a_token_is_shown_once_and_works(caller: Callable[..., Caller]) -> None:
    http = browser(caller, "member")
    form = {"name": "CI <b>gate</b>", "scope": "write", "days": "30"}
    answer = http.post("/settings/tokens/", form)
    assert "no-store" in answer["Cache-Control"]
    page = answer.content.decode()
    text = page[page.index("sdb_") :].split('"')[0]
    assert len(text) > 40
    assert "<b>gate" not in page
    assert text not in http.get("/settings/tokens/").content.decode()
    assert Caller(text, Client()).get("me")["scope"] == "write"
    row = ApiToken.objects.get()
    assert http.post(f"/settings/tokens/{row.pk}/revoke/").status_code == 302
    Caller(text, Client()).refused(401, "GET", "me")


def test_a_form_that_makes_no_token_says_why(caller: Callable[..., Caller]) -> None:
    http = browser(caller, "member")
    for form, reason in (
        ({"name": "", "scope": "read", "days": "30"}, b"name is empty"),
        ({"name": "x", "scope": "root", "days": "30"}, b"is no scope"),
        ({"name": "x", "scope": "read", "days": "9999"}, b"1 to 366 days"),
        ({"name": "x", "scope": "read", "days": "-1"}, b"1 to 366 days"),
    ):
        answer = http.post("/settings/tokens/", form)
        assert answer.status_code == 400
        assert reason in answer.content
    assert not ApiToken.objects.exists()


def test_a_viewer_makes_tokens_that_read(caller: Callable[..., Caller]) -> None:
    http = browser(caller, "viewer")
    assert b'value="write"' not in http.get("/settings/tokens/").content
    assert (
        http.post("/settings/tokens/", {"name": "x", "scope": "write", "days": "30"}).status_code
        == 400
    )
    assert (
        http.post("/settings/tokens/", {"name": "x", "scope": "read", "days": "30"}).status_code
        == 200
    )


def test_the_token_of_another_is_not_there(caller: Callable[..., Caller]) -> None:
    http = browser(caller, "viewer")
    caller("member")
    other = ApiToken.objects.get(user__username="member")
    assert http.post(f"/settings/tokens/{other.pk}/revoke/").status_code == 404
    other.refresh_from_db()
    assert other.revoked_at is None
