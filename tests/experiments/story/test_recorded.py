"""The recorded investigation: what the library draws from its four figures and its arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings

from experiments import checkup, lifecycle, queries
from experiments.models import Finding, FindingEvent, Investigation, Run
from experiments.story.recorded import FILE, load_story


@pytest.fixture(scope="module")
def loaded(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The story loaded once for all tests of this file, each of which takes its changes back."""
    blobs = tmp_path_factory.mktemp("story") / "blobs"
    with django_db_blocker.unblock(), override_settings(BLOB_DIR=blobs):
        whole = transaction.atomic()
        whole.__enter__()
        load_story()
        try:
            yield blobs
        finally:
            transaction.set_rollback(True)
            whole.__exit__(None, None, None)


@pytest.fixture
def story(loaded: Path, db: None, settings: Any) -> Investigation:
    settings.BLOB_DIR = loaded
    return Investigation.objects.get()


@pytest.fixture
def page(story: Investigation) -> queries.InvestigationPage:
    return queries.investigation_page(story.slug)


def finding(code: str) -> Finding:
    return Finding.objects.get(code=code)


def life(code: str) -> list[tuple[str, str]]:
    return [(e.kind, e.run.label if e.run else "") for e in finding(code).events.all()]


def test_no_finding_and_no_verdict_is_written_into_the_file() -> None:
    text = FILE.read_text()
    assert not {"findings", "verdicts", "finding", "verdict"} & _keys(json.loads(text))


def _keys(data: object) -> set[str]:
    if isinstance(data, dict):
        return set(data) | {k for value in data.values() for k in _keys(value)}
    if isinstance(data, list):
        return {k for value in data for k in _keys(value)}
    return set()


def test_loading_twice_changes_nothing(story: Investigation) -> None:
    findings, events = Finding.objects.count(), FindingEvent.objects.count()
    call_command("load_story", stdout=StringIO())
    assert Investigation.objects.count() == 1
    assert (Finding.objects.count(), FindingEvent.objects.count()) == (findings, events)


def test_looking_again_changes_nothing(story: Investigation) -> None:
    before = list(Finding.objects.values_list("code", "state", "statement"))
    events = FindingEvent.objects.count()
    for run in Run.objects.order_by("-number"):
        checkup.recheck(run)
    assert list(Finding.objects.values_list("code", "state", "statement")) == before
    assert FindingEvent.objects.count() == events


def test_all_figures_are_marked_as_recorded_and_single(page: queries.InvestigationPage) -> None:
    runs = page.dossier.runs
    assert [r.run.label for r in runs] == ["R0", "R1", "R2", "R3"]
    assert all(r.run.recorded and r.figures.n == 1 for r in runs)
    assert not any(r.run.check_problem for r in runs)


def test_the_goal_is_missed_by_a_third(page: queries.InvestigationPage) -> None:
    assert page.goal.met is False
    assert page.goal.ratio == pytest.approx(0.631, abs=0.001)
    assert page.goal.gap == pytest.approx(33.2)
    with pytest.raises(lifecycle.Refused, match=r"56\.8 against the baseline of 90"):
        lifecycle.resolve(investigation=page.investigation)


def test_the_override_is_found_in_r1_and_verified_as_fixed_in_r2(story: Investigation) -> None:
    assert life("draft-tokens-overridden") == [("opened", "R1"), ("fixed", "R2")]
    assert finding("draft-tokens-overridden").state == "fixed"
    run = Run.objects.get(number=1)
    tokens = run.config.get(key="speculative_num_draft_tokens")
    assert (tokens.requested, tokens.effective, tokens.origin) == (16, 2, "override")


def test_the_layers_are_wrong_and_whether_r3_mended_them_is_open(story: Investigation) -> None:
    assert life("aux-layer-mismatch") == [("opened", "R1"), ("seen", "R2")]
    assert finding("aux-layer-mismatch").state == "open"
    assert finding("aux-layer-mismatch").severity == "critical"
    untried = {u["code"]: u["missing"] for u in Run.objects.get(number=3).untried}
    assert "patched" in untried["aux-layer-mismatch"]
    assert not Finding.objects.filter(code="aux-layer-not-capturable").exists()


