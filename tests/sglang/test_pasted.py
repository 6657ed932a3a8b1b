"""JSON between other words."""

import html
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.flags import parse_command
from specdebug.sglang.logs import read_log
from specdebug.sglang.pasted import as_text, json_values, number, whole


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
