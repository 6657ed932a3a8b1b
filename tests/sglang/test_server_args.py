"""The dump of effective arguments in both forms."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.server_args import read_server_args


def test_the_call_form_gives_python_values() -> None:
    text = (
        "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='a, b=(c', x=None, y=True, "
        "z=0.5, bs=[1, 2], d={'k': (1, 2)}, n=-1)"
    )
    assert read_server_args(text) == {
        "model_path": "a, b=(c",
        "x": None,
        "y": True,
        "z": 0.5,
        "bs": [1, 2],
        "d": {"k": (1, 2)},
        "n": -1,
    }


def test_the_dict_form_gives_the_same() -> None:
    assert read_server_args("server_args={'a': 1, \"b\": 'x\\'y, z', 'c': [1, {'d': 2}]}") == {
        "a": 1,
        "b": "x'y, z",
        "c": [1, {"d": 2}],
    }


def test_values_that_are_no_literals_stay_text() -> None:
    found = read_server_args("ServerArgs(mode=<Mode.A: 1>, f=Config(a=1, b='x'), last=3)")
    assert found == {"mode": "<Mode.A: 1>", "f": "Config(a=1, b='x')", "last": 3}


def test_a_dump_cut_short_keeps_what_it_has() -> None:
    assert read_server_args("server_args=ServerArgs(a=1, b='x', c='unfin") == {
        "a": 1,
        "b": "x",
        "c": "'unfin",
    }


@pytest.mark.parametrize("text", ["", "server_args=", "nothing here", "server_args=ServerArgs()"])
def test_no_dump_gives_nothing(text: str) -> None:
    assert read_server_args(text) is None


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,12}", fullmatch=True),
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.text(), max_size=3)
        ),
        min_size=1,
    )
)
def test_whatever_python_prints_is_read_back(values: dict[str, object]) -> None:
    call = ", ".join(f"{name}={value!r}" for name, value in values.items())
    assert read_server_args(f"server_args=ServerArgs({call})") == values
    assert read_server_args(f"server_args={values!r}") == values


@pytest.mark.parametrize(
    "value",
    [
        "[" * 3000 + "]" * 3000,
        "-" * 5000 + "1",
        "f" + "()" * 3000,
        "not " * 3000 + "1",
        "1" + "+1" * 5000,
    ],
)
def test_a_value_nested_beyond_reason_stays_text_and_harms_no_later_parse(value: str) -> None:
    found = read_server_args(f"server_args=ServerArgs(model_path='m', extra={value}, tp_size=2)")
    assert found is not None
    assert found["extra"] == value
    assert found["tp_size"] == 2
    # The parser still works in this process.
    assert ast.literal_eval("[1, {'a': (2, 3)}]") == [1, {"a": (2, 3)}]


def test_long_flat_values_are_still_read() -> None:
    dicts = str([{"a": -1.5, "b": [1, 2]}] * 40)
    found = read_server_args(f"ServerArgs(model_path='m-{'-' * 80}', extra={dicts}, tp_size=2)")
    assert found is not None
    assert found["extra"][39] == {"a": -1.5, "b": [1, 2]}
