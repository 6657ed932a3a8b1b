"""Output that no figure can rest on: trees over pages on the releases that let them through."""

from __future__ import annotations

import pytest

from specdebug.diagnosis.case import Case, Input, build_case
from specdebug.diagnosis.checks.outputs import degenerate_output

COMMAND = (
    "python -m sglang.launch_server --model-path m --speculative-algorithm {algorithm} "
    "--speculative-num-steps 3 --speculative-eagle-topk {topk} --speculative-num-draft-tokens 8 "
    "--page-size {page} {more}"
)


def asked(
    release: str | None, topk: int = 4, page: int = 16, more: str = "", algorithm: str = "EAGLE"
) -> Case:
    text = COMMAND.format(algorithm=algorithm, topk=topk, page=page, more=more)
    return build_case([Input("command.txt", text.encode())], engine_version=release)


@pytest.mark.parametrize("release", ["0.4.9", "0.4.10", "0.5.0rc0", "0.5.1"])
@pytest.mark.parametrize("algorithm", ["EAGLE", "EAGLE3", "NEXTN"])
def test_a_tree_over_pages_that_nothing_stops_is_named(release: str, algorithm: str) -> None:
    found = degenerate_output(asked(release, more="--attention-backend fa3", algorithm=algorithm))
    assert found is not None
    assert found.severity == "high"
    assert "topk 4 with page size 16" in found.statement
    assert "flashinfer" not in found.statement
    assert len(found.evidence) == 3


def test_a_backend_left_to_051_may_refuse_it_and_that_is_said() -> None:
    found = degenerate_output(asked("0.5.1"))
    assert found is not None
    assert "if the attention backend it chooses is flashinfer" in found.statement


@pytest.mark.parametrize("release", ["0.4.8", "0.5.2", "0.5.9", "0.5.13", None])
def test_releases_that_change_or_refuse_it_are_judged_elsewhere(release: str | None) -> None:
    assert degenerate_output(asked(release)) is None


def test_a_chain_and_pages_of_one_token_are_in_order() -> None:
    assert degenerate_output(asked("0.4.10", topk=1)) is None
    assert degenerate_output(asked("0.4.10", page=1)) is None
    assert degenerate_output(asked("0.5.1", more="--attention-backend flashinfer")) is None
