"""Arguments as rows: requested beside effective, with who decided and what changed."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from experiments import arguments
from experiments.arguments import Effective, Setting
from experiments.models import ConfigEntry, Run
from specdebug.sglang.releases import Release

ASKED = {
    "model_path": "t",
    "speculative_algorithm": "EAGLE3",
    "speculative_draft_model_path": "d",
    "speculative_num_steps": 1,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 16,
}
RELEASE = Release.parse("0.5.10.post1")


def entries(asked: dict[str, Any], seen: dict[str, Any] | None) -> dict[str, ConfigEntry]:
    effective = None if seen is None else Effective(seen, "server.log", 60)
    rows = arguments.entries(Run(), asked, effective, release=RELEASE)
    return {row.key: row for row in rows}


def test_flags_become_the_engines_own_names() -> None:
    asked = arguments.requested_of(shlex.split("--tp 8 --speculative-num-steps=3 --enable-metrics"))
    assert asked == {"tp_size": 8, "speculative_num_steps": 3, "enable_metrics": True}


def test_a_value_in_force_as_asked_is_explicit() -> None:
    row = entries(ASKED, {"speculative_num_steps": 1})["speculative_num_steps"]
    assert (row.origin, row.why, row.line, row.differs) == ("explicit", "", 60, False)


def test_a_value_that_the_engine_changed_is_an_override_with_its_rule() -> None:
    row = entries(ASKED, {"speculative_num_draft_tokens": 2})["speculative_num_draft_tokens"]
    assert (row.origin, row.differs) == ("override", True)
    assert "topk 1" in row.why


def test_a_change_that_no_rule_explains_is_said_to_be_unexplained() -> None:
    row = entries(ASKED, {"speculative_num_draft_tokens": 7})["speculative_num_draft_tokens"]
    assert row.origin == "override"
    assert "no known rule" in row.why


def test_a_value_nobody_asked_for_is_a_default() -> None:
    row = entries({"model_path": "t"}, {"page_size": 1})["page_size"]
    assert (row.was_requested, row.origin, row.effective) == (False, "default", 1)


def test_without_a_list_of_the_engine_values_are_predicted_and_marked() -> None:
    row = entries(ASKED, None)["speculative_num_draft_tokens"]
    assert (row.effective, row.predicted, row.effective_known) == (2, True, False)


def test_arguments_that_mean_nothing_here_are_left_in_the_servers_answer() -> None:
    rows = entries(ASKED, {"speculative_num_steps": 1, "log_requests_level": 2, "port": 30000})
    assert "log_requests_level" not in rows
    assert "port" not in rows


def test_a_run_without_a_draft_says_so() -> None:
    row = entries({"model_path": "t"}, {"speculative_algorithm": None})["speculative_algorithm"]
    assert (row.effective, row.effective_known) == (None, True)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("a", 1, 2)]),
        ({}, {"a": 2}, [("a", None, 2)]),
        ({"a": None}, {}, []),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [("a.c", 2, 3)]),
        ({"a": [1, 2]}, {"a": [2, 1]}, [("a", [1, 2], [2, 1])]),
        ({"port": 1, "random_seed": 5}, {"port": 2, "random_seed": 6}, []),
    ],
)
def test_differences_are_named_by_their_path(
    before: dict[str, Any], after: dict[str, Any], changed: list[Any]
) -> None:
    assert list(arguments.difference(before, after)) == changed


def test_changes_have_their_kind() -> None:
    before = Setting({"tp_size": 1}, {}, {"torch": "1"}, {"hidden_size": 64})
    after = Setting({"tp_size": 8}, {"A": "1"}, {"torch": "2"}, {"hidden_size": 128})
    rows = arguments.changes(Run(), before, after)
    assert [(str(r.kind), r.key) for r in rows] == [
        ("argument", "tp_size"),
        ("draft-config", "hidden_size"),
        ("environment", "A"),
        ("version", "torch"),
    ]


def test_a_draft_config_that_one_side_lacks_is_no_change() -> None:
    bare, full = Setting({}, {}, {}, None), Setting({}, {}, {}, {"hidden_size": 64})
    assert arguments.changes(Run(), bare, full) == []
