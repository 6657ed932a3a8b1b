"""Scripts and YAML files before their words are split."""

import pytest

from specdebug.sglang.shell import commands
from specdebug.sglang.shell_lines import environment_of, folded, uncommented


def joined(text: str) -> list[str]:
    return [" ".join(word.text for word in command.words) for command in commands(text)]


def test_a_comment_in_a_script_is_no_command_and_keeps_its_line() -> None:
    lines = ["#!/bin/bash", "# export A=1", "a \\", "# b \\", "c"]
    assert uncommented(lines) == ["", "", "a \\", "# b \\", "c"]


def test_roots_prompt_is_no_comment() -> None:
    lines = ["I ran this:", "# python -m sglang.launch_server --model-path a"]
    assert uncommented(lines) == lines


@pytest.mark.parametrize(
    "text",
    [
        "x:\n  command: >-\n    serve a\n    --model b\n    c --d\n  ports: 1\n",
        "x:\n  command: serve a\n    --model b\n    c --d\n  ports: 1\n",
    ],
)
def test_yaml_text_that_folds_over_lines_is_one_command(text: str) -> None:
    assert "serve a --model b c --d" in joined(text)


@pytest.mark.parametrize(
    "text",
    ["command: a\nports: b\n", "command:\n  - a\n  - b\n", "command: |\n  a\n  b\n"],
)
def test_other_yaml_is_not_folded(text: str) -> None:
    assert folded(text.split("\n")) == text.split("\n")


def test_variables_of_containers_and_images_are_found() -> None:
    text = "env:\n- name: AB_C\n  value: '3'\nENV XYZ=4\nenvironment:\n  QRS: 5\nother: 6"
    assert environment_of(text.split("\n")) == {"AB_C": "3", "XYZ": "4", "QRS": "5"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N=3\na $((N+1))", "a 4"),
        ("N=3\na $(( ${N} * 2 - 1 ))", "a 5"),
        ("a $((N+1))", "a $((N+1))"),
        ("a $((8/2))", "a $((8/2))"),
    ],
)
def test_sums_of_known_whole_numbers_are_worked_out_and_others_stay(
    text: str, expected: str
) -> None:
    assert joined(text)[-1] == expected