def test_what_the_people_did_not_see_comes_out_of_the_figures(story: Investigation) -> None:
    words = {
        "slower-than-baseline": "-39.1 %",
        "speculation-cannot-win": "2.54",
        "step-overhead-unexplained": "16.2 ms",
        "acceptance-below-training": "3.92",
        "acceptance-collapses": "0.33",
        "aux-layer-convention": "0.5.13",
        "below-break-even": "3.66",
    }
    said = {code: finding(code).statement for code in words}
    assert [code for code in words if words[code] not in said[code]] == []


def test_the_window_of_two_is_read_off_length_and_rate_and_the_window_of_sixteen_is_as_asked(
    story: Investigation,
) -> None:
    window = finding("effective-window-inferred")
    assert life("effective-window-inferred") == [("opened", "R1"), ("fixed", "R2")]
    assert window.state == "fixed"


def test_a_cost_seen_at_two_depths_is_not_called_fixed_by_a_run_without_a_figure(
    story: Investigation,
) -> None:
    assert life("step-overhead-unexplained") == [("opened", "R2")]
    assert finding("step-overhead-unexplained").state == "open"


def test_every_hypothesis_has_its_two_verdicts(page: queries.InvestigationPage) -> None:
    verdicts = {
        facts.hypothesis.label: facts.verdict
        and (facts.verdict.run.label, facts.verdict.applied, facts.verdict.outcome)
        for facts in page.dossier.hypotheses
    }
    assert verdicts == {
        "H1": ("R2", "yes", "refuted"),
        "H2": None,
        "H3": ("R3", "unknown", "undecided"),
    }


def test_the_timeline_keeps_the_order_of_the_events(page: queries.InvestigationPage) -> None:
    rows: list[tuple[float, str]] = [
        *((r.run.position, r.run.label) for r in page.dossier.runs),
        *((h.hypothesis.position, h.hypothesis.label) for h in page.dossier.hypotheses),
        *((e.position, e.kind) for e in page.dossier.events),
    ]
    order = [name for _, name in sorted(rows)]
    assert order[:5] == ["R0", "R1", "observation", "belief", "H1"]
    assert [n for n in order if n[0] in "RH"] == ["R0", "R1", "H1", "R2", "H2", "H3", "R3"]


def test_changes_are_told_run_by_run(page: queries.InvestigationPage) -> None:
    changes = {
        r.run.label: {c.key: (c.before, c.after) for c in r.changes} for r in page.dossier.runs
    }
    assert changes["R0"] == {}
    assert changes["R2"] == {
        "speculative_num_steps": (1, 15),
        "speculative_num_draft_tokens": (2, 16),
    }
    ids = "eagle_config.eagle_aux_hidden_state_layer_ids"
    assert changes["R3"][ids] == ([2, 30, 58], [-1, 2, 30])
    patch = Run.objects.get(number=3).changes.get(kind="patch")
    assert patch.key.endswith("deepseek_v2.py")


def test_a_finding_set_aside_stays_aside_when_looked_at_again(story: Investigation) -> None:
    row = finding("aux-layer-convention")
    lifecycle.set_finding_aside(finding=row, by="Ada", reason="pinned")
    checkup.recheck(Run.objects.get(number=1))
    row.refresh_from_db()
    assert (row.state, row.set_aside_by) == ("set-aside", "Ada")


def test_a_fix_that_a_person_takes_back_stays_taken_back(story: Investigation) -> None:
    row = finding("draft-tokens-overridden")
    lifecycle.reopen_finding(finding=row, by="Ada", reason="the log was another server's")
    checkup.recheck(Run.objects.get(number=2))
    row.refresh_from_db()
    assert row.state == "open"
