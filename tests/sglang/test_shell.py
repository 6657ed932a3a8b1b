"""Words of pasted shell and lists."""

import pytest

from specdebug.sglang.shell import Command, commands


def words(command: Command) -> list[str]:
    return [word.text for word in command.words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 'b c' \"d e\"", [["a", "b c", "d e"]]),
        ("a b=\\\"c\\\" 'it'\\''s'", [["a", 'b="c"', "it's"]]),
        ("a; b && c | d", [["a"], ["b"], ["c"], ["d"]]),
        ("a >out 2>&1 <in b", [["a", "b"]]),
        ("a &> log b", [["a", "b"]]),
        ("a # rest", [["a"]]),
        ("a b#c", [["a", "b#c"]]),
        ("a \\\n  b", [["a", "b"]]),
        ("bash -c 'x\ny' b", [["bash", "-c", "x\ny", "b"]]),
        ("don't\nworry", [["dont"], ["worry"]]),
    ],
)
def test_text_is_split_as_a_shell_splits_it(text: str, expected: list[list[str]]) -> None:
    assert [words(command) for command in commands(text)] == expected


def test_an_unclosed_quote_ends_with_its_line_and_is_named() -> None:
    first, *_ = commands("a 'b c\nd")
    assert words(first) == ["a", "b c"]
    assert "never closed" in first.problems[0][1]


def test_comments_between_continued_lines_are_skipped() -> None:
    (command,) = commands("a \\\n# b \\\n  c")
    assert [(word.text, word.line) for word in command.words] == [("a", 1), ("c", 3)]


def test_variables_reach_later_commands_only() -> None:
    first, second = commands("echo $A\nA=1\necho $A ${B:-2} $C")
    assert words(first) == ["echo", "$A"]
    assert words(second) == ["echo", "1", "2", "$C"]


def test_lists_of_other_things_are_no_command() -> None:
    assert [words(c) for c in commands("- eggs\n- milk\n")] == [["-", "eggs"], ["-", "milk"]]


def test_a_python_list_of_arguments_is_one_command() -> None:
    text = "run([\n 'python', \"-m\",  # start\n 'sglang.launch_server',\n '--tp', str(tp),\n])"
    listed = [words(c) for c in commands(text)]
    assert ["python", "-m", "sglang.launch_server", "--tp", "tp"] in listed


def test_a_bracket_that_never_closes_is_no_list() -> None:
    assert all("sglang" not in words(c) for c in commands("x = ['sglang', {1: 2}]"))


def test_a_variable_full_of_flags_is_many_words() -> None:
    (command,) = commands('A="--tp 2 --port 1"\nB=x\nserve $A "$B"')
    assert words(command) == ["serve", "--tp", "2", "--port", "1", "x"]


def test_a_bash_array_is_expanded_where_it_is_used() -> None:
    text = 'ARGS=(\n  --tp 2  # two\n  --port 1\n)\nARGS+=(--dp 1)\nserve "${ARGS[@]}"'
    (command,) = commands(text)
    assert words(command) == ["serve", "--tp", "2", "--port", "1", "--dp", "1"]
    assert command.words[0].line == 6


def test_an_ordinary_variable_stays_one_word() -> None:
    (command,) = commands('NAME="my model"\nserve $NAME')
    assert words(command) == ["serve", "my model"]


def test_a_quoted_reply_is_continued_line_by_line() -> None:
    (command,) = commands("> serve \\\n>   --tp 2 \\\n>   --port 1")
    assert words(command) == ["serve", "--tp", "2", "--port", "1"]


def test_two_lists_on_one_line_are_two_commands() -> None:
    found = [words(c) for c in commands('x = ["sglang", "serve"] + ["--tp", "2"]')]
    assert ["sglang", "serve"] in found
    assert ["--tp", "2"] in found


def test_variables_cannot_make_a_text_grow_without_end() -> None:
    text = 'A="-' + "x " * 40_000 + '"\n' + "serve $A\n" * 5_000
    assert 1 <= len(commands(text)) < 50
    assert len(commands("serve --tp 2\n" * 5_000)) == 5_000
