"""Sweeps and comparisons from the pages: planned, looked at first, watched, stopped, resumed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from experiments import dispatch, groups, lifecycle
from experiments.models import Repeat, Run, RunGroup
from workers.plan import Workload

DRAFT = (
    *("--model-path", "m", "--speculative-algorithm", "EAGLE3"),
    *("--speculative-draft-model-path", "d", "--speculative-eagle-topk", "1"),
    *("--speculative-num-steps", "3"),
)


@pytest.fixture(autouse=True)
def _unsent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_send", lambda *_, **__: True)


@pytest.fixture
def run(db: None) -> Run:
    row = lifecycle.create_investigation(title="Slow", question="Why?")
    return lifecycle.add_run(investigation=row, title="three steps", server_args=DRAFT)


def address(run: Run, what: str) -> str:
    return f"{run.get_absolute_url()}{what}/"


def finish(group: RunGroup, speeds: list[float]) -> None:
    for speed in speeds:
        run = group.runs.get(state=Run.State.QUEUED)
        Run.objects.filter(pk=run.pk).update(state=Run.State.DONE, ended_at=timezone.now())
        for index in range(3):
            Repeat.objects.create(run=run, index=index, tok_s=speed + index / 10)
        groups.advance_after(run.pk)
    group.refresh_from_db()


def test_what_would_be_measured_is_shown_before_anything_is_queued(
    browser: Client, run: Run
) -> None:
    asked = {"title": "depth", "steps": "1, 3", "draft_tokens": "2, 16", "repeats": "2"}
    answer = browser.post(address(run, "sweep"), {**asked, "then": "look"})
    page = answer.content.decode()
    assert "2 settings would be measured, 2 never run" in page
    assert "With topk 1 the draft is one chain" in page
    assert not RunGroup.objects.exists()
    answer = browser.post(address(run, "sweep"), {**asked, "then": "queue", "stop_early": "on"})
    group = RunGroup.objects.get()
    assert answer["Location"] == group.get_absolute_url()
    assert group.plan["common"]["workload"]["repeats"] == 2
    assert group.runs.get().state == "queued"


def test_what_the_engine_of_the_run_cannot_do_is_said_before_it_is_queued(
    browser: Client, run: Run
) -> None:
    Run.objects.filter(pk=run.pk).update(engine="reference")
    asked = {"title": "trees", "steps": "3", "topk": "1, 4", "repeats": "1"}
    page = browser.post(address(run, "sweep"), {**asked, "then": "look"}).content.decode()
    assert "1 setting would be measured, 1 never run" in page
    assert "the reference engine drafts chains only" in page


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "one of both"),
        ({"steps": "1", "listed": "steps=2"}, "one of both"),
        ({"more": "page-size 1"}, "write it as --flag: 1, 2"),
        ({"listed": "steps 2"}, "Line 1: write it as steps=3"),
        ({"listed": "depth=2", "then": "queue"}, "is no axis"),
        ({"steps": ", ".join(map(str, range(1, 202)))}, "201 settings"),
        ({"steps": "1", "repeats": "0"}, "greater than or equal to 1"),
    ],
)
def test_bad_values_are_told_in_a_sentence_and_queue_nothing(
    browser: Client, run: Run, values: dict[str, str], said: str
) -> None:
    answer = browser.post(
        address(run, "sweep"), {"title": "x", "repeats": "1", "then": "queue", **values}
    )
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not RunGroup.objects.exists()


def test_a_sweep_shows_its_best_its_range_and_what_was_never_run(browser: Client, run: Run) -> None:
    settings = [{"steps": n} for n in (1, 2, 3)] + [{"steps": 3, "draft_tokens": 9}]
    group = groups.add_sweep(
        investigation=run.investigation,
        title="depth",
        common=groups.Common("reference", DRAFT, Workload(), {}),
        settings=settings,
    )
    page = browser.get(group.get_absolute_url()).content.decode()
    assert "0 of 3 points measured, 1 never run" in page
    assert "Under way:" in page
    finish(group, [50.0, 51.0, 70.0])
    answer = browser.get(group.get_absolute_url())
    page = answer.content.decode()
    assert "<b>Best:</b> steps 2" in page
    assert 'class="plot"' in page
    assert "Never run" in page
    csv = browser.get(f"{group.get_absolute_url()}course.csv")
    assert csv.status_code == 200
    assert b"70.1" in csv.content
    assert browser.get(f"{group.get_absolute_url()}course.svg").status_code == 200
    listed = browser.get(f"/i/{run.investigation.slug}/sweeps/").content.decode()
    assert "S1" in listed


def test_two_axes_are_a_map(browser: Client, run: Run) -> None:
    group = groups.add_sweep(
        investigation=run.investigation,
        title="depth and load",
        common=groups.Common("reference", DRAFT, Workload(), {}),
        settings=[{"steps": n, "concurrency": c} for n in (1, 3) for c in (1, 4)],
    )
    finish(group, [50.0, 51.0, 52.0])
    page = browser.get(group.get_absolute_url()).content.decode()
    assert 'class="heat"' in page
    assert page.count('class="shade-') == 3
    assert browser.get(f"{group.get_absolute_url()}course.csv").status_code == 404
    csv = browser.get(f"{group.get_absolute_url()}map.csv").content.decode().splitlines()
    assert csv[0].endswith('"mean, tok/s",n,how it stands')
    assert len(csv) == 1 + page.count('<td class="shade-') + page.count('<td class="none"')
    svg = browser.get(f"{group.get_absolute_url()}map.svg")
    assert svg["Content-Type"] == "image/svg+xml"
    assert b"shade-9" in svg.content
    assert browser.get(f"{group.get_absolute_url()}map.exe").status_code == 404


def test_a_sweep_is_stopped_and_resumed_by_a_button(browser: Client, run: Run) -> None:
    group = groups.add_sweep(
        investigation=run.investigation,
        title="depth",
        common=groups.Common("reference", DRAFT, Workload(), {}),
        settings=[{"steps": 1}, {"steps": 2}],
    )
    for _ in range(2):
        browser.post(f"{group.get_absolute_url()}stop/")
    group.refresh_from_db()
    assert (group.state, group.reason) == ("stopped", "stopped by ada")
    assert group.runs.get().state == "cancelled"
    browser.post(f"{group.get_absolute_url()}resume/")
    group.refresh_from_db()
    assert group.state == "running"
    assert group.runs.count() == 2


def test_runs_are_measured_in_turns_beside_others(browser: Client, run: Run) -> None:
    other = lifecycle.add_run(
        investigation=run.investigation, title="plain", server_args=["--model-path", "m"]
    )
    page = browser.get(address(run, "turns")).content.decode()
    assert str(other) in page
    answer = browser.post(
        address(run, "turns"), {"title": "t", "variants": [str(other.pk)], "rounds": "2"}
    )
    group = RunGroup.objects.get()
    assert answer["Location"] == group.get_absolute_url()
    assert group.plan["order"] == [0, 1, 0, 1, 0]
    finish(group, [50.0, 60.0, 50.0, 60.0, 40.0])
    page = browser.get(group.get_absolute_url()).content.decode()
    assert "drift</b>" in page
    assert "as R1" in page


def test_a_run_without_arguments_cannot_be_swept(browser: Client, story: Any) -> None:
    assert browser.get(address(story.baseline, "sweep")).status_code == 404
    assert browser.get("/i/none/sweeps/").status_code == 404
    assert browser.get("/i/none/sweeps/1/").status_code == 404


def test_a_run_says_before_its_start_what_will_become_of_its_arguments(
    browser: Client, run: Run
) -> None:
    asked = lifecycle.add_run(
        investigation=run.investigation,
        title="16 draft tokens",
        server_args=[*DRAFT, "--speculative-num-draft-tokens", "16"],
        strict=True,
    )
    page = browser.get(asked.get_absolute_url()).content.decode()
    assert "Preflight: will not run as asked" in page
    assert "strict: not measured unless" in page
    assert "draft-tokens-overridden" in page
    fine = browser.get(run.get_absolute_url()).content.decode()
    assert "Preflight: nothing speaks against it" in fine
    refused = lifecycle.add_run(
        investigation=run.investigation, title="no topk", server_args=[*DRAFT[:6], *DRAFT[8:]]
    )
    page = browser.get(refused.get_absolute_url()).content.decode()
    assert "Preflight: will not start" in page
    assert "--speculative-eagle-topk" in page


def test_a_run_lists_its_accept_lengths_and_what_it_was_made_of(browser: Client, run: Run) -> None:
    group = groups.add_sweep(
        investigation=run.investigation,
        title="depth",
        common=groups.Common("reference", DRAFT, Workload(), {}),
        settings=[{"steps": 1}],
    )
    made = group.runs.get()
    formula = "(completion tokens - requests) / verifications"
    Run.objects.filter(pk=made.pk).update(
        state=Run.State.DONE,
        ended_at=timezone.now(),
        accept_lengths=[
            {"name": "tokens after the first", "value": 2.2, "formula": formula, "verifies": 345}
        ],
        provenance={
            "source": {
                "folder": "/src/sglang",
                "commit": "abc",
                "described": "v0.5.9-3-gabc",
                "changed": 2,
                "untracked": 0,
            },
            "target": {
                "path": "org/model",
                "config_sha256": "0123456789abcdef" * 4,
                "headers_sha256": {"model.safetensors": "f" * 64},
            },
            "machine": {"kernel": "6.1", "memory_gib": 8.0},
        },
    )
    page = browser.get(made.get_absolute_url()).content.decode()
    assert "1 accept length of this run" in page
    assert formula in page
    assert "345" in page
    assert "v0.5.9-3-gabc" in page
    assert "2 files changed" in page
    assert "0123456789ab" in page
    assert ">S1</a>" in page
