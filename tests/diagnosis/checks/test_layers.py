from dataclasses import replace
from typing import Any

import pytest

from specdebug.diagnosis.checks import layers as checks
from specdebug.diagnosis.facts import Training

STORY = Training(val_accuracy=0.747, features=("embed", 3, 31))


def kimi(make: Any, ids: list[int] | None, version: str | None, **more: Any) -> Any:
    return make.case(
        draft_config=make.kimi_draft(ids),
        target_config=make.kimi_target,
        engine_version=version,
        **more,
    )


def test_the_storys_layers_are_not_the_trained_ones(make: Any) -> None:
    found = checks.aux_layer_mismatch(kimi(make, [2, 30, 58], "0.5.9", training=STORY))
    assert found is not None
    assert (found.severity, found.confidence) == ("critical", "certain")
    assert "[3, 31, 59]" in found.statement
    assert "[embedding, 3, 31]" in found.statement
    assert "missing embedding" in found.statement


def test_matching_layers_are_quiet(make: Any) -> None:
    case = kimi(make, [1, 29, 57], "0.5.9", training=Training(features=(2, 30, 58)))
    assert checks.aux_layer_mismatch(case) is None


def test_without_the_training_side_no_mismatch_is_claimed(make: Any) -> None:
    assert checks.aux_layer_mismatch(kimi(make, [2, 30, 58], "0.5.9")) is None


def test_a_draft_that_fits_one_possible_release_is_not_called_wrong(make: Any) -> None:
    training = Training(features=(2, 30, 58))
    assert checks.aux_layer_mismatch(kimi(make, [2, 30, 58], None, training=training)) is None
    assert checks.aux_layer_mismatch(kimi(make, [2, 30, 58], "0.5.9", training=training))


def test_the_trained_layers_on_the_newer_reading_are_quiet(make: Any) -> None:
    training = Training(features=(2, 30, 58))
    assert checks.aux_layer_mismatch(kimi(make, [2, 30, 58], "0.5.13", training=training)) is None


def test_a_wrong_order_is_named(make: Any) -> None:
    training = Training(features=(31, 3, 59))
    found = checks.aux_layer_mismatch(kimi(make, [2, 30, 58], "0.5.9", training=training))
    assert found is not None
    assert "wrong order" in found.statement


def test_ids_that_change_their_meaning_by_release_are_named(make: Any) -> None:
    found = checks.aux_layer_convention(kimi(make, [2, 30, 58], "0.5.12"))
    assert found is not None
    assert "[3, 31, 59]" in found.statement
    assert "[2, 30, 58]" in found.statement
    assert "training" in found.settled_by


@pytest.mark.parametrize(
    ("bounds", "severity", "settled"),
    [
        (("0.5.13", None), "info", ""),
        ((None, "0.5.9"), "info", ""),
        (("0.5.9", "0.5.14"), "medium", "the engine's release"),
    ],
)
def test_a_range_of_releases_that_agree_settles_the_convention(
    make: Any, bounds: tuple[str | None, str | None], severity: str, settled: str
) -> None:
    boot = make.boot(notices=[("argument-warning", "spec v2")])
    boot = replace(boot, release_from=bounds[0], release_until=bounds[1])
    case = kimi(make, [2, 30, 58], None, training=Training(features=(2, 30, 58)), boots=[boot])
    found = checks.aux_layer_convention(case)
    assert found is not None
    assert (found.severity, found.settled_by) == (severity, settled)
    assert ("The log is of a release" in found.statement) == (severity == "info")


def test_ids_that_begin_with_one_mean_the_same_everywhere(make: Any) -> None:
    assert checks.aux_layer_convention(kimi(make, [1, 29, 57], "0.5.12")) is None


def test_on_newer_releases_the_storys_fix_needs_other_ids(make: Any) -> None:
    found = checks.aux_layer_convention(kimi(make, [-1, 2, 30], "0.5.17", training=STORY))
    assert found is not None
    assert "[0, 3, 31]" in found.fix


LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "vocab_size": 128256,
}


def test_vllms_default_ids_on_sglang_are_a_possible_mix_up(make: Any) -> None:
    case = make.case(
        draft_config=make.kimi_draft([2, 16, 29]), target_config=LLAMA, engine_version="0.5.9"
    )
    found = checks.aux_layer_convention(case)
    assert found is not None
    assert found.confidence == "possible"


def test_specforges_ids_on_sglang_are_fine(make: Any) -> None:
    case = make.case(
        draft_config=make.kimi_draft([1, 15, 28]), target_config=LLAMA, engine_version="0.5.9"
    )
    assert checks.aux_layer_convention(case) is None


def test_ids_at_top_level_are_not_read(make: Any) -> None:
    draft = make.kimi_draft(None, eagle_aux_hidden_state_layer_ids=[2, 30, 58])
    case = make.case(draft_config=draft, target_config=make.kimi_target, engine_version="0.5.9")
    found = checks.aux_layers_defaulted(case)
    assert found is not None
    assert found.severity == "high"
    assert "[2, 30, 58]" in found.statement


