"""Damaged draft and target configs and safetensors headers: no crash, no hang, ten million bytes.

Bytes damaged anywhere seldom stay JSON, so half of what is fed keeps its form and changes a value.
"""

import json
import random
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdebug.eagle.checkpoint import check, draft_betrayed, header_from_bytes
from specdebug.eagle.draft_config import DraftConfig, TargetConfig

STORY = Path(__file__).parent.parent / "data" / "cases" / "09-kimi-k25-story"
BYTES = 10_000_000
SECONDS_PER_MB = 60.0  # a hang, not a slow machine
HEADER = {
    "__metadata__": {"format": "pt"},
    **{
        name: {"dtype": "BF16", "shape": shape, "data_offsets": [0, 24576]}
        for name, shape in {
            "fc.weight": [64, 192],
            "d2t": [300],
            "t2d": [1000],
            "lm_head.weight": [300, 64],
            "midlayer.self_attn.q_proj.weight": [64, 128],
        }.items()
    },
}
DRAFT = json.loads((STORY / "draft_config.json").read_text())
TARGET = json.loads((STORY / "target_config.json").read_text())
JUNK: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**400, 1e308, float("nan"), float("-inf"), 0.5, "", "x", "\ud800"),
    *([], {}, [[]], [-1, 10**18, None], {"a": {"b": []}}, "9" * 400, [1] * 500),
)


def changed(rng: random.Random, value: Any) -> Any:
    """The value with parts of it dropped, moved or replaced, most of it as it was."""
    if rng.random() < 0.06:
        return rng.choice(JUNK)
    if isinstance(value, dict):
        out = {k: changed(rng, v) for k, v in value.items() if rng.random() > 0.04}
        if out and rng.random() < 0.1:
            out[rng.choice(list(out))[: rng.randrange(9)]] = rng.choice(JUNK)
        return out
    if isinstance(value, list):
        return [changed(rng, v) for v in value for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2)))]
    return value


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The bytes cut, overwritten or doubled in a few places."""
    for _ in range(rng.randrange(1, 5)):
        at, size = rng.randrange(len(data) + 1), rng.randrange(20)
        data = data[:at] + rng.choice((b"", rng.randbytes(size), data[:size])) + data[at + size :]
    return data


def read_header(data: bytes, own: Any) -> None:
    """The header as it stands in a file, its length in front, then beside both configs."""
    length = len(data) if len(data) % 3 else len(data) * 2
    found = header_from_bytes(struct.pack("<Q", length) + data)
    draft_betrayed(found)
    if isinstance(own, dict):
        check(found, DraftConfig.from_dict(own), TargetConfig.from_dict(TARGET))


def _of(config: Callable[[dict[str, Any]], object]) -> Callable[[bytes, Any], None]:
    def read(data: bytes, own: Any) -> None:
        value = json.loads(data)
        if isinstance(value, dict):
            config(value)

    return read


READERS: dict[str, tuple[Any, Callable[[bytes, Any], None]]] = {
    "draft config": (DRAFT, _of(DraftConfig.from_dict)),
    "target config": (TARGET, _of(TargetConfig.from_dict)),
    "safetensors header": (HEADER, read_header),
}


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_of_a_draft_neither_crash_nor_hang_a_reader(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    sample, read = READERS[name]
    rng = random.Random(f"{name} 1")
    fed = turn = 0
    begin = time.process_time()
    while fed < BYTES:
        turn += 1
        value = changed(rng, sample)
        data = json.dumps(value).encode()
        if turn % 2:
            data = damaged(rng, data)
        try:
            read(data, changed(rng, DRAFT))
        except (ValueError, RecursionError):
            pass  # the refusals that these readers document
        except Exception as error:
            raise AssertionError(f"{name} in turn {turn} of seed 1: {data[:400]!r}") from error
        fed += len(data)
    spent = time.process_time() - begin
    record_property("bytes", fed)
    assert fed >= BYTES
    assert turn > 500
    assert spent < 2 + SECONDS_PER_MB * fed / 1e6, f"{spent:.1f} s for {fed} bytes"
