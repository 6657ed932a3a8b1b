"""What a trial on a GPU host has found so far, and the process that loads its GPU; it tries nothing
itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


class Host:
    """The checks and figures so far, and how to start a process that loads the GPU."""

    def __init__(self, folder: Path, state: Path | None) -> None:
        self.folder, self.state = folder, state
        self.checks: list[dict[str, Any]] = []
        self.figures: dict[str, Any] = {}
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)
        print(text, flush=True)

    def check(self, name: str, fine: bool, said: object = "") -> None:
        self.checks.append({"check": name, "ok": bool(fine), "said": str(said)})
        self.say(f"{'ok  ' if fine else 'FAIL'} {name}: {said}")

    def figure(self, name: str, value: Any) -> None:
        self.figures[name] = value
        self.say(f"     {name}: {json.dumps(value)}")

    @contextmanager
    def loader(self) -> Iterator[Loader]:
        """A process outside any lease that has a context on the GPU."""
        argv = [sys.executable, str(ROOT / "benchmarks" / "gpu_load.py")]
        if self.state:
            argv = [sys.executable, "-c", _PRETENDED]
        with subprocess.Popen(
            argv, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            try:
                yield Loader(process, self.state)
            finally:
                process.kill()


# In place of gpu_load.py where there is no GPU: answers the same commands and does nothing.
_PRETENDED = """
import json, sys, time
print(json.dumps({"ready": "nothing"}), flush=True)
for line in sys.stdin:
    what, _, amount = line.strip().partition(" ")
    if what == "hold":
        print(json.dumps({"held_mib": int(amount)}), flush=True)
        continue
    time.sleep(float(amount))
    print(json.dumps({"rate": 1.0, "unit": "nothing/s", "seconds": float(amount)}), flush=True)
"""


class Loader:
    """One gpu_load.py."""

    def __init__(self, process: subprocess.Popen[str], state: Path | None) -> None:
        self.process, self._state = process, state
        self.answer()

    def begin(self, command: str) -> None:
        """Have it begin; `answer` waits for the end."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def ask(self, command: str) -> dict[str, Any]:
        self.begin(command)
        answer = self.answer()
        if self._state and command.startswith("hold"):
            with self._state.open("a") as state:
                state.write(f"proc 0 {self.process.pid} {command.split()[1]}\n")
        return answer

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the process that loads the GPU has ended; see its words above")
        found: dict[str, Any] = json.loads(line)
        return found
