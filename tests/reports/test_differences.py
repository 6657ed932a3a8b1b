"""What changed between two versions: named rows, both ways."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from experiments.reports import document
from experiments.reports.differences import Difference, differences
from experiments.reports.document import Document


@pytest.fixture
def bodies(kimi_document: Document) -> tuple[Any, Any]:
    body = json.loads(document.canonical(kimi_document.body))
    return body, copy.deepcopy(body)


def test_equal_documents_have_no_differences(bodies: Any) -> None:
    assert differences(*bodies) == ()


def test_an_inserted_run_is_one_addition_and_changes_no_other(bodies: Any) -> None:
    old, new = bodies
    runs = new["post_mortem"]["runs"]
    runs.insert(1, {**runs[1], "label": "R9", "title": "in between"})
    found = differences(old, new)
    assert [(d.part, d.what, d.name) for d in found] == [("Runs", "added", "R9")]
    back = differences(new, old)
    assert [(d.part, d.what, d.name) for d in back] == [("Runs", "removed", "R9")]


def test_a_fixed_finding_shows_before_and_after(bodies: Any) -> None:
    old, new = bodies
    bug = next(b for b in new["post_mortem"]["bugs"] if b["code"] == "aux-layer-mismatch")
    bug["state"] = "fixed"
    (found,) = differences(old, new)
    assert (found.part, found.what, found.name) == ("Findings", "changed", "aux-layer-mismatch")
    assert found.before.startswith("critical, open")
    assert found.after.startswith("critical, fixed")


def test_changed_figures_state_title_and_choices_are_told(bodies: Any) -> None:
    old, new = bodies
    new["post_mortem"]["runs"][3]["accept_len"] = 2.2
    new["post_mortem"]["state"] = "resolved"
    new["template"] = "short"
    new["remarks"] = [{"section": "runs", "author": "ada", "text": "new"}]
    found = {(d.part, d.name): d for d in differences(old, new)}
    assert "accept length 2.20" in found["Runs", "R3"].after
    assert "accept length not known" in found["Runs", "R3"].before
    assert found["Investigation", "state"] == Difference(
        "Investigation", "changed", "state", "open", "resolved"
    )
    assert found["Remarks", "runs, by ada"].what == "added"
    assert found["Choices", "template"].after == "short"


def test_when_it_was_made_is_no_difference(bodies: Any) -> None:
    old, new = bodies
    new["as_of"] = "2030-01-01T00:00:00+00:00"
    new["stamp"] = {"number": 2, "published_by": "ada", "published_at": "2030"}
    assert differences(old, new) == ()
