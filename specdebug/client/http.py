"""Requests to one server: token, tries again where that is safe, problems as exceptions."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from specdebug import __version__
from specdebug.client.settings import Login, saved_login

TRIES = 4
FIRST_WAIT = 0.5
LONGEST_WAIT = 20.0
PIECE = 1 << 20
MAKING = 202  # not there yet; its body says how far it is
# The server did not do it, or does it once however often it is asked.
_SAFE = frozenset({"GET", "HEAD", "PUT"})
_AGAIN = frozenset({429, 502, 503, 504})


class ApiError(Exception):
    """The server said no. status, problem: what it answered (docs/api.md)."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(f"{problem.get('detail') or problem.get('title') or 'no'} ({status})")
        self.status = status
        self.problem = problem

    @property
    def obstacles(self) -> list[str]:
        """What stands in the way, where the refusal lists it."""
        return list(self.problem.get("obstacles", ()))


class Unreachable(Exception):
    """The server did not answer, after all tries."""


class Connection:
    """One server. Raises ApiError and Unreachable; safe to use from several threads."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        socket: Path | None = None,
        transport: httpx.BaseTransport | None = None,
        tries: int = TRIES,
    ) -> None:
        login = _chosen(url, token)
        self.url, self.token, self.tries = login.url.rstrip("/"), login.token, tries
        self.socket = socket
        if transport is None and socket is not None:
            transport = httpx.HTTPTransport(uds=str(socket))
        headers = {"User-Agent": f"specdebug/{__version__}"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            self.http = httpx.Client(
                base_url=f"{self.url}/api/v1/",
                headers=headers,
                timeout=timeout,
                transport=transport,
                # A private socket is reached by no proxy.
                trust_env=socket is None,
            )
        except (httpx.InvalidURL, UnicodeError, ValueError) as error:
            raise Unreachable(f"{self.url!r} is no address of a server: {error}") from None

    def close(self) -> None:
        self.http.close()

    def call(
        self,
        method: str,
        path: str,
        data: Any = None,
        *,
        params: dict[str, Any] | None = None,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
        key: str | None = None,
    ) -> Any:
        """The JSON of an answer, None where there is none.

        POST carries an Idempotency-Key, so that a try after a lost answer does not do it twice.
        """
        sent = dict(headers or {})
        if method == "POST" and content is None:
            sent.setdefault("Idempotency-Key", key or uuid.uuid4().hex)
        if content is not None:
            sent.setdefault("Content-Type", "application/octet-stream")
        options: dict[str, Any] = {"params": _given(params), "headers": sent}
        if content is not None:
            options["content"] = content
        elif data is not None or method == "POST":
            options["json"] = {} if data is None else data
        answer = self._tried(method, path, options)
        return answer.json() if _is_json(answer) else None

    def _tried(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        wait = FIRST_WAIT
        again = method in _SAFE or "Idempotency-Key" in options["headers"]
        for left in range(self.tries - 1, -1, -1):
            try:
                answer = self.http.request(method, path, **options)
            except (httpx.TransportError, httpx.InvalidURL) as error:
                sure = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if not left or not (again or sure):
                    raise Unreachable(f"{self.where} does not answer: {error}") from None
            else:
                if answer.status_code not in _AGAIN or not left:
                    return checked(answer)
                wait = _wait_of(answer, wait)
            time.sleep(min(wait, LONGEST_WAIT))
            wait *= 2
        raise AssertionError("unreachable")

    @property
    def where(self) -> str:
        """The server in words."""
        return str(self.socket) if self.socket else self.url

    def pages(self, path: str, params: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """Every row of a list, asking for more as they are taken."""
        asked = dict(params or {})
        while True:
            found = self.call("GET", path, params=asked)
            yield from found["items"]
            if not found.get("next"):
                return
            asked["cursor"] = found["next"]

    def download(
        self,
        path: str,
        to: Path,
        params: dict[str, Any] | None = None,
        *,
        timeout: float = 600.0,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> Path:
        """Write an answer's bytes to a file, whole or not at all.

        What is still being made is waited for, `timeout` seconds at most (TimeoutError); progress:
        called with each standing.
        """
        until = time.monotonic() + timeout
        while (standing := self._fetched(path, to, params)) is not None:
            if progress is not None:
                progress(standing.json())
            if time.monotonic() > until:
                raise TimeoutError(f"{to.name} was not made within {timeout:g} s")
            time.sleep(min(_wait_of(standing, FIRST_WAIT), LONGEST_WAIT))
        return to

    def _fetched(self, path: str, to: Path, params: dict[str, Any] | None) -> httpx.Response | None:
        """The answer that says how far it is (202); None once the file is there."""
        part = to.with_name(f".{to.name}.{os.getpid()}.part")
        try:
            with self.http.stream("GET", path, params=_given(params)) as answer:
                if answer.status_code == MAKING or answer.status_code >= 400:
                    answer.read()
                    return checked(answer)
                with part.open("wb") as file:
                    for piece in answer.iter_bytes(PIECE):
                        file.write(piece)
            part.replace(to)
        except httpx.TransportError as error:
            raise Unreachable(f"{self.where} does not answer: {error}") from None
        finally:
            part.unlink(missing_ok=True)
        return None

    def upload(self, method: str, path: str, file: Path, params: dict[str, Any]) -> Any:
        """Send a file as it is, read in pieces."""
        size = file.stat().st_size
        with file.open("rb") as stream:
            try:
                answer = self.http.request(
                    method,
                    path,
                    params=_given(params),
                    content=iter(lambda: stream.read(PIECE), b""),
                    headers={
                        "Content-Type": "application/octet-stream",
                        "Content-Length": str(size),
                    },
                )
            except httpx.TransportError as error:
                raise Unreachable(f"{self.where} does not answer: {error}") from None
        return checked(answer).json()


def checked(answer: httpx.Response) -> httpx.Response:
    """The answer, where it is a good one; raises ApiError."""
    if answer.status_code < 400:
        return answer
    problem: dict[str, Any] = {}
    if _is_json(answer):
        try:
            found = answer.json()
            problem = found if isinstance(found, dict) else {}
        except ValueError:
            pass
    if not problem:
        problem = {"title": answer.reason_phrase, "detail": answer.text[:300]}
    raise ApiError(answer.status_code, problem)


def _is_json(answer: httpx.Response) -> bool:
    kind = answer.headers.get("content-type", "").split(";")[0]
    return kind in ("application/json", "application/problem+json")


def _given(params: dict[str, Any] | None) -> dict[str, Any]:
    return {k: v for k, v in (params or {}).items() if v is not None}


def _wait_of(answer: httpx.Response, usual: float) -> float:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 5 else usual


def _chosen(url: str | None, token: str | None) -> Login:
    """What was given, else the environment, else what `specdebug login` kept."""
    url = url or os.environ.get("SPECDEBUG_URL")
    token = token if token is not None else os.environ.get("SPECDEBUG_TOKEN")
    kept = saved_login() if url is None or token is None else None
    if kept is not None and (url is None or url.rstrip("/") == kept.url.rstrip("/")):
        return Login(url or kept.url, token if token is not None else kept.token)
    return Login(url or "http://127.0.0.1:8000", token or "")
