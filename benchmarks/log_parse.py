"""Times the log reader on dense and sparse logs beside `grep -c`, with peak memory; JSON out.

    python -m benchmarks.log_parse [--size 1G] [--pathological] [--only NAME ...]

Both are judged by processor seconds (neither uses more than one core), so that other work on the
machine does not decide; wall-clock rates stand beside them. The logs are made in a temporary folder
and removed. Dense: decode lines only. Sparse: 2 % decode
lines among access and prefill lines. Noise: 2 % decode lines among lines the reader has never seen.
The pathological files have half the size, so that `--size 1G` makes one line of 500 MB.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TARGETS = {"dense": 60.0, "sparse": 400.0}
PEAK_MB = 250.0
PATHOLOGICAL = 2.0  # MB/s that any file must do: 500 MB end within some minutes


def start_up() -> str:
    """The lines of a start, shortened."""
    return (
        "[2026-01-19 11:30:40] server_args=ServerArgs(model_path='m', speculative_num_steps=3, "
        "speculative_eagle_topk=1, speculative_num_draft_tokens=4, max_running_requests=48)\n"
        "[2026-01-19 11:31:01 TP0] Load weight begin. avail mem=77.10 GB\n"
        "[2026-01-19 11:31:43 TP0] Load weight end. elapsed=42.31 s, type=Qwen3MoeForCausalLM, "
        "dtype=torch.bfloat16, avail mem=41.20 GB, mem usage=35.90 GB.\n"
        "[2026-01-19 11:32:19] The server is fired up and ready to roll!\n"
    )


def stamp(rng: random.Random) -> str:
    """A time of one day."""
    return f"2026-01-19 {rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"


def decode(rng: random.Random) -> str:
    """A decode line of 0.5.9 or later."""
    length = 1 + 3 * rng.random()
    return (
        f"[{stamp(rng)} TP0] Decode batch, #running-req: {rng.randrange(1, 49)}, "
        f"#token: {rng.randrange(1_000_000)}, token usage: {rng.random():.2f}, "
        f"accept len: {length:.2f}, accept rate: {length / 4:.2f}, "
        f"cuda graph: {rng.random() < 0.97}, gen throughput (token/s): "
        f"{3000 * rng.random():.2f}, #queue-req: {rng.randrange(300)}\n"
    )


def serving(rng: random.Random) -> str:
    """An access or a prefill line."""
    if rng.random() < 0.6:
        return (
            f"[{stamp(rng)}] INFO:     127.0.0.1:{rng.randrange(30000, 60000)} - "
            '"POST /generate HTTP/1.1" 200 OK\n'
        )
    return (
        f"[{stamp(rng)} TP0] Prefill batch, #new-seq: {rng.randrange(9)}, "
        f"#new-token: {rng.randrange(8192)}, #cached-token: 0, token usage: 0.00, "
        f"#running-req: {rng.randrange(48)}, #queue-req: 0, cuda graph: False\n"
    )


def noise(rng: random.Random) -> str:
    """A line of some other program."""
    words = [f"{rng.choice('abcdefghijklmnop')}{rng.getrandbits(40):x}" for _ in range(6)]
    return f"{stamp(rng)}.{rng.randrange(1000):03d} worker-{rng.randrange(64)} {' '.join(words)}\n"


def write(path: Path, size: int, share: float, other: Callable[[random.Random], str]) -> int:
    """Write a log of about `size` bytes; returns the number of decode lines in it.

    One block of some megabytes is made and repeated, which keeps making it cheaper than reading it.
    """
    rng = random.Random(7)
    lines = [decode(rng) if rng.random() < share else other(rng) for _ in range(40_000)]
    block = "".join(lines).encode()
    per_block = sum("Decode batch" in line for line in lines)
    times = max(1, size // len(block))
    with path.open("wb") as file:
        file.write(start_up().encode())
        for _ in range(times):
            file.write(block)
    return times * per_block


def grep(path: Path) -> tuple[float, float]:
    """Seconds, and processor seconds, that grep takes to count the decode lines."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(["grep", "-c", "Decode batch", str(path)], stdout=subprocess.PIPE, check=False)
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime - used.ru_utime + after.ru_stime - used.ru_stime


