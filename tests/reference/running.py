"""A real server process for the tests of routes and start-up."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specdebug.reference import variants

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "specdebug.reference.serve"]
SPECULATIVE = [
    *("--model-path", str(variants.TARGET), "--speculative-algorithm", "EAGLE3"),
    *("--speculative-draft-model-path", str(variants.DRAFT), "--speculative-num-steps", "3"),
    *("--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "16"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Running:
    """A started server and its log."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def ask(
        self, path: str, body: Any = None, method: str | None = None, raw: bytes | None = None
    ) -> tuple[int, Any]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        try:
            link.request(method or ("GET" if content is None else "POST"), path, content)
            answer = link.getresponse()
            text = answer.read().decode()
        finally:
            link.close()
        kind = answer.getheader("Content-Type") or ""
        return answer.status, json.loads(text) if kind == "application/json" else text

    def wait(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log.read_text()
            try:
                if self.ask("/health")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        pytest.fail("not healthy within 60 s:\n" + self.log.read_text())


def start(log: Path, *flags: str) -> Running:
    port = free_port()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*COMMAND, *flags, "--port", str(port)], cwd=ROOT, stdout=out, stderr=out
        )
    return Running(process, port, log)
