"""Answers of /server_info, whole and pasted."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.releases import Release
from specdebug.sglang.server_info import from_mapping, looks_like, read_server_info

DATA = Path(__file__).parents[1] / "data" / "sglang"


def test_a_real_answer_gives_arguments_release_and_average() -> None:
    info = read_server_info((DATA / "server_info.json").read_bytes())
    assert info.release == Release.parse("0.5.10.post1")
    assert info.args["speculative_num_draft_tokens"] == 2
    assert "internal_states" not in info.args
    assert "version" not in info.args
    (rank,) = info.ranks
    assert (rank.avg_accept_len, rank.max_running) == (1.68, 4)
    assert rank.memory_gb == {"weight": 0.01, "kvcache": 0.02, "graph": 0.0}
    assert info.max_total_tokens == 8192
    assert info.launch_command is None


def test_a_pasted_answer_is_found_between_other_words() -> None:
    text = (
        "$ curl -s localhost:30000/server_info | jq .\n```json\n"
        '{"tp_size": 8, "speculative_algorithm": "EAGLE3", "version": "0.5.20",\n'
        ' "launch_command": "python -m sglang.launch_server --tp 8",\n'
        ' "internal_states": [{"memory_usage": {"graph": {"decode": 1.5}},\n'
        '  "step_time_dict": {"1": [0.01, 0.02]}}]}\n```\nthanks'
    )
    info = read_server_info(text)
    assert info.launch_command == "python -m sglang.launch_server --tp 8"
    assert info.ranks[0].memory_gb == {"graph.decode": 1.5}
    assert info.ranks[0].step_times == {"1": (0.01, 0.02)}


def test_an_old_answer_without_a_list_of_states_has_one_rank() -> None:
    info = from_mapping(
        {"tp_size": 1, "speculative_algorithm": None, "avg_spec_accept_length": 2.5}
    )
    assert [rank.avg_accept_len for rank in info.ranks] == [2.5]
    assert "avg_spec_accept_length" not in info.args


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no JSON"), ("plain words", "no JSON"), ('{"a": 1}', "no /server_info answer")],
)
def test_what_is_no_answer_says_so(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_server_info(text)


def test_a_config_is_no_answer() -> None:
    assert not looks_like({"hidden_size": 1, "architectures": []})
    assert not looks_like([1])


@given(st.binary(max_size=500))
def test_bytes_are_an_answer_or_a_clear_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"paste the whole answer|no /server_info answer"):
        read_server_info(data)  # no random bytes hold two arguments of a server


def test_a_shortened_answer_is_one_by_two_of_its_arguments() -> None:
    short = {"model_path": "a", "speculative_algorithm": "EAGLE3", "speculative_num_steps": 3}
    assert looks_like(short)
    assert not looks_like({"model_path": "a", "tp_size": 1})
