# ruff: noqa: ISC004 - log lines stay in one piece
"""The rule table and the language of its conditions."""

import ast
import json
import re
import tomllib
from typing import Any

import pytest

from specdebug.sglang import rules, rules_json
from specdebug.sglang.releases import Release
from specdebug.sglang.rules import UNKNOWN, evaluate, printing, table

NAMES: dict[str, Any] = {"steps": 3, "topk": 1, "tokens": None, "backend": UNKNOWN, "on": True}


def test_the_table_that_is_read_is_the_one_that_people_edit() -> None:
    path = rules_json.HERE / "rules.json"
    assert path.read_text(encoding="utf-8") == rules_json.text(), (
        "rules.toml was edited: run python -m specdebug.sglang.rules_json"
    )
    assert json.loads(path.read_text()) == tomllib.loads(path.with_suffix(".toml").read_text())


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("steps + 1", 4),
        ("topk == 1 and tokens != steps + 1", True),
        ("tokens > 1", False),
        ("tokens is None", True),
        ("tokens is not None or not on", False),
        ("topk in [None, 1]", True),
        ("steps not in [None, 1]", True),
        ("12 if tokens is None else tokens", 12),
    ],
)
def test_expressions_mean_what_they_say(expression: str, value: object) -> None:
    assert evaluate(expression, NAMES, {}) == value


@pytest.mark.parametrize(
    ("expression", "settled"),
    [
        ("backend == 'fa3'", UNKNOWN),
        ("topk > 1 and backend == 'fa3'", False),
        ("topk == 1 or backend == 'fa3'", True),
        ("not (backend == 'fa3')", UNKNOWN),
        ("backend not in ['fa3']", UNKNOWN),
        ("'fa3' in [backend]", UNKNOWN),
        ("tokens + 1", UNKNOWN),
        ("1 if backend == 'fa3' else 2", UNKNOWN),
    ],
)
def test_unknown_values_stay_unknown_unless_the_rest_settles_it(
    expression: str, settled: object
) -> None:
    assert evaluate(expression, NAMES, {}) is settled


def test_an_unknown_value_has_no_truth() -> None:
    with pytest.raises(TypeError):
        bool(UNKNOWN)


@pytest.mark.parametrize("expression", ["steps * 2", "steps.real", "[x for x in steps]", "-steps"])
def test_the_language_refuses_what_it_does_not_have(expression: str) -> None:
    with pytest.raises(ValueError, match="does not have"):
        evaluate(expression, NAMES, {})


def test_every_rule_is_complete_and_dated_in_order() -> None:
    seen = set()
    for rule in table().rules:
        assert rule.id not in seen, rule.id
        seen.add(rule.id)
        assert rule.until is None or rule.since <= rule.until, rule.id
        assert rule.since.known, rule.id
        assert rule.why.endswith("."), rule.id
        assert bool(rule.when) or rule.elsewhere or rule.kind == "metric", rule.id
        assert (rule.kind == "reject") == bool(rule.error) or rule.elsewhere, rule.id
        if rule.when:
            ast.parse(rule.when, mode="eval")
        for expression in rule.set.values():
            ast.parse(expression, mode="eval")


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (
            "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when "
            "speculative_eagle_topk == 1",
            "topk1_forces_draft_tokens",
        ),
        (
            "Max running requests is reset to 48 for speculative decoding. You can override this "
            "by explicitly setting --max-running-requests.",
            "max_running_requests_48_logged",
        ),
        (
            "Overlap scheduler is disabled when spec v2 is off or using unsupported speculative "
            "algorithm. You can set env SGLANG_ENABLE_SPEC_V2=True to enable the experimental "
            "overlap scheduler. ",
            "overlap_disabled_unless_spec_v2",
        ),
        (
            "Overlap scheduler is disabled because of using eagle speculative decoding.",
            "overlap_disabled_always",
        ),
        (
            "Overlap scheduler is disabled because of using eagle3 and standalone speculative "
            "decoding.",
            "overlap_disabled_unless_beta_spec",
        ),
        (
            "Overlap spec v2 is enabled by default for eagle/eagle3/standalone speculative "
            "decoding.",
            "spec_v2_by_default",
        ),
        (
            "Mixed chunked prefill is disabled because of using eagle speculative decoding.",
            "mixed_chunk_disabled",
        ),
        (
            "ValueError: Spec v2 currently only supports topk = 1 for speculative decoding.",
            "spec_v2_needs_topk1",
        ),
    ],
)
def test_a_printed_line_leads_to_its_rule(line: str, rule: str) -> None:
    assert rule in [found.id for found in printing(line)]


def test_other_lines_lead_to_no_rule() -> None:
    assert printing("The server is fired up and ready to roll!") == ()
    assert printing("Max running requests is 48.") == ()


def test_a_rule_holds_between_its_releases() -> None:
    rule = next(rule for rule in table().rules if rule.id == "max_running_requests_48_silent")
    held = [rule.holds(Release.parse(text)) for text in ("0.4.4.post1", "0.4.5", "0.5.3", "0.5.4")]
    assert held == [False, True, True, False]


def test_no_printed_line_is_missed_by_the_quick_look() -> None:
    """Each pattern must force one of the quick signs, or its lines would never be tried."""
    for rule in table().rules:
        if rule.log and not rule.elsewhere:
            for part in re.split(r"(?<!\()\|(?![^(]*\))", rule.log):
                assert any(sign in part for sign in rules._SIGNS), (rule.id, part)
