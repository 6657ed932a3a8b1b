"""A log read line by line and in blocks is the same log: short ones are read the one way, long ones
the other."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdebug.sglang import logs
from specdebug.sglang.block_scan import BlockScanner
from specdebug.sglang.logs import LogReader, ServerLog, read_log

DATA = Path(__file__).parent.parent / "data"
LOGS = sorted(DATA.rglob("*.log"))
PARTS = [
    part for path in LOGS[::9] for part in path.read_text("utf-8", "replace").split("\n")[:300]
]


def read(data: bytes, few: int) -> ServerLog:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "_FEW", few)
        return read_log(io.BytesIO(data))


def shown(log: ServerLog) -> tuple[object, ...]:
    """A log in comparable form: rows as objects, for NaN equals nothing."""
    boots = [(replace(b, decode={}), [*map(repr, b.decode_lines())]) for b in log.boots]
    return (replace(log, boots=()), boots)


@pytest.mark.parametrize("path", LOGS, ids=lambda p: "/".join(p.relative_to(DATA).parts[-2:]))
def test_a_real_log_is_the_same_log_either_way(path: Path) -> None:
    data = path.read_bytes()
    assert shown(read(data, few=1 << 40)) == shown(read(data, few=-1))


@given(st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=200), st.integers(0, 9_999))
@settings(max_examples=40, deadline=None)
def test_any_mixture_of_real_lines_is_the_same_log_either_way(picks: list[int], few: int) -> None:
    data = "\n".join(PARTS[pick] for pick in picks).encode()
    assert shown(read(data, few=1 << 40)) == shown(read(data, few=-1))


def test_a_log_that_grows_is_read_on_in_blocks_with_nothing_lost() -> None:
    rng = random.Random(7)
    line = (
        "[2026-01-01 10:00:00 TP{}] Decode batch, #running-req: {}, #token: 22, "
        "accept len: 1.{}, gen throughput (token/s): 9.00, #queue-req: 0\n"
    )
    lines = [line.format(n % 2, n % 7, n % 10) for n in range(4_000)]
    data = "".join(lines).encode()
    reader, at = LogReader(), 0
    while at < len(data):
        size = rng.randrange(1, 9_000)
        reader.feed(data[at : at + size])
        at += size
    assert isinstance(reader._scanner, BlockScanner)
    log = reader.close()
    (boot,) = log.boots
    assert (boot.decode_count, log.unknown_lines, log.total_lines) == (4_000, 0, 4_000)
    assert [row.running for row in boot.decode_lines()] == [n % 7 for n in range(4_000)]
    assert [row.line for row in boot.decode_lines()] == list(range(1, 4_001))
    assert boot.decode["TP0"].aggregates["accept_len"].n == 2_000


@pytest.mark.parametrize("few", ["logs._FEW", "-1"])
def test_a_short_log_is_read_without_numpy_and_a_long_one_without_its_masks(few: str) -> None:
    path = DATA / "cases/01-more-draft-tokens-than-steps/server.log"
    program = (
        f"import sys; from specdebug.sglang import logs; logs._FEW = {few}; "
        f"log = logs.read_log({str(path)!r}); print(log.boots[0].decode_count, "
        "'numpy' in sys.modules, 'numpy.ma' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    count, numpy, masks = done.stdout.decode().split()
    assert int(count) > 10
    assert (numpy, masks) == (str(few == "-1"), "False")
