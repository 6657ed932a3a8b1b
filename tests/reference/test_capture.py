"""Which hidden states are captured for which ids, and what bad ids are told."""

from pathlib import Path
from typing import Any

import pytest

from specdebug.reference.capture import CaptureError, from_config

FILE = Path("draft/config.json")


def captured(ids: Any, num_layers: int = 12, num_aux: int = 3) -> Any:
    config = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": ids}}
    return from_config(config, FILE, num_layers=num_layers, num_aux=num_aux)


def message(ids: Any) -> str:
    with pytest.raises(CaptureError) as caught:
        captured(ids)
    return str(caught.value)


def test_an_id_means_the_output_of_that_layer() -> None:
    assert captured([1, 5, 9]).hidden_states == (2, 6, 10)
    assert captured([1, 5, 9]).notes == ()


def test_minus_one_is_the_embedding_and_is_said_aloud() -> None:
    found = captured([-1, 1, 5])
    assert found.hidden_states == (0, 2, 6)
    assert len(found.notes) == 1
    assert "embedding" in found.notes[0]
    assert str(FILE) in found.notes[0]


def test_states_come_in_layer_order_and_a_shuffled_list_is_said_aloud() -> None:
    found = captured([5, 1, 9])
    assert found.hidden_states == (2, 6, 10)
    assert "layer order" in found.notes[0]


@pytest.mark.parametrize("config", [{}, {"eagle_config": None}, {"eagle_config": {"other": 1}}])
def test_no_ids_give_the_default_layers_of_the_release(config: dict[str, Any]) -> None:
    found = from_config(config, FILE, num_layers=12, num_aux=3)
    assert found.hidden_states == (2, 6, 9)
    assert found.layer_ids is None
    assert "default" in found.notes[0]


def test_default_layers_that_collapse_are_refused() -> None:
    with pytest.raises(CaptureError, match=r"default layers \[2\] of a 5-layer"):
        from_config({}, FILE, num_layers=5, num_aux=3)


@pytest.mark.parametrize("ids", [[-2, 1, 5], [1, 5, 12]])
def test_an_id_out_of_range_is_named_with_the_range(ids: list[int]) -> None:
    told = message(ids)
    assert "draft/config.json: eagle_config.eagle_aux_hidden_state_layer_ids" in told
    assert "layers 0 to 11" in told


def test_the_last_layer_is_never_captured() -> None:
    assert "id 11 is the output of the last layer" in message([1, 5, 11])
    assert captured([1, 5, 10]).hidden_states == (2, 6, 11)


def test_doubled_ids_collapse_and_are_refused() -> None:
    assert "gives 2 different states, the draft's fc takes 3" in message([1, 5, 5])


@pytest.mark.parametrize("ids", ["1,5,9", [1, 5, "9"], [1, 5, 9.0], [True, 5, 9], 3])
def test_ids_of_another_type_are_refused(ids: Any) -> None:
    assert "must be a list of whole numbers" in message(ids)


def test_an_eagle_config_that_is_no_object_is_refused() -> None:
    with pytest.raises(CaptureError, match="eagle_config must be an object"):
        from_config({"eagle_config": [1, 5, 9]}, FILE, num_layers=12, num_aux=3)


def test_by_the_other_rule_an_id_means_what_goes_into_that_layer() -> None:
    config = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 2, 6]}}
    found = from_config(config, FILE, num_layers=12, num_aux=3, id_offset=0)
    assert found.hidden_states == (0, 2, 6)
    assert found.notes == ()
    config = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [-1, 2, 6]}}
    with pytest.raises(CaptureError, match="id -1 is out of range"):
        from_config(config, FILE, num_layers=12, num_aux=3, id_offset=0)
