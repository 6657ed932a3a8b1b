"""The command that prints a login link says in one line what is missing."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from experiments import lifecycle


def test_a_record_that_is_not_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise OperationalError("no such table: auth_user")

    monkeypatch.setattr(lifecycle, "owner", missing)
    with pytest.raises(CommandError) as told:
        call_command("login_link")
    assert "no such table: auth_user" in str(told.value)
    assert "SPECDEBUG_DATA" in str(told.value)
    assert "\n" not in str(told.value)


def test_the_link_stands_alone_on_its_line(db: None) -> None:
    out = StringIO()
    call_command("login_link", base="http://box:8000/", stdout=out)
    assert out.getvalue().startswith("http://box:8000/login/link/")
    assert out.getvalue().count("\n") == 1
