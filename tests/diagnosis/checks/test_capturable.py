from typing import Any

from specdebug.diagnosis.checks import capturable as checks
from specdebug.diagnosis.facts import Training

STORY = Training(val_accuracy=0.747, features=("embed", 3, 31))
SHAPES = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (23x128 and 192x64)"


def kimi(make: Any, ids: list[int] | None, version: str | None, **more: Any) -> Any:
    return make.case(
        draft_config=make.kimi_draft(ids),
        target_config=make.kimi_target,
        engine_version=version,
        **more,
    )


def test_the_embedding_cannot_be_captured_by_minus_one_on_newer_releases(make: Any) -> None:
    found = checks.aux_layer_not_capturable(kimi(make, [-1, 2, 30], "0.5.13", training=STORY))
    assert found is not None
    assert found.confidence == "certain"
    assert "-1" in found.statement


def test_an_id_beyond_the_last_layer_is_named(make: Any) -> None:
    assert checks.aux_layer_not_capturable(kimi(make, [1, 29, 61], "0.5.9")) is not None


def test_ids_inside_the_model_are_capturable(make: Any) -> None:
    assert checks.aux_layer_not_capturable(kimi(make, [1, 29, 57], "0.5.9")) is None


def test_a_width_error_of_two_thirds_betrays_a_missing_state(make: Any) -> None:
    boot = make.boot(args=make.args(), notices=[("exception", SHAPES)], ready=False)
    found = checks.aux_layer_not_capturable(make.case(boots=[boot]))
    assert found is not None
    assert "2 of 3" in found.statement


def test_another_width_error_says_nothing_about_layers(make: Any) -> None:
    text = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (23x100 and 192x64)"
    boot = make.boot(args=make.args(), notices=[("exception", text)], ready=False)
    assert checks.aux_layer_not_capturable(make.case(boots=[boot])) is None


def test_an_id_written_twice_is_captured_once(make: Any) -> None:
    found = checks.aux_layer_not_capturable(kimi(make, [1, 29, 29], "0.5.17"))
    assert found is not None
    assert "2 of 3 states" in found.statement
    assert "captured 2 of 3" in found.statement
    assert checks.aux_layer_not_capturable(kimi(make, [1, 29, 57], "0.5.17")) is None


def test_what_only_an_older_release_cannot_do_is_a_note_while_the_release_is_unknown(
    make: Any,
) -> None:
    found = checks.aux_layer_not_capturable(kimi(make, [0, 3, 31], None))
    assert found is not None
    assert (found.severity, found.confidence) == ("info", "possible")
    assert "on release 0.5.13 (" in found.statement
    newer = checks.aux_layer_not_capturable(kimi(make, [-1, 2, 30], None))
    assert newer is not None
    assert newer.severity == "critical"
    assert checks.aux_layer_not_capturable(kimi(make, [0, 3, 31], "0.5.14")) is None
    known = checks.aux_layer_not_capturable(kimi(make, [0, 3, 31], "0.5.13"))
    assert known is not None
    assert known.severity == "critical"


def test_there_is_something_to_do_though_nothing_is_known_of_the_training(make: Any) -> None:
    found = checks.aux_layer_not_capturable(kimi(make, [-1, 2, 30], "0.5.15"))
    assert found is not None
    assert "which of them are right depends on the layers that training used" in found.fix
    told = checks.aux_layer_not_capturable(kimi(make, [-1, 2, 30], "0.5.15", training=STORY))
    assert told is not None
    assert "[0, 3, 31]" in told.fix
