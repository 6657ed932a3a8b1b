"""Launch commands as people paste them."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdebug.sglang.flags import LaunchCommand, parse_argv, parse_command

DATA = Path(__file__).parents[1] / "data" / "sglang"


def one(text: str) -> LaunchCommand:
    commands = parse_command(text)
    assert len(commands) == 1, commands
    return commands[0]


def test_backslashes_join_lines_and_each_flag_keeps_its_line() -> None:
    command = one(
        "python -m sglang.launch_server \\\n  --model-path a/b \\\n  --tp 8 \\\n"
        "  --speculative-num-steps 1\n"
    )
    assert command.engine == "sglang"
    assert {dest: (flag.value, flag.line) for dest, flag in command.flags.items()} == {
        "model_path": ("a/b", 2),
        "tp_size": (8, 3),
        "speculative_num_steps": (1, 4),
    }
    assert command.problems == ()


@pytest.mark.parametrize("flag", ["--tp", "--tp-size", "--tensor-parallel-size"])
def test_aliases_arrive_under_one_name(flag: str) -> None:
    assert one(f"sglang serve m {flag} 4").value("tp_size") == 4


def test_an_unambiguous_beginning_of_a_flag_is_that_flag() -> None:
    command = one("python -m sglang.launch_server --model m --speculative-num-s 3")
    assert command.value("speculative_num_steps") == 3
    assert command.flags["speculative_num_steps"].flag_as_written == "--speculative-num-s"


def test_an_ambiguous_beginning_is_named_as_a_problem() -> None:
    command = one("python -m sglang.launch_server --model m --speculative-num 3")
    assert command.value("speculative_num_steps") is None
    assert "could be" in command.problems[0].message


def test_environment_in_front_in_export_and_in_docker_is_kept() -> None:
    text = (
        "export SGLANG_ENABLE_SPEC_V2=1\n"
        "docker run --gpus all -e SGLANG_SIMULATE_ACC_LEN=3 --env=A_B=c image:v0.5.9 \\\n"
        "  env NCCL_DEBUG=INFO python3 -m sglang.launch_server --model-path m --tp 2\n"
    )
    assert one(text).env == {
        "SGLANG_ENABLE_SPEC_V2": "1",
        "SGLANG_SIMULATE_ACC_LEN": "3",
        "A_B": "c",
        "NCCL_DEBUG": "INFO",
    }


def test_pipes_redirections_and_background_end_the_arguments() -> None:
    command = one("nohup python -m sglang.launch_server --model m --tp 2 > a.log 2>&1 &\nsleep 5")
    assert set(command.flags) == {"model_path", "tp_size"}
    piped = one("python -m sglang.launch_server --model m --tp 2 2>&1 | tee log.txt --append")
    assert set(piped.flags) == {"model_path", "tp_size"}


def test_two_launches_in_one_script_are_two_commands() -> None:
    text = (
        "python -m sglang.launch_server --model a --tp 1\n"
        "python -m sglang.bench_serving --num-prompts 8\n"
        "python -m sglang.launch_server --model b --tp 2 && echo done\n"
    )
    assert [(c.value("model_path"), c.line) for c in parse_command(text)] == [("a", 1), ("b", 3)]


def test_quotes_keep_spaces_and_json_values_are_parsed() -> None:
    command = one(
        "sglang serve 'my model' --json-model-override-args '{\"a\": [1, 2]}' "
        '--chat-template "a b" --preferred-sampling-params \'{"temperature": 0}\''
    )
    assert command.value("model_path") == "my model"
    assert command.value("chat_template") == "a b"
    assert command.value("preferred_sampling_params") == {"temperature": 0}


def test_kubernetes_lists_of_command_and_args_become_one_launch() -> None:
    text = """\
containers:
- name: server
  image: engine
  env:
  - name: SGLANG_ENABLE_SPEC_V2
    value: "True"
  command: ["python3", "-m", "sglang.launch_server"]
  args:
  - --model-path
  - org/model
  # a comment
  - "--speculative-num-steps"
  - "3"
