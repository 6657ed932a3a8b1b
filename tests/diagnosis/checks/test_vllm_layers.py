"""Layer ids as vLLM reads them: an id is the layer whose input is captured."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specdebug.diagnosis.diagnose import diagnose
from specdebug.diagnosis.facts import Case, Input
from specdebug.diagnosis.gather import build_case

COMMAND = (
    "vllm serve moonshotai/Kimi-K2.5 --speculative-config "
    '\'{"method": "eagle3", "model": "d", "num_speculative_tokens": 3}\''
)
KEY = "eagle_aux_hidden_state_layer_ids"


def served(
    make: Any,
    draft: dict[str, Any],
    features: list[Any] | None = None,
    *,
    command: str = COMMAND,
    depth: bool = True,
) -> Case:
    inputs = [
        Input("command.txt", command.encode()),
        Input("draft_config.json", json.dumps(draft).encode()),
    ]
    if depth:
        inputs.append(Input("target_config.json", json.dumps(make.kimi_target).encode()))
    notes = {"training": {"features": features}} if features else None
    return build_case(inputs, notes=notes)


def told(case: Case) -> dict[str, Any]:
    return {f.code: f for f in diagnose(case).findings if f.code.startswith("aux-layer")}


def top(make: Any, ids: list[int]) -> dict[str, Any]:
    config: dict[str, Any] = make.kimi_draft(None) | {KEY: ids}
    return config


def test_ids_at_the_top_level_are_read_as_they_stand(make: Any) -> None:
    case = served(make, top(make, [1, 29, 57]), [2, 30, 58])
    (found,) = told(case).values()
    assert (found.code, found.severity, found.confidence) == (
        "aux-layer-mismatch",
        "critical",
        "likely",
    )
    assert "[1, 29, 57]" in found.statement
    assert "[2, 30, 58] at the top level" in found.fix
    assert diagnose(case).values["captured_layers"] == [1, 29, 57]
    assert told(served(make, top(make, [2, 30, 58]), [2, 30, 58])) == {}


def test_ids_in_eagle_config_are_read_by_later_versions_only(make: Any) -> None:
    case = served(make, make.kimi_draft([1, 29, 57]), [2, 30, 58])
    (found,) = told(case).values()
    assert (found.code, found.severity) == ("aux-layer-convention", "medium")
    assert "by its default" in found.statement
    assert "captured_layers" not in diagnose(case).values
    assert told(served(make, make.kimi_draft([2, 30, 58]), [2, 30, 58])) == {}


def test_layers_that_no_version_captures_are_a_mismatch(make: Any) -> None:
    case = served(make, make.kimi_draft([1, 29, 57]), ["embed", 3, 31])
    assert list(told(case)) == ["aux-layer-mismatch"]


def test_without_ids_the_default_is_held_against_the_training(make: Any) -> None:
    assert told(served(make, make.kimi_draft(None), [2, 30, 58])) == {}
    assert list(told(served(make, make.kimi_draft(None), [3, 31, 59]))) == ["aux-layer-mismatch"]


def test_without_the_targets_depth_no_default_is_claimed(make: Any) -> None:
    draft = make.kimi_draft([1, 29, 57])
    assert list(told(served(make, draft, [3, 31, 59], depth=False))) == ["aux-layer-convention"]
    assert told(served(make, make.kimi_draft(None), [3, 31, 59], depth=False)) == {}


@pytest.mark.parametrize("ids", [[1, 29, 57], [2, 30, 58]])
def test_ids_as_specforge_writes_them_are_pointed_out(make: Any, ids: list[int]) -> None:
    found = told(served(make, top(make, ids)))
    assert list(found) == (["aux-layer-convention"] if ids[0] == 1 else [])


def test_sglang_is_judged_by_its_own_rules(make: Any) -> None:
    command = "sglang serve --model-path m --speculative-algorithm EAGLE3"
    case = served(make, make.kimi_draft([1, 29, 57]), [2, 30, 58], command=command)
    assert "vLLM" not in " ".join(f.statement for f in told(case).values())
