from pathlib import Path
from typing import Any

import pytest

from specdebug.diagnosis.checks.registry import CHECKS
from specdebug.diagnosis.diagnose import diagnose
from specdebug.diagnosis.facts import Training
from specdebug.diagnosis.findings import (
    CATALOGUE,
    CONFIDENCES,
    SEVERITIES,
    Evidence,
    Finding,
    is_fault,
)


def test_every_code_has_one_check_and_every_check_a_code() -> None:
    assert [c.code for c in CHECKS] == list(dict.fromkeys(c.code for c in CHECKS))
    assert {c.code for c in CHECKS} == set(CATALOGUE)


def test_every_code_is_explained_in_full_sentences() -> None:
    for entry in CATALOGUE.values():
        assert len(entry.explanation) > 80, entry.code
        assert entry.explanation.endswith("."), entry.code
        assert "  " not in entry.explanation, entry.code
        assert len(entry.title) < 70, entry.code


def test_an_unknown_code_cannot_be_found() -> None:
    with pytest.raises(ValueError, match="unknown finding code"):
        Finding("no-such-code", "high", "certain", "x")


def test_severity_and_confidence_are_closed_sets() -> None:
    with pytest.raises(ValueError, match="grave"):
        Finding("dead-draft", "grave", "certain", "x")  # type: ignore[arg-type]


def test_everything_above_info_is_a_fault() -> None:
    assert is_fault(Finding("dead-draft", "medium", "certain", "x"))
    assert not is_fault(Finding("dead-draft", "info", "certain", "x"))


def test_a_finding_as_json_has_the_documented_keys() -> None:
    finding = Finding("dead-draft", "high", "likely", "s", (Evidence("a.log", 3, "t"),), "f", "b")
    assert finding.as_dict() == {
        "code": "dead-draft",
        "severity": "high",
        "confidence": "likely",
        "statement": "s",
        "evidence": [{"source": "a.log", "line": 3, "text": "t"}],
        "fix": "f",
        "settled_by": "b",
    }


def test_the_document_says_what_the_command_line_explains() -> None:
    text = (Path(__file__).parents[2] / "docs" / "findings.md").read_text()
    for entry in CATALOGUE.values():
        assert f"| `{entry.code}` | {entry.title} | {entry.explanation} |" in text


def test_findings_come_by_severity_and_the_surest_first(make: Any) -> None:
    case = make.case(
        runs=make.story_rows(),
        requested=make.asked(1, 1, 16),
        draft_config=make.kimi_draft([2, 30, 58]),
        target_config=make.kimi_target,
        training=Training(val_accuracy=0.747, features=("embed", 3, 31)),
        engine_version="0.5.9",
    )
    found = diagnose(case).findings
    ranks = [(SEVERITIES.index(f.severity), CONFIDENCES.index(f.confidence)) for f in found]
    assert ranks == sorted(ranks)
    assert len({severity for severity, _ in ranks}) > 2
    assert found[0].code == "aux-layer-mismatch"
