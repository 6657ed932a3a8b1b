"""GPUs that a command takes on one host."""

from __future__ import annotations

import pytest

from specdebug.sglang.ranks import command_of, gpus_needed


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ("", 1),
        ("--tp 8", 8),
        ("--tensor-parallel-size=8", 8),
        ("--tp-size 4 --pp-size 2", 8),
        ("--tp 2 --dp 4", 8),
        ("--tp 8 --dp 8 --enable-dp-attention", 8),
        ("--tp 16 --nnodes 2", 8),
        ("--tp 2 --gpu-id-step 2", 3),
        ("--tp 8 --device cpu", 0),
        ("--tp 8 --device cuda", 8),
        ("--tp eight", 1),
        ("--tp 0", 1),
    ],
)
def test_a_command_needs_as_many_gpus_as_its_ranks_on_a_host(arguments: str, count: int) -> None:
    assert gpus_needed(command_of(arguments.split())) == count