def test_ids_at_top_level_that_equal_the_default_do_no_harm(make: Any) -> None:
    draft = make.kimi_draft(None, eagle_aux_hidden_state_layer_ids=[1, 29, 57])
    case = make.case(draft_config=draft, target_config=make.kimi_target, engine_version="0.5.9")
    found = checks.aux_layers_defaulted(case)
    assert found is not None
    assert found.severity == "info"
    assert "same layers" in found.statement


def test_ids_at_top_level_of_a_draft_that_was_trained_on_the_default_are_a_note(make: Any) -> None:
    draft = make.kimi_draft(None, eagle_aux_hidden_state_layer_ids=[2, 30, 58])
    case = make.case(
        draft_config=draft,
        target_config=make.kimi_target,
        engine_version="0.5.9",
        training=Training(features=(2, 30, 58)),
    )
    found = checks.aux_layers_defaulted(case)
    assert found is not None
    assert found.severity == "info"
    assert "those of the training" in found.statement
    # Written there as they are, they would capture layers 3, 31 and 59.
    assert "write [1, 29, 57]" in found.fix
    assert "Move them" not in found.fix


def test_where_ids_are_moved_to_they_are_said_to_mean_other_layers(make: Any) -> None:
    draft = make.kimi_draft(None, eagle_aux_hidden_state_layer_ids=[2, 30, 58])
    case = make.case(draft_config=draft, target_config=make.kimi_target, engine_version="0.5.9")
    found = checks.aux_layers_defaulted(case)
    assert found is not None
    assert "trained on the inputs of layers [3, 31, 59]" in found.fix
    alone = checks.aux_layers_defaulted(make.case(draft_config=draft))
    assert alone is not None
    assert alone.fix.startswith("Move them to eagle_config")
    assert "all the same" not in alone.fix


def test_before_049_a_draft_trained_on_the_default_layers_is_served_rightly(make: Any) -> None:
    case = kimi(make, [5, 29, 50], "0.4.8", training=Training(features=(2, 30, 58)))
    found = checks.aux_layers_defaulted(case)
    assert found is not None
    assert found.severity == "info"
    assert "write [1, 29, 57]" in found.fix


def test_absent_ids_are_a_note_and_given_ones_nothing(make: Any) -> None:
    found = checks.aux_layers_defaulted(kimi(make, None, "0.5.9"))
    assert found is not None
    assert found.severity == "info"
    assert checks.aux_layers_defaulted(kimi(make, [1, 29, 57], "0.5.9")) is None


def test_a_mismatch_by_the_default_quotes_the_file_and_not_a_key_it_lacks(make: Any) -> None:
    draft = make.kimi_draft(None, eagle_aux_hidden_state_layer_ids=[2, 30, 58])
    case = make.case(
        draft_config=draft, target_config=make.kimi_target, engine_version="0.5.9", training=STORY
    )
    found = checks.aux_layer_mismatch(case)
    assert found is not None
    assert found.evidence[0].text == "eagle_aux_hidden_state_layer_ids: [2, 30, 58]"
    assert "Without ids where the engine looks" in found.statement
    absent = checks.aux_layer_mismatch(kimi(make, None, "0.5.9", training=STORY))
    assert absent is not None
    assert absent.evidence[0].text.startswith("no eagle_config")


def test_absent_ids_against_other_training_are_a_fault(make: Any) -> None:
    found = checks.aux_layers_defaulted(kimi(make, None, "0.5.9", training=STORY))
    assert found is not None
    assert found.severity == "high"


def test_before_049_ids_in_the_draft_config_are_not_read(make: Any) -> None:
    found = checks.aux_layers_defaulted(kimi(make, [1, 29, 57], "0.4.8"))
    assert found is not None
    assert found.severity == "info"  # they mean the default layers
    assert "2, 30, 58" in found.statement
    other = checks.aux_layers_defaulted(kimi(make, [5, 29, 57], "0.4.8"))
    assert other is not None
    assert other.severity == "high"
    assert checks.aux_layers_defaulted(kimi(make, [1, 29, 57], "0.4.9")) is None
    assert checks.aux_layers_defaulted(kimi(make, [1, 29, 57], None)) is None


def test_before_049_the_default_layers_are_held_against_the_training(make: Any) -> None:
    case = kimi(make, [5, 29, 50], "0.4.8", training=Training(features=(6, 30, 51)))
    found = checks.aux_layer_mismatch(case)
    assert found is not None
    assert "[2, 30, 58]" in found.statement
    same = kimi(make, [5, 29, 50], "0.4.8", training=Training(features=(2, 30, 58)))
    assert checks.aux_layer_mismatch(same) is None


def test_ids_that_are_no_list_are_said_to_be_unreadable(make: Any) -> None:
    draft = make.kimi_draft(None, eagle_config={"eagle_aux_hidden_state_layer_ids": "2,30,58"})
    found = checks.aux_layers_defaulted(make.case(draft_config=draft, engine_version="0.5.9"))
    assert found is not None
    assert "no list" in found.evidence[0].text