"""
    command = one(text)
    assert command.value("speculative_num_steps") == 3
    assert command.flags["speculative_num_steps"].line == 12
    assert command.env == {"SGLANG_ENABLE_SPEC_V2": "True"}


def test_a_list_item_holding_flag_and_value_is_read_and_named() -> None:
    text = "command:\n  - python3\n  - -m\n  - sglang.launch_server\n  - --tp 8\n  - --port 1\n"
    command = one(text)
    assert command.value("tp_size") == 8
    assert "one word" in command.problems[0].message
    assert command.problems[0].line == 5


def test_folded_compose_arguments_without_a_launcher_are_read() -> None:
    text = "services:\n  s:\n    command: >\n      --model-path a\n      --tp 2\n"
    command = one(text)
    assert command.value("tp_size") == 2
    assert command.engine == "sglang"
    assert command.problems == ()


def test_a_trace_line_and_a_prompt_are_stripped() -> None:
    for lead in ("+ ", "$ ", "user@host:~/x$ ", "(venv) root@box:/# ", "> "):
        assert one(f"{lead}python -m sglang.launch_server --model m").value("model_path") == "m"


def test_a_forgotten_backslash_is_read_on_and_named() -> None:
    command = one("python -m sglang.launch_server --model m\n  --speculative-num-steps 5\n")
    assert command.value("speculative_num_steps") == 5
    assert "backslash" in command.problems[0].message


def test_spaces_after_a_backslash_are_named() -> None:
    command = one("python -m sglang.launch_server --model m \\ \n --tp 2\n")
    assert command.value("tp_size") == 2
    assert "spaces after the backslash" in command.problems[0].message


def test_typographic_dashes_are_read_and_named() -> None:
    command = one("sglang serve m —speculative-num-steps 3 –tp 2")
    assert command.value("speculative_num_steps") == 3
    assert "typographic" in command.problems[0].message


def test_unknown_flags_are_kept_with_their_values() -> None:
    command = one("sglang serve m --not-a-flag 3 --other-new-switch --tp 2")
    assert command.unknown == ("not_a_flag", "other_new_switch")
    assert command.value("not_a_flag") == 3
    assert command.value("other_new_switch") is True
    assert command.value("tp_size") == 2


def test_the_last_of_two_values_counts_and_is_named() -> None:
    command = one("sglang serve m --tp 2 --tp 4")
    assert command.value("tp_size") == 4
    assert "last one counts" in command.problems[0].message
    assert one("sglang serve m --tp 2").problems == ()


def test_a_bad_number_is_named_and_kept_as_text() -> None:
    command = one("sglang serve m --tp eight")
    assert command.value("tp_size") == "eight"
    assert "whole number" in command.problems[0].message


def test_sizes_lists_and_negative_numbers_are_typed() -> None:
    command = one(
        "sglang serve m --context-length 32Ki --cuda-graph-bs 1 2 4 --chunked-prefill-size -1"
    )
    assert command.value("context_length") == 32768
    assert command.value("cuda_graph_bs") == [1, 2, 4]
    assert command.value("chunked_prefill_size") == -1


def test_shell_variables_set_before_are_filled_in() -> None:
    text = "STEPS=5\nMODEL=a/b\nsglang serve ${MODEL} --speculative-num-steps $STEPS --port ${P:-8}"
    command = one(text)
    assert (command.value("model_path"), command.value("speculative_num_steps")) == ("a/b", 5)
    assert command.value("port") == 8


def test_bash_c_is_looked_into() -> None:
    command = one("docker run img bash -lc 'A=1 python -m sglang.launch_server --model q --tp 4'")
    assert (command.value("model_path"), command.value("tp_size")) == ("q", 4)
    assert command.env["A"] == "1"


def test_a_value_quoted_over_several_lines_is_one_value() -> None:
    text = """vllm serve org/m \\
  --speculative-config '{
    "method": "eagle3",
    "num_speculative_tokens": 3
  }' \\
  -tp 2
"""
    command = one(text)
    assert command.value("tp_size") == 2
    assert command.value("speculative_config") == {"method": "eagle3", "num_speculative_tokens": 3}
    assert command.problems == ()


def test_a_script_quoted_over_several_lines_is_looked_into() -> None:
    text = (
        "docker run img bash -c '\nexport A=1\npython -m sglang.launch_server --model q --tp 4\n'"
    )
    command = one(text)
    assert (command.value("tp_size"), command.env["A"]) == (4, "1")
    assert command.line == 3


def test_a_config_file_is_named_as_unseen() -> None:
    command = one("python -m sglang.launch_server --config serve.yaml --tp 2")
    assert "serve.yaml" in command.problems[0].message


def test_vllm_is_told_apart_and_its_speculation_is_json() -> None:
    command = one(
        "vllm serve org/m --speculative-config "
        '\'{"method": "eagle3", "num_speculative_tokens": 3}\' -tp 2'
    )
    assert command.engine == "vllm"
    assert command.value("speculative_config") == {"method": "eagle3", "num_speculative_tokens": 3}
    assert command.value("tp_size") == 2


def test_prose_holds_no_command() -> None:
    assert parse_command("We started sglang and it was slow. --verbose helps nobody.") == []
    assert parse_command("") == []


def test_an_argument_list_without_launcher_is_read() -> None:
    command = parse_argv(["--model-path", "m", "--speculative-num-steps", "1"])
    assert command.engine == "sglang"
    assert command.value("speculative_num_steps") == 1
    assert parse_argv([]).flags == {}


def test_real_trace_lines_are_read() -> None:
    command = one((DATA / "steps1.cmd").read_text())
    assert command.value("speculative_num_draft_tokens") == 16
    assert command.unknown == ()
    assert command.problems == ()


@given(st.text(max_size=400))
@settings(max_examples=80, deadline=None)
def test_flags_of_any_text_stand_on_lines_that_it_has(text: str) -> None:
    lines = len(re.split("\r\n|\r|\n", text))
    for command in parse_command(text) + parse_command("python -m sglang.launch_server " + text):
        assert command.engine in ("sglang", "vllm", "unknown")
        assert all(1 <= flag.line <= lines for flag in command.flags.values())


@given(
    st.dictionaries(st.sampled_from(["tp-size", "speculative-num-steps", "port"]), st.integers())
)
def test_values_survive_the_round_trip(values: dict[str, int]) -> None:
    argv = ["python", "-m", "sglang.launch_server"]
    for flag, value in values.items():
        argv += [f"--{flag}", str(value)]
    command = parse_argv(argv)
    assert {k: f.value for k, f in command.flags.items()} == {
        flag.replace("-", "_"): value for flag, value in values.items()
    }
    assert parse_command(" ".join(argv)) == [command]


def test_a_page_of_help_launches_nothing_and_the_command_beside_it_does() -> None:
    page = (
        "usage: launch_server.py [-h] [--speculative-algorithm {EAGLE,EAGLE3}]\n"
        "  --speculative-num-steps SPECULATIVE_NUM_STEPS\n"
    )
    assert parse_command(page) == []
    (command,) = parse_command(page + "python -m sglang.launch_server --model-path m --tp 2\n")
    assert command.flags["model_path"].value == "m"
