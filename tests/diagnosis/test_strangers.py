"""A command and a log that do not fit: said, named with both readings, and nothing dropped."""

from __future__ import annotations

from typing import Any

import pytest

from specdebug.diagnosis.arguments import contradictions, setups
from specdebug.diagnosis.case import Case, Input, build_case
from specdebug.diagnosis.checks.differing import argument_overridden
from specdebug.diagnosis.diagnose import diagnose
from specdebug.diagnosis.facts import Fact
from specdebug.diagnosis.strangers import strangers

COMMAND = (
    "python -m sglang.launch_server --model-path {model} --speculative-algorithm {algorithm} "
    "--speculative-draft-model-path {draft} --speculative-num-steps {steps} "
    "--speculative-num-draft-tokens {tokens} --max-running-requests 8"
)
LOG = (
    "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='{model}', "
    "speculative_algorithm={algorithm!r}, speculative_draft_model_path='{draft}', "
    "speculative_num_steps={steps}, speculative_eagle_topk=1, "
    "speculative_num_draft_tokens={tokens}, max_running_requests=8)\n"
    "[2026-01-01 10:01:00] Decode batch, #running-req: 1, #token: 22, token usage: 0.00, "
    "accept len: 2.00, cuda graph: True, gen throughput (token/s): 90.00, #queue-req: 0\n"
)
SAME: dict[str, Any] = {
    "model": "org/m",
    "algorithm": "EAGLE3",
    "draft": "d",
    "steps": 3,
    "tokens": 4,
}


def beside(asked: dict[str, Any], logged: dict[str, Any]) -> Case:
    command = COMMAND.format(**(SAME | asked)) + (
        " --speculative-eagle-topk 1" if "algorithm" not in asked else ""
    )
    log = LOG.format(**(SAME | logged))
    files = [("command.txt", command), ("server.log", log)]
    return build_case([Input(name, text.encode()) for name, text in files])


@pytest.mark.parametrize(
    "logged", [{"steps": 5, "tokens": 6}, {"draft": "e"}, {"model": "org/other"}]
)
def test_a_command_that_does_not_fit_is_told_of_with_both_readings(logged: dict[str, Any]) -> None:
    case = beside({}, logged)
    found = argument_overridden(case)
    assert found is not None
    assert found.confidence == "possible"
    assert "of another start, or something changed the command" in found.statement
    assert {e.source for e in found.evidence} == {"command.txt", "server.log"}
    assert "not the start that command.txt asks for" in case.inputs[1].summary
    values = diagnose(case).values
    assert (values["requested_num_steps"], values["requested_draft_tokens"]) == (3, 4)
    assert values["num_steps"] == logged.get("steps", 3)
    codes = {f.code for f in diagnose(case).findings}
    assert "draft-tokens-overridden" not in codes


def test_a_command_that_fits_is_no_stranger() -> None:
    case = beside({}, {})
    assert strangers(case) == ()
    assert argument_overridden(case) is None
    assert "not the start" not in case.inputs[1].summary


def test_the_steps_of_a_block_draft_become_one_by_rule_and_the_log_confirms_it() -> None:
    asked = {"algorithm": "DFLASH", "steps": 5, "tokens": 16}
    case = beside(asked, {**asked, "steps": 1})
    assert setups(case)[0].launch is not None
    found = argument_overridden(case)
    assert found is not None
    assert found.confidence == "certain"
    assert "speculative_num_steps 5 became 1 (A block drafter" in found.statement
    assert found.settled_by == ""


def test_a_block_draft_with_two_steps_is_of_another_command() -> None:
    asked = {"algorithm": "DFLASH", "steps": 5, "tokens": 16}
    found = argument_overridden(beside(asked, {**asked, "steps": 2}))
    assert found is not None
    assert found.confidence == "possible"
    assert "5 (which the engine's rules make 1) was asked for and 2 is listed" in found.statement


def test_the_baselines_log_beside_a_drafting_command_is_said_and_no_fault() -> None:
    case = beside({}, {"algorithm": None, "steps": None, "tokens": None})
    assert argument_overridden(case) is None
    assert "one of the two is without speculation" in case.inputs[1].summary


@pytest.mark.parametrize(
    ("asked", "listed", "fits"),
    [
        ("org/m", "org/m/", True),
        ("org/m", "/models/org/m", True),
        ("org/m", "/root/.cache/hub/models--org--m/snapshots/0f1", True),
        ("org/m", "org/m2", False),
        ("drafts/v1/final", "drafts/v2/final", False),
    ],
)
def test_a_model_may_be_listed_by_where_it_was_stored(asked: str, listed: str, fits: bool) -> None:
    one, other = ({"model_path": Fact(path, "x")} for path in (asked, listed))
    assert (contradictions(one, other) == ()) is fits
