"""Whole cases from files: each folder's answer must hold what its expect.json asks for."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from specdebug.diagnosis.case import Input, build_case
from specdebug.diagnosis.diagnose import Diagnosis, diagnose
from specdebug.diagnosis.findings import CATALOGUE

CASES = sorted(p for p in (Path(__file__).parent / "data" / "cases").iterdir() if p.is_dir())


@cache
def answer(folder: Path) -> tuple[dict[str, Any], Diagnosis]:
    expect = json.loads((folder / "expect.json").read_text())
    files = [p for p in sorted(folder.iterdir()) if p.name != "expect.json"]
    return expect, diagnose(build_case([Input(p.name, p) for p in files]))


def close(want: Any, got: Any) -> bool:
    """Within 2 % or half a unit of the last digit written; lists member by member."""
    if isinstance(want, list):
        return (
            isinstance(got, list)
            and len(got) == len(want)
            and all(close(a, b) for a, b in zip(want, got, strict=True))
        )
    if isinstance(want, str) or got is None:
        return bool(want == got)
    digits = len(repr(want).partition(".")[2])
    return bool(abs(want - got) <= max(0.02 * abs(want), 0.5 * 10**-digits))


def test_the_cases_are_there() -> None:
    assert len(CASES) >= 40


@pytest.mark.parametrize("folder", CASES, ids=lambda p: p.name)
def test_the_answer_holds_what_the_case_asks_for(folder: Path) -> None:
    expect, found = answer(folder)
    codes = {f.code for f in found.findings}
    assert set(expect["must"]) - codes == set()
    for group in expect["any_of"]:
        assert codes & set(group), group
    assert codes & set(expect["must_not"]) == set()
    wrong = {
        name: (want, found.values.get(name))
        for name, want in expect["values"].items()
        if not close(want, found.values.get(name))
    }
    assert wrong == {}
    assert {i.name for i in found.unusable} == set(expect.get("refuse", []))


@pytest.mark.parametrize("folder", CASES, ids=lambda p: p.name)
def test_every_finding_says_what_was_seen_where_and_what_to_do(folder: Path) -> None:
    _, found = answer(folder)
    for finding in found.findings:
        assert finding.statement.rstrip().endswith((".", "'", ")")) or ":" in finding.statement
        assert finding.evidence, finding.code
        assert all(e.source and e.text for e in finding.evidence), finding.code
        if finding.severity != "info":
            assert finding.fix, finding.code
        if finding.confidence != "certain":
            assert finding.settled_by, finding.code


def test_every_code_but_a_few_is_shown_by_some_case() -> None:
    shown: set[str] = set()
    for folder in CASES:
        expect, _ = answer(folder)
        shown |= set(expect["must"])
    # These need a live process or inputs that no case folder holds; their checks have unit tests.
    elsewhere = {"start-timeout", "watchdog", "port-in-use", "gpu-busy", "missing-model"}
    elsewhere |= {"gpu-throttled", "gpu-lost", "gpu-memory-errors"}  # samples of a measured run
    quiet = {"too-few-samples", "warm-up-counted", "acceptance-below-reference"}
    assert set(CATALOGUE) - shown - elsewhere - quiet <= {
        "below-break-even",
        "draft-too-deep",
        "batch-too-large",
    }


HEALTHY = {
    "m2_baseline_nospec": (".cmd", "_generate.json", "_server.log", "_server_info.json"),
    "m2_eagle3_steps15_draft16": (".cmd", "_server.log", "_server_info.json"),
    "m2_eagle3_topk2_steps3_draft8": (".cmd", "_generate.json", "_server.log"),
    "base_0.5.10.post1": ("_server.log", "_server_info.json", "_metrics.txt"),
}
FAULTY = {
    "m2_eagle3_steps1_draft16": "draft-tokens-overridden",
    "m2_eagle3_tp2_steps3_draft16": "draft-tokens-overridden",
    "model1_eagle3_steps1": "dead-draft",
    "m2_eagle3_aux_minus1_CRASH": "aux-layer-not-capturable",
    "eagle3_0.5.10.post1_aux_default_6layers_shape_mismatch": "aux-layer-not-capturable",
    "tp2_without_threads_bind_FAILED": "server-died",
}


def captures(shared: Path) -> Path:
    return shared / "samples" / "sglang-0.5.10.post1-cpu"


@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_a_real_healthy_capture_has_no_fault_above_info(shared: Path, name: str) -> None:
    files = [captures(shared) / f"{name}{end}" for end in HEALTHY[name]]
    found = diagnose(build_case([Input(p.name, p) for p in files]))
    assert found.faults == ()
    assert found.unusable == ()


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_a_real_faulty_capture_shows_its_fault(shared: Path, name: str) -> None:
    files = [p for p in sorted(captures(shared).glob(f"{name}*")) if p.suffix != ".json"]
    found = diagnose(build_case([Input(p.name, p) for p in files]))
    assert FAULTY[name] in {f.code for f in found.findings}


NAMES = {
    *("requested_draft_tokens", "effective_draft_tokens", "window_candidates", "accept_len"),
    *("drafts", "step_ms", "baseline_step_ms", "break_even_accept_len", "ceiling_tok_s"),
    *("ms_per_draft_step", "expected_accept_len", "first_position_acceptance"),
    *("conditional_after_first", "captured_layers"),
}


def test_every_figure_that_is_promised_is_given_where_it_can_be_computed() -> None:
    seen = {name for folder in CASES for name in answer(folder)[1].values}
    assert seen >= NAMES
    (story,) = [folder for folder in CASES if folder.name == "09-kimi-k25-story"]
    assert NAMES - set(answer(story)[1].values) == {"window_candidates"}


def test_every_figure_of_an_answer_is_explained() -> None:
    page = (Path(__file__).parents[1] / "docs" / "check-json.md").read_text()
    told = set(re.findall(r"`([a-z0-9_]+)`", page))
    for folder in CASES:
        for name in answer(folder)[1].values:
            base = re.sub(r"_\d+_\d+_\d+\w*$", "_0_5_13", name).removeprefix("requested_")
            assert {name, base} & told, (folder.name, name)
