"""Rows on their way to the server, kept on disk until it has taken them; bounded, and safe to be
taken up by another process after a crash. Sends nothing itself."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

MOST_BYTES = 256 << 20
MOST_IN_MEMORY = 100_000
SHRINK_ABOVE = 1 << 20


class Spool:
    """Numbered lines in a file, `N JSON`; what the server has acknowledged is read past.

    One process holds a spool (by a lock that ends with it). Not safe for several threads.
    """

    def __init__(self, folder: Path, *, most_bytes: int = MOST_BYTES) -> None:
        """Open or take up the spool in `folder`. Raises BlockingIOError where a process holds it,
        OSError where the disk does not take it."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder, self.most_bytes = folder, most_bytes
        self.lock = (folder / "lock").open("a")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.file = (folder / "rows.jsonl").open("a+b", buffering=0)
        except OSError:
            self.lock.close()
            raise
        self.next_row = 0
        self.acknowledged = 0
        self.offset = 0
        self.dropped = 0
        # Rows that the disk did not take; they follow those in the file.
        self.memory: deque[tuple[int, bytes]] = deque()
        self._recover()

    def _recover(self) -> None:
        """Find the last whole line; a line that a crash cut off is removed."""
        self.file.seek(0)
        data = self.file.read()
        end = data.rfind(b"\n") + 1
        if end < len(data):
            self.file.truncate(end)
        self.size = end
        if end:
            first = data[: data.index(b"\n")]
            last = data[data.rfind(b"\n", 0, end - 1) + 1 : end - 1]
            self.acknowledged = _number(first)
            self.next_row = _number(last) + 1

    def append(self, rows: Sequence[bytes]) -> None:
        """Take JSON rows; those above the bound are dropped and counted, and get no number."""
        lines: list[bytes] = []
        size = 0
        for row in rows:
            line = b"%d %b\n" % (self.next_row, row)
            full = self.size + size + len(line) > self.most_bytes
            if self.memory or full:
                self._remember(row, MOST_IN_MEMORY // 10 if full else MOST_IN_MEMORY)
                continue
            lines.append(line)
            size += len(line)
            self.next_row += 1
        if not lines:
            return
        try:
            _write_all(self.file.fileno(), b"".join(lines))
            self.size += size
        except OSError:
            # A full disk: what was written of these lines is taken back, they stay in memory.
            with contextlib.suppress(OSError):
                os.ftruncate(self.file.fileno(), self.size)
            self.next_row -= len(lines)
            for line in lines:
                self._remember(line.partition(b" ")[2][:-1], MOST_IN_MEMORY)

    def _remember(self, row: bytes, most: int) -> None:
        """Keep a row in memory, where there are fewer than `most`."""
        if len(self.memory) >= most:
            self.dropped += 1
            return
        self.memory.append((self.next_row, row))
        self.next_row += 1

    def pending(self, most_rows: int, most_bytes: int = 1 << 20) -> tuple[int, list[bytes]]:
        """The number of the first row that is not acknowledged, and rows from there on."""
        rows: list[bytes] = []
        if self.offset < self.size:
            self.file.seek(self.offset)
            data = self.file.read(min(most_bytes, self.size - self.offset))
            # At least one whole line, however long it is.
            while b"\n" not in data and self.offset + len(data) < self.size:
                data += self.file.read(most_bytes)
            lines = data[: data.rfind(b"\n")].split(b"\n")[:most_rows]
            return self.acknowledged, [line.partition(b" ")[2] for line in lines]
        for _, row in self.memory:
            if len(rows) >= most_rows:
                break
            rows.append(row)
        return self.acknowledged, rows

    def acknowledge(self, next_row: int) -> None:
        """Rows below `next_row` have arrived and are forgotten."""
        while self.acknowledged < next_row and self.offset < self.size:
            self.file.seek(self.offset)
            data = self.file.read(1 << 20)
            for line in data.split(b"\n")[:-1]:
                if self.acknowledged >= next_row:
                    break
                self.offset += len(line) + 1
                self.acknowledged += 1
        while self.memory and self.memory[0][0] < next_row:
            self.memory.popleft()
            self.acknowledged += 1
        self.acknowledged = max(self.acknowledged, min(next_row, self.next_row))
        if self.offset >= self.size > SHRINK_ABOVE:
            self.file.truncate(0)
            self.size = self.offset = 0

    @property
    def waiting(self) -> int:
        """Rows that have not arrived yet."""
        return self.next_row - self.acknowledged

    def note(self, name: str, data: dict[str, Any]) -> None:
        """Keep a small object beside the rows, whole or not at all."""
        part = self.folder / f".{name}.part"
        part.write_text(json.dumps(data))
        part.replace(self.folder / name)

    def noted(self, name: str) -> dict[str, Any] | None:
        return noted(self.folder, name)

    def close(self, *, remove: bool = False) -> None:
        """Let go; `remove` when everything has arrived."""
        self.file.close()
        if remove:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.lock.close()


def noted(folder: Path, name: str) -> dict[str, Any] | None:
    """A small object that was kept in a spool's folder."""
    try:
        data = json.loads((folder / name).read_text())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def abandoned(root: Path) -> Iterator[Path]:
    """Folders of spools in `root`, those that no process may hold any more among them."""
    try:
        folders = sorted(path for path in root.iterdir() if (path / "about.json").is_file())
    except OSError:
        return
    yield from folders


def _number(line: bytes) -> int:
    try:
        return int(line.partition(b" ")[0])
    except ValueError:
        return 0


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
