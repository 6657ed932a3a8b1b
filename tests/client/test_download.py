"""Files that the server makes while we wait, and files that never come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from specdebug.client import ApiError
from specdebug.client.http import Connection


def answering(monkeypatch: pytest.MonkeyPatch, answers: Iterator[httpx.Response]) -> Connection:
    """A connection whose server gives these answers in turn, without any waiting."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    transport = httpx.MockTransport(lambda request: next(answers))
    return Connection("http://server", "sdb_t", transport=transport)


def making(fraction: float) -> httpx.Response:
    told = {"state": "running", "step": "laying out", "fraction": fraction}
    return httpx.Response(202, json=told, headers={"Retry-After": "1"})


def test_what_is_being_made_is_waited_for_and_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers = [making(0.1), making(0.7), httpx.Response(200, content=b"%PDF-")]
    told: list[Any] = []
    connection = answering(monkeypatch, iter(answers))
    path = connection.download("/x", tmp_path / "r.pdf", progress=told.append)
    assert path.read_bytes() == b"%PDF-"
    assert [now["fraction"] for now in told] == [0.1, 0.7]
    assert [p.name for p in tmp_path.iterdir()] == ["r.pdf"]


def test_what_never_comes_is_given_up_and_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    connection = answering(monkeypatch, (making(0.5) for _ in iter(int, 1)))
    with pytest.raises(TimeoutError, match=r"r\.pdf was not made within 0 s"):
        connection.download("/x", tmp_path / "r.pdf", timeout=0.0)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_made_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no = httpx.Response(503, json={"detail": "the disk is full", "status": 503})
    connection = answering(monkeypatch, iter([making(0.5), no]))
    with pytest.raises(ApiError, match="the disk is full"):
        connection.download("/x", tmp_path / "r.pdf")
    assert list(tmp_path.iterdir()) == []
