from pathlib import Path

import pytest

from specdebug.diagnosis.checks.registry import CHECKS
from specdebug.diagnosis.findings import CATALOGUE, Evidence, Finding, is_fault


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
