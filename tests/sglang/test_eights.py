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