def peak_mb() -> float:
    """Peak resident memory of this process, without what it was forked from."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(path: str) -> None:
    """Read one log and print seconds, peak memory and counts; imports come before the clock."""
    from specdebug.sglang import block_scan, decode_block  # noqa: F401 - with numpy
    from specdebug.sglang.logs import read_log

    cpu, begin = time.process_time(), time.perf_counter()
    log = read_log(path)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    tables = [table for boot in log.boots for table in boot.decode.values()]
    json.dump(
        {
            "seconds": seconds,
            "cpu_seconds": cpu,
            "peak_mb": peak_mb(),
            "decode_lines": sum(boot.decode_count for boot in log.boots),
            "kept": sum(len(table) for table in tables),
            "unread": log.unread_decode_lines,
            "lines": log.total_lines,
            "problems": len(log.problems),
        },
        sys.stdout,
    )


def measure(path: Path, expected: int | None) -> dict[str, float | int | bool]:
    """One log beside grep; `expected` decode lines must be found."""
    size = path.stat().st_size / 1e6
    grep_seconds, grep_cpu = min(grep(path), grep(path))  # the first one warms the file up
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.log_parse", "--child", str(path)],
        stdout=subprocess.PIPE,
        check=True,
    )
    got = json.loads(done.stdout)
    if expected is not None and (got["decode_lines"] != expected or got["unread"]):
        raise SystemExit(f"{path.name}: {expected} decode lines written, read {got}")
    return {
        "size_mb": round(size, 1),
        "mb_s": round(size / got["seconds"], 1),
        "mb_cpu_s": round(size / got["cpu_seconds"], 1),
        "grep_mb_s": round(size / grep_seconds, 1),
        "grep_mb_cpu_s": round(size / max(grep_cpu, 1e-3), 1),
        "peak_mb": round(got["peak_mb"], 1),
        "decode_lines": got["decode_lines"],
        "kept": got["kept"],
    }


def pathological(
    folder: Path, size: int, only: list[str] | None
) -> dict[str, dict[str, float | int | bool]]:
    """Files that no server writes: one line, random bytes, an endless progress bar, zeros."""
    rng = random.Random(3)
    blocks = {
        "one_line": b"x" * (1 << 20),
        "random_bytes": rng.randbytes(1 << 20),
        "progress_bar": b"\rLoading safetensors checkpoint shards:  50% Completed | 4/8 " * 17_000,
        "decode_without_end": b"Decode batch, #running-req: 1, " * 33_000,
        "error_lines": b"ValueError: no\n" * 70_000,
    }
    out = {}
    for name, block in blocks.items():
        if only and name not in only:
            continue
        path = folder / name
        with path.open("wb") as file:
            for _ in range(max(1, size // len(block))):
                file.write(block)
        out[name] = row = measure(path, None)
        row["ok"] = float(row["peak_mb"]) < PEAK_MB and float(row["mb_cpu_s"]) >= PATHOLOGICAL
        path.unlink()
    return out


def main() -> int:
    """Make, measure, print; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="1G", help="bytes per log, with K, M or G")
    parser.add_argument("--pathological", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of all files, these alone")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return 0
    units = {"K": 10**3, "M": 10**6, "G": 10**9}
    size = int(float(options.size.rstrip("KMG")) * units.get(options.size[-1], 1))
    report: dict[str, dict[str, float | int | bool]] = {}
    with tempfile.TemporaryDirectory(prefix="specdebug-log-") as name:
        folder = Path(name)
        for kind, share, other in (
            ("dense", 1.0, serving),
            ("sparse", 0.02, serving),
            ("noise", 0.02, noise),
        ):
            if options.only and kind not in options.only:
                continue
            path = folder / f"{kind}.log"
            expected = write(path, size, share, other)
            row = measure(path, expected)
            if kind in TARGETS:
                wanted = TARGETS[kind]
                if kind == "sparse":
                    wanted = min(wanted, float(row["grep_mb_cpu_s"]) / 4)
                row["ok"] = float(row["mb_cpu_s"]) >= wanted and float(row["peak_mb"]) < PEAK_MB
            report[kind] = row
            path.unlink()
        if options.pathological:
            report |= pathological(folder, size // 2, options.only)
    json.dump(report, sys.stdout, indent=1)
    print()
    return 0 if all(row.get("ok", True) for row in report.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
