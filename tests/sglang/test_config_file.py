"""The file for --config: keys of the engine, one to a line, in a file or among other lines."""

from __future__ import annotations

from typing import Any

import pytest

from specdebug.sglang.config_file import read_config


def values(text: str) -> dict[str, Any]:
    return {dest: given.value for dest, given in read_config(text).items()}


def test_keys_have_dashes_or_underscores_and_values_their_types() -> None:
    text = (
        "# ours\ntp_size: 4\nspeculative-algorithm: 'EAGLE3'  # new\ndisable-cuda-graph: true\n"
        "enable_mixed_chunk: false\ncuda-graph-bs: [1, 2]\nmem-fraction-static: 0.8\n"
    )
    assert values(text) == {
        "tp_size": 4,
        "speculative_algorithm": "EAGLE3",
        "disable_cuda_graph": True,
        "cuda_graph_bs": [1, 2],
        "mem_fraction_static": 0.8,
    }
    assert read_config(text)["tp_size"].line == 2


def test_a_body_is_found_among_other_lines_and_keys_of_later_releases_stay() -> None:
    text = (
        "we start it with\n\nmodel-path: m\nsome-later-flag: 3\nspeculative-num-steps: 2\n\nslow!\n"
    )
    assert values(text) == {"model_path": "m", "some_later_flag": 3, "speculative_num_steps": 2}


def test_the_items_of_a_list_over_several_lines_do_not_end_the_body() -> None:
    text = "cuda-graph-bs:\n  - 1\n  - 2\ntp-size: 2\nport: 30000\n"
    assert values(text) == {"tp_size": 2, "port": 30000}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "port: 3",
        "Note: it is slow\nSetup: two GPUs",
        "model: big\nsome words\nport: 3",
        "a: b: c",
    ],
)
def test_words_with_a_colon_are_no_config(text: str) -> None:
    assert read_config(text) == {}
