"""Eight neighbouring bytes as one number, at any place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.eights import Eights


@given(st.binary(min_size=16, max_size=80))
def test_every_place_gives_its_own_eight_bytes(data: bytes) -> None:
    places = np.arange(len(data) - 15)
    found = Eights(data).at(places)
    assert found.tolist() == [
        int.from_bytes(data[place : place + 8], "little") for place in places.tolist()
    ]


def test_places_may_have_any_shape() -> None:
    data = bytes(range(64))
    places = np.arange(40).reshape(5, 8).T
    found = Eights(data).at(places)
    assert found.shape == (8, 5)
    assert found[3, 2] == int.from_bytes(data[19:27], "little")


@given(st.lists(st.from_regex(r"[0-9]{1,16}", fullmatch=True), min_size=1, max_size=9))
def test_numbers_of_up_to_sixteen_digits_are_read_wherever_they_begin(runs: list[str]) -> None:
    text = "/" + ":".join(runs)
    width = np.array([len(run) for run in runs])
    begin = 1 + np.concatenate([[0], np.cumsum(width[:-1] + 1)])
    found = Eights(text.encode() + b"\0" * 16).numbers(begin, width)
    assert found.tolist() == [int(run) for run in runs]
