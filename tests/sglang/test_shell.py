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
