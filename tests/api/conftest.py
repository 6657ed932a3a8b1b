"""Callers of the API: a person of each role with a token of each scope, and a small record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments import lifecycle
from experiments.api import rates
from experiments.lifecycle import access
from experiments.models import Investigation, Role, Run
from specdebug.client import api as client_api
from specdebug.client import run as client_run


@dataclass
class Caller:
    """A program with a token; `call` sends JSON and reads it back."""

    token: str
    http: Client

    def call(self, method: str, path: str, data: Any = None, **headers: str) -> Any:
        """The raw answer."""
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        body: dict[str, Any] = {}
        if isinstance(data, bytes):
            body = {"data": data, "content_type": "application/octet-stream"}
        elif data is not None:
            body = {"data": json.dumps(data), "content_type": "application/json"}
        return self.http.generic(method, f"/api/v1/{path}", headers=headers, **body)

    def get(self, path: str, **headers: str) -> Any:
        return self._good(self.call("GET", path, **headers))

    def post(self, path: str, data: Any = None, **headers: str) -> Any:
        return self._good(self.call("POST", path, {} if data is None else data, **headers))

    def patch(self, path: str, data: Any, **headers: str) -> Any:
        return self._good(self.call("PATCH", path, data, **headers))

    def refused(self, status: int, method: str, path: str, data: Any = None, **headers: str) -> Any:
        """The problem with which a call is refused."""
        answer = self.call(method, path, data, **headers)
        assert answer.status_code == status, (answer.status_code, answer.content[:400])
        assert answer["Content-Type"] == "application/problem+json"
        told = answer.json()
        assert told["status"] == status
        assert told["detail"]
        return told

    @staticmethod
    def _good(answer: Any) -> Any:
        assert 200 <= answer.status_code < 300, (answer.status_code, answer.content[:600])
        return answer.json() if answer["Content-Type"] == "application/json" else answer


def person(name: str, role: str) -> User:
    user = User.objects.create_user(name, password=None)
    Role.objects.create(user=user, name=role)
    return user


@pytest.fixture(autouse=True)
def _count_anew() -> Iterator[None]:
    rates.forget()
    yield
    rates.forget()


@pytest.fixture
def caller(db: None, data_dir: Path) -> Callable[..., Caller]:
    """A caller by role and scope; nobody for an empty role."""
    people: dict[str, User] = {}

    def make(role: str = "member", scope: str = "write") -> Caller:
        http = Client(raise_request_exception=False)
        if not role:
            return Caller("", http)
        if role not in people:
            people[role] = person(role, role)
        if role == "viewer":
            scope = "read"
        return Caller(access.make_token(user=people[role], name="test", scope=scope)[1], http)

    return make


@pytest.fixture
def api(caller: Callable[..., Caller]) -> Caller:
    """A member whose token reads and writes."""
    return caller()


@pytest.fixture
def inv(db: None, data_dir: Path) -> Investigation:
    return lifecycle.create_investigation(title="Slow draft", question="Is the draft worth it?")


@pytest.fixture
def base(inv: Investigation) -> Run:
    run = lifecycle.record_run(
        investigation=inv,
        title="no speculation",
        repeats=[lifecycle.RecordedRepeat(v) for v in (90.0, 90.4, 89.6)],
        server_args=["--model-path", "target"],
    )
    lifecycle.edit_investigation(inv, baseline=run)
    return run


@pytest.fixture
def served(
    api: Caller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., client_api.Client]:
    """`Client` without arguments reaches the application in this process."""
    from tests.api.in_process import AtOnce, Served

    made = client_api.Client.__init__

    def init(self: Any, *args: Any, **options: Any) -> None:
        options.setdefault("transport", Served(api))
        options.setdefault("spool", tmp_path / "spool")
        made(self, "http://testserver", api.token, **options)

    monkeypatch.setattr(client_api.Client, "__init__", init)
    # In the same thread as the test, whose transaction no other thread sees.
    monkeypatch.setattr(client_run, "Sender", AtOnce)
    return client_api.Client
