"""`specdebug check` on files no server would write, at full size: its time and memory, measured.

    python benchmarks/pathological.py [--mib 500] [--kind KIND ...] [--bare] [--folder FOLDER]

It writes one file a kind, checks it in a process of its own, and deletes it; it compares nothing.
Every line of its output is JSON: bytes, seconds of wall clock and of CPU, MB/s of wall clock, peak
resident memory, exit status and the answer's own summary of the file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MIB = 1 << 20
LIMIT_S = 300.0
START = (
    b"[2026-05-06 09:00:00] server_args=ServerArgs(model_path='m', speculative_num_steps=1)\n"
    b"[2026-05-06 09:00:10 TP0] Load weight begin. avail mem=77.10 GB\n"
)
DECODE = (
    "[2026-05-06 09:10:00 TP0] Decode batch, #running-req: 1, #token: %d, token usage: 0.03, "
    "accept len: 1.60, accept rate: 0.80, cuda graph: True, gen throughput (token/s): 88.75, "
    "#queue-req: 0\n"
)


def _one_line() -> Iterator[bytes]:
    return itertools.repeat(b"x" * MIB)


def _random_bytes() -> Iterator[bytes]:
    source = random.Random(1)
    return (source.randbytes(MIB) for _ in itertools.count())


def _progress() -> Iterator[bytes]:
    """Bars that draw over their own line and never end it."""
    for step in itertools.count():
        yield b"".join(
            b"\rLoading safetensors checkpoint shards: %3d%% Completed | %d/163 [00:%02d<01:40]"
            % (n * 100 // 163, n, step % 60)
            for n in range(163)
        )


def _errors() -> Iterator[bytes]:
    for number in itertools.count():
        yield b"".join(
            b"[2026-05-06 09:10:%02d TP0] ValueError: request %d was refused: too long\n"
            % (n % 60, number * 1000 + n)
            for n in range(1000)
        )


def _same_error() -> Iterator[bytes]:
    return itertools.repeat(b"ValueError: no\n" * 1000)


def _decode() -> Iterator[bytes]:
    for number in itertools.count():
        yield "".join(DECODE % (number * 1000 + n) for n in range(1000)).encode()


KINDS = {
    "one-line": _one_line,
    "random-bytes": _random_bytes,
    "progress-bars": _progress,
    "error-lines": _errors,
    "same-error": _same_error,
    "decode-lines": _decode,
}


def write(path: Path, kind: str, size: int, bare: bool = False) -> int:
    """Fill `path` with whole pieces of `kind` until it holds `size` bytes; returns its size.

    It begins as a server's log does, so that it is read as one; not so if `bare`.
    """
    with path.open("wb") as file:
        file.write(b"" if bare else START)
        for piece in KINDS[kind]():
            file.write(piece)
            if file.tell() >= size:
                return file.tell()
    raise AssertionError("a kind ended before its size was reached")


def measure(path: Path) -> dict[str, Any]:
    """One `specdebug check --json` of `path` in a process of its own."""
    command = [sys.executable, "-m", "specdebug.client.cli", "check", "--json", str(path)]
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        deadline = begin + LIMIT_S
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        while not done and time.perf_counter() < deadline:
            time.sleep(0.05)
            done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if not done:
            process.kill()
            done, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begin
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    try:
        answer = json.loads(text)
        read = [i.get("summary") or i.get("unusable") for i in answer["inputs"]]
    except (ValueError, KeyError):
        read = [text[-300:]]
    return {
        "wall_s": round(seconds, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "mb_per_s": round(path.stat().st_size / seconds / 1e6, 1),
        "peak_mib": round(usage.ru_maxrss / 1024),
        "exit": process.returncode,
        "read": read,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--mib", type=int, default=500)
    parser.add_argument("--kind", choices=KINDS, nargs="*", default=list(KINDS))
    parser.add_argument("--folder", type=Path, help="where the files may lie (default: a new one)")
    parser.add_argument("--bare", action="store_true", help="without the start of a server's log")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for kind in asked.kind:
            path = Path(folder) / f"{kind}.log"
            size = write(path, kind, asked.mib * MIB, asked.bare)
            print(json.dumps({"kind": kind, "bytes": size, **measure(path)}), flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
