"""JSON between other words."""

import html
import io
import json
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.flags import parse_command
from specdebug.sglang.logs import read_log
from specdebug.sglang.pasted import as_text, json_values, number, rejoined, unquoted, whole

pytestmark = pytest.mark.usefixtures("both_ways")


def test_values_are_found_with_their_lines() -> None:
    text = 'see this:\n{"a": 1}\nand {"b": [2]} and\n[{"c": 3}]\n{broken\n{"d": 4}\n'
    assert list(json_values(text)) == [
        (2, {"a": 1}),
        (3, {"b": [2]}),
        (4, [{"c": 3}]),
        (6, {"d": 4}),
    ]


def test_a_value_over_several_lines_is_one() -> None:
    assert list(json_values('\n{\n "a":\n 1\n}\n')) == [(2, {"a": 1})]


def test_infinity_is_read_as_clients_write_it() -> None:
    assert list(json_values('{"rate": Infinity}')) == [(1, {"rate": float("inf")})]


def test_deep_nesting_and_many_brackets_end() -> None:
    assert list(json_values("[{" * 100_000)) == []
    assert list(json_values("{\n" * 100_000)) == []


def test_encodings_and_line_ends_become_plain() -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        assert as_text("a\r\nb\rc".encode(encoding)) == "a\nb\nc"
    assert as_text(b"\xff") == "\ufffd"


def test_numbers_are_finite_and_no_booleans() -> None:
    assert [number(v) for v in (1, 2.5, True, "3", None, float("inf"), float("nan"))] == [
        1.0,
        2.5,
        None,
        None,
        None,
        None,
        None,
    ]
    assert [whole(v) for v in (3, 3.0, 3.5)] == [3, 3, None]


@given(st.dictionaries(st.text(max_size=5), st.integers(), min_size=1))
def test_whatever_is_written_is_found(value: dict[str, int]) -> None:
    assert list(json_values("text\n" + json.dumps(value) + "\nmore")) == [(2, value)]


COMMAND = (
    'SGLANG_X=1 python -m sglang.launch_server --model-path "a b" --tp 8 '
    "--json-model-override-args '{\"rope\": 1}' 2>&1 | tee x.log && echo <done>"
)


def test_a_command_copied_from_the_source_of_a_page_reads_as_on_the_page() -> None:
    assert as_text(html.escape(COMMAND)) == COMMAND
    assert parse_command(as_text(html.escape(COMMAND))) == parse_command(COMMAND)


def test_a_log_copied_from_the_source_of_a_page_reads_as_on_the_page() -> None:
    lines = (
        "[2026-01-19 11:30:40] server_args=ServerArgs(model_path='m', speculative_num_steps=3)\n"
        "TypeError: '>' not supported between instances of 'NoneType' and 'int'\n"
    )
    plain, escaped = (
        read_log(io.StringIO(text), "x").boots[0] for text in (lines, html.escape(lines))
    )
    assert (
        escaped.server_args == plain.server_args == {"model_path": "m", "speculative_num_steps": 3}
    )
    assert escaped.events == plain.events


@pytest.mark.parametrize(
    "text",
    ['{"note": "a page says &quot;no&quot;"}', "a && b &amp; c", "x > 1 and x &gt; 2", "a=1&b=2"],
)
def test_an_entity_beside_the_sign_itself_stays_as_written(text: str) -> None:
    assert as_text(text) == text


def test_what_python_printed_is_read_like_json() -> None:
    text = (
        ">>> pprint(answer)\n{'a': [1, True, None],\n 'b': 'it\\'s {here}',\n \"c\": {'d': 0.5}}\n"
        "and [{'e': 1}, {'e': 2}]\n"
    )
    assert list(json_values(text)) == [
        (2, {"a": [1, True, None], "b": "it's {here}", "c": {"d": 0.5}}),
        (5, [{"e": 1}, {"e": 2}]),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "server_args={'model_path': 'm'}",  # an engine's own line
        "{'a': open('f')}",
        "{'a': 1",
        "{'a': " + "[" * 200_000,
        "{'a': " + "(" * 60 + ")" * 60 + "}",
    ],
)
def test_python_that_is_no_plain_value_is_left_alone(text: str) -> None:
    assert list(json_values(text)) == []


LINE = (
    "[2026-03-02 11:00:00 TP0] Decode batch, #running-req: 1, #token: 600, token usage: 0.03, "
    "accept len: 1.54, accept rate: 0.77, cuda graph: True, gen throughput (token/s): 85.32, "
    "#queue-req: 0"
)


@pytest.mark.parametrize("width", [72, 80, 100, 132])
@pytest.mark.parametrize("lead", ["", "> "])
def test_decode_lines_broken_by_a_mailer_or_a_terminal_are_whole_again(
    width: int, lead: str
) -> None:
    mailer = "\n".join(lead + part for part in textwrap.wrap(LINE, width))
    terminal = "\n".join(lead + LINE[at : at + width] for at in range(0, len(LINE), width))
    for broken in (mailer, terminal):
        text = f"hello\n{broken}\n{broken}\nbye"
        whole = rejoined(text).split("\n")
        assert [line for line in whole if line] == ["hello", lead + LINE, lead + LINE, "bye"]
        assert len(whole) == text.count("\n") + 1
        assert whole[-1] == "bye"


def test_a_decode_line_that_was_cut_takes_nothing_from_its_neighbours() -> None:
    cut = LINE[:90]
    for text in (f"{cut}\n{LINE}", f"{cut}\n\n#queue-req: 0", f"{LINE}\n{cut}", f"{cut}\nthanks"):
        assert rejoined(text) == text


def test_signs_of_a_quoted_reply_go_and_a_shells_redirection_stays() -> None:
    assert unquoted("Hi,\n> a:\n>   - b\n> > c\n>\nbye") == "Hi,\na:\n  - b\nc\n\nbye"
    for kept in ("sglang serve m \\\n  > server.log 2>&1\n", "a > b\n", "x: >\n  folded\n"):
        assert unquoted(kept) == kept


@given(st.text(alphabet="> ab\n", max_size=60))
def test_unquoting_keeps_every_line_in_its_place(text: str) -> None:
    after = unquoted(text).split("\n")
    assert len(after) == len(text.split("\n"))
    assert all(b.endswith(a) for a, b in zip(after, text.split("\n"), strict=True))
