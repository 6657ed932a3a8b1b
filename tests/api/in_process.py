"""The application in this process in place of a server, for the client and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from tests.api.conftest import Caller


class Served(httpx.BaseTransport):
    """The application in this process, in place of a server."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.caller.http.generic(
            request.method,
            request.url.raw_path.decode(),
            request.read(),
            content_type=request.headers.get("content-type", ""),
            headers={
                k: v
                for k, v in request.headers.items()
                if k in ("authorization", "idempotency-key", "if-match", "upload-offset")
            },
        )
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        return httpx.Response(answer.status_code, headers=dict(answer.items()), content=content)


class AtOnce:
    """A sender without a thread."""

    def __init__(self, connection: Any, path: str, root: Path) -> None:
        self.connection, self.path, self.rows = connection, path, []

    def log(self, step: int, values: dict[str, float]) -> None:
        self.rows.append([step, 1.0, values])

    def flush(self, timeout: float) -> bool:
        body = {"writer": "test", "first_row": 0, "rows": self.rows}
        self.connection.call("POST", f"{self.path}/points", body)
        return True

    def close(self, timeout: float) -> bool:
        return True
