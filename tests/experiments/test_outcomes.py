"""Figures of an outcome that are derived before a row is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from experiments import outcomes
from experiments.models import Run
from workers import plan

OUTCOME = plan.RunOutcome.without_measuring("done", "", host="h", started_at=1.0, ended_at=9.0)


def request(completion: int, verifies: int, histogram: tuple[int, ...]) -> plan.Request:
    return plan.Request("p", 1.0, 5, completion, verifies, histogram)


def test_at_a_request_rate_a_step_is_shared_by_the_requests_in_flight() -> None:
    """Two requests of one second each within four seconds: half a request at a time."""
    repeat = plan.Repeat(0, 0.0, 4.0, (request(101, 50, (0, 50)),) * 2)
    paced = Run(plan={"workload": {"concurrency": 8, "request_rate": 0.5}})
    assert outcomes.in_flight(paced, repeat) == pytest.approx(0.5)
    row = outcomes.repeat_row(paced, repeat)
    assert row.step_ms == pytest.approx(1000 * 2.0 * 0.5 / (202 / 4))
    full = Run(plan={"workload": {"concurrency": 8}})
    assert outcomes.in_flight(full, repeat) == 8.0


def test_one_run_has_five_accept_lengths_each_with_its_formula() -> None:
    requests = (request(101, 50, (0, 50)), request(11, 10, (10,)))
    info: dict[str, Any] = {
        "version": "0.5.10.post1",
        "tp_size": 1,
        "speculative_algorithm": "EAGLE3",
        "internal_states": [{"avg_spec_accept_length": 1.9}],
    }
    measured = replace(OUTCOME, repeats=(plan.Repeat(0, 0.0, 4.0, requests),), server_info=info)
    found = {one["name"]: one for one in outcomes.lengths(measured)}
    assert found["tokens after the first"]["value"] == pytest.approx(110 / 60)
    assert found["tokens per verification"]["value"] == pytest.approx(112 / 60)
    assert found["mean of requests"]["value"] == pytest.approx((101 / 50 + 11 / 10) / 2)
    assert found["histogram"]["value"] == pytest.approx(1 + 50 / 60)
    assert found["server average"]["value"] == 1.9
    assert all(one["formula"] and one["verifies"] == 60 for one in found.values())


def test_without_a_draft_there_is_no_accept_length() -> None:
    plain = plan.Repeat(0, 0.0, 4.0, (plan.Request("p", 1.0, 5, 11),))
    info = {"internal_states": [{"avg_spec_accept_length": 1.0}], "tp_size": 1}
    assert outcomes.lengths(replace(OUTCOME, repeats=(plain,), server_info=info)) == []
    assert outcomes.lengths(OUTCOME) == []
