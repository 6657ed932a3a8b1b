"""Every object of the record, made and changed through the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from experiments.models import Investigation, Rendering, Run
from experiments.refusal import Refused
from experiments.reports import making
from tests.api.conftest import Caller


def test_an_investigation_is_opened_read_edited_closed_and_reopened(api: Caller) -> None:
    made = api.post("investigations", {"title": "Slow", "question": "Why?", "goal_value": 1.1})
    assert made["slug"] == "slow"
    assert made["goal"] == {
        "metric": "tok_s",
        "kind": "beat-baseline",
        "value": 1.1,
        "unit": "tok/s",
    }
    assert made["created_by"] == "member"
    edited = api.patch("investigations/slow", {"context": "eight GPUs"})
    assert edited["context"] == "eight GPUs"
    assert api.get("investigations/slow")["context"] == "eight GPUs"
    told = api.refused(409, "POST", "investigations/slow/resolve", {})
    assert told["obstacles"]
    closed = api.post("investigations/slow/resolve", {"exception_reason": "no time"})
    assert (closed["state"], closed["exception_by"]) == ("resolved", "member")
    assert api.post("investigations/slow/reopen")["state"] == "open"
    assert api.post("investigations/slow/abandon", {"reason": "gone"})["state"] == "abandoned"


def test_what_a_request_lacks_or_has_too_much_is_named_by_field(api: Caller) -> None:
    told = api.refused(400, "POST", "investigations", {"titel": "x", "question": 3})
    fields = {error["field"] for error in told["errors"]}
    assert {"title", "question"} <= fields
    told = api.refused(400, "POST", "investigations", {"title": "x", "question": "y", "titel": 1})
    assert told["errors"] == [
        {
            "field": "titel",
            "reason": "is not known here; known: context, goal_kind, goal_metric, goal_value, "
            "notes, question, title",
        }
    ]


def test_a_baseline_is_set_by_its_label(api: Caller, base: Run) -> None:
    assert api.patch("investigations/slow-draft", {"baseline": None})["baseline"] is None
    assert api.patch("investigations/slow-draft", {"baseline": "R0"})["baseline"] == "R0"
    told = api.refused(400, "PATCH", "investigations/slow-draft", {"baseline": "R7"})
    assert told["errors"][0]["field"] == "baseline"


def test_a_hypothesis_comes_with_its_prediction_and_checks(api: Caller, base: Run) -> None:
    made = api.post(
        "investigations/slow-draft/hypotheses",
        {
            "claim": "More draft tokens help",
            "prediction": {"baseline": "R0", "direction": "up"},
            "checks": [{"kind": "effective-equals", "key": "speculative_num_steps", "expected": 3}],
        },
    )
    assert made["hypothesis"]["label"] == "H1"
    assert made["predictions"][0]["baseline"] == "R0"
    assert made["checks"][0]["expected"] == 3
    api.post("investigations/slow-draft/hypotheses", {"claim": "It is the layers"})
    link = {"kind": "follows-from", "other": "H1"}
    assert api.post("investigations/slow-draft/hypotheses/2/links", link)["other"] == "H1"
    edited = api.patch("investigations/slow-draft/hypotheses/2", {"claim": "The layers"})
    assert edited["hypothesis"]["claim"] == "The layers"
    listed = api.get("investigations/slow-draft/hypotheses?order=label")
    assert [h["label"] for h in listed["items"]] == ["H1", "H2"]


def test_half_a_hypothesis_is_not_kept(api: Caller, base: Run) -> None:
    body = {"claim": "x", "prediction": {"baseline": "R9"}}
    told = api.refused(400, "POST", "investigations/slow-draft/hypotheses", body)
    assert told["errors"][0]["field"] == "prediction.baseline"
    assert api.get("investigations/slow-draft/hypotheses")["items"] == []


def test_a_run_is_planned_branched_repeated_and_cancelled(api: Caller, base: Run) -> None:
    slug = "investigations/slow-draft"
    args = ["--speculative-algorithm", "EAGLE3", "--speculative-num-steps", "1"]
    made = api.post(
        f"{slug}/runs",
        {"title": "drafts", "server_args": args, "workload": {"repeats": 5}, "baseline": "R0"},
    )
    assert (made["label"], made["state"], made["baseline"]) == ("R1", "draft", "R0")
    whole = api.get(f"{slug}/runs/1")
    assert whole["workload"]["repeats"] == 5
    asked = {entry["key"]: entry["requested"] for entry in whole["config"]}
    assert asked["speculative_num_steps"] == 1
    branch = api.post(
        f"{slug}/runs/1/branch", {"title": "deeper", "server_args": [*args[:-1], "3"]}
    )
    assert branch["follows"] == "R1"
    assert branch["params"]["speculative_num_steps"] == 3
    again = api.post(f"{slug}/runs/1/repeat")
    assert again["repeats"] == "R1"
    assert api.post(f"{slug}/runs/3/cancel")["state"] == "cancelled"
    assert api.patch(f"{slug}/runs/1", {"note": "slow box"})["note"] == "slow box"
    told = api.refused(409, "POST", f"{slug}/runs", {"title": "x", "server_args": ["--port=1"]})
    assert "host and port" in told["detail"]
    told = api.refused(
        409, "POST", f"{slug}/runs", {"title": "x", "server_args": [], "worker": "moon"}
    )
    assert "there is no worker 'moon'; known are: none yet" in told["detail"]


def test_a_queued_run_is_queued_once(api: Caller, inv: Investigation) -> None:
    made = api.post(
        "investigations/slow-draft/runs",
        {"title": "x", "server_args": ["--model-path", "m"], "queue": True},
    )
    assert made["state"] == "queued"
    assert api.post("investigations/slow-draft/runs/0/queue")["state"] == "queued"
    live = api.get("investigations/slow-draft/runs/0/standing")
    assert (live["ended"], live["state"]) == (False, "queued")


def test_a_recorded_run_keeps_the_figures_of_its_write_up(api: Caller, inv: Investigation) -> None:
    made = api.post(
        "investigations/slow-draft/recorded-runs",
        {"title": "from the wiki", "repeats": [{"tok_s": 56.8, "accept_len": 1.6}]},
    )
    assert made["recorded"] is True
    assert made["metrics"]["tok_s"]["value"] == 56.8
    assert made["metrics"]["step_ms"]["value"] == 1000 * 1.6 / 56.8


def test_a_run_that_a_program_opens_is_answered_as_it_is_kept(
    api: Caller, base: Run, django_assert_num_queries: Any
) -> None:
    slug = "investigations/slow-draft"
    api.post(f"{slug}/hypotheses", {"claim": "More draft tokens help"})
    first = api.post(f"{slug}/script-runs", {"title": "plain"})
    config = {"b": 1, "a": "é😀", "c": None, "d": [1.0, {"x": []}], "e": True, "api_key": "s"}
    body = {
        "title": "one",
        "note": "n",
        "config": config,
        "server_args": ["--speculative-num-steps", "3", "--api-key", "hush"],
        "baseline": "R0",
        "follows": first["label"],
        "hypothesis": "H1",
        "concurrency": 4,
    }
    made = api.post(f"{slug}/script-runs", body)
    kept = api.get(f"{slug}/runs/{made['number']}")["run"]
    assert made == kept
    assert list(made["params"]) == list(kept["params"])
    assert "api_key" not in made["params"]
    # Who asks, the investigation, BEGIN, numbers and places, the run, its arguments, COMMIT.
    with django_assert_num_queries(7 if connection.vendor == "sqlite" else 8):
        api.post(f"{slug}/script-runs", {"title": "plain", "config": {"a": 1, "b": 2}})


def test_findings_are_set_aside_and_reopened_by_name(api: Caller, base: Run) -> None:
    api.post(
        "investigations/slow-draft/script-runs",
        {
            "title": "drafts",
            "engine": "sglang",
            "engine_release": "0.5.9",
            "baseline": "R0",
            "server_args": [
                *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "d"),
                *("--speculative-num-steps", "1", "--speculative-eagle-topk", "1"),
                *("--speculative-num-draft-tokens", "16"),
            ],
        },
    )
    run = "investigations/slow-draft/runs/1"
    sent = [{"tok_s": v, "accept_len": 1.6} for v in (56.0, 57.0, 56.5)]
    api.post(f"{run}/repeats", {"first": 0, "repeats": sent})
    done = api.post(f"{run}/finish", {})
    assert done["state"] == "done"
    codes = {f["code"] for f in api.get("investigations/slow-draft/findings")["items"]}
    assert "slower-than-baseline" in codes
    where = "investigations/slow-draft/findings/slower-than-baseline"
    told = api.post(f"{where}/set-aside", {"reason": "known"})
    assert told["finding"]["set_aside_by"] == "member"
    assert api.refused(409, "POST", f"{where}/set-aside", {"reason": "again"})
    assert api.post(f"{where}/reopen")["finding"]["state"] == "open"
    assert [t["kind"] for t in api.get(where)["turns"]][-1] == "reopened"


def test_events_stand_where_they_are_put(api: Caller, base: Run) -> None:
    first = api.post("investigations/slow-draft/events", {"title": "read the source", "run": "R0"})
    api.post("investigations/slow-draft/events", {"title": "later"})
    between = api.post(
        "investigations/slow-draft/events", {"title": "between", "after": first["position"]}
    )
    assert between["position"] > first["position"]
    found = api.get("investigations/slow-draft/events?order=created")["items"]
    assert [e["title"] for e in found] == ["read the source", "later", "between"]


def test_the_conclusions_are_those_of_the_report(api: Caller, base: Run) -> None:
    slug = "investigations/slow-draft"
    standing = api.get(f"{slug}/standing")
    assert standing["goal"]["met"] is None
    report = api.get(f"{slug}/report")
    told = report["document"]["post_mortem"]
    for name, key in (("timeline", "steps"), ("gap", "gaps")):
        assert api.get(f"{slug}/{name}")["items"] == told[key]
    shown = api.get(f"{slug}/advice")["items"]
    assert [{k: row[k] for k in told["advice"][0]} for row in shown] == told["advice"]


def test_a_pdf_is_ordered_and_told_of_until_a_worker_has_made_it(
    api: Caller, base: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr("experiments.dispatch.send_rendering", lambda row: sent.append(row.pk))
    monkeypatch.setattr("experiments.reports.render.pdf", lambda *_, **__: b"%PDF-made")
    monkeypatch.setattr("experiments.reports.render.pdf_problem", lambda: "")
    address = "investigations/slow-draft/report.pdf"
    first, second = api.call("GET", address), api.call("GET", address)
    assert (first.status_code, first["Retry-After"]) == (202, "1")
    assert first.json() == {"state": "queued", "step": "", "fraction": 0.0}
    assert second.status_code == 202
    assert len(set(sent)) == 1
    assert making.make(sent[0])
    answer = api.call("GET", address)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/pdf")
    assert b"".join(answer.streaming_content) == b"%PDF-made"
    assert api.refused(400, "GET", f"{address}?page=A3")["errors"][0]["field"] == "page"


def test_a_pdf_that_failed_says_why_and_is_tried_again_a_minute_later(
    api: Caller, base: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> bytes:
        raise Refused("the disk is full")

    sent: list[int] = []
    monkeypatch.setattr("experiments.dispatch.send_rendering", lambda row: sent.append(row.pk))
    monkeypatch.setattr("experiments.reports.render.pdf", full)
    monkeypatch.setattr("experiments.reports.render.pdf_problem", lambda: "")
    address = "investigations/slow-draft/report.pdf"
    assert api.call("GET", address).status_code == 202
    assert not making.make(sent[0])
    assert "the disk is full" in api.refused(503, "GET", address)["detail"]
    Rendering.objects.update(ended_at=timezone.now() - timedelta(minutes=2))
    assert api.call("GET", address).json()["state"] == "queued"
    monkeypatch.setattr("experiments.reports.render.pdf_problem", lambda: "it needs Pango")
    Rendering.objects.all().delete()
    assert api.refused(503, "GET", address)["detail"] == "it needs Pango"


def test_the_library_answers_as_the_command_does(api: Caller) -> None:
    command = (
        "python -m sglang.launch_server --model m --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path d --speculative-num-steps 1 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 16"
    )
    told = api.post("preflight", {"command": command, "engine_version": "0.5.9"})
    assert "draft-tokens-overridden" in {f["code"] for f in told["findings"]}
    same = api.post(
        "check", {"files": [{"name": "cmd", "text": command}], "engine_version": "0.5.9"}
    )
    assert same["findings"] == [
        {**f, "evidence": [{**e, "source": "cmd"} for e in f["evidence"]]} for f in told["findings"]
    ]


def test_runs_are_compared_with_intervals_and_sample_sizes(api: Caller, base: Run) -> None:
    slug = "investigations/slow-draft"
    api.post(
        f"{slug}/recorded-runs",
        {"title": "drafts", "repeats": [{"tok_s": v} for v in (56.0, 57.0, 56.5)]},
    )
    told: dict[str, Any] = api.get("compare?runs=slow-draft/R1&baseline=slow-draft/R0")
    rows = {row["run"]: row for row in told["runs"]}
    delta = rows["slow-draft/R1"]["deltas"][0]
    assert (delta["metric"], delta["verdict"]) == ("tok_s", "regression")
    assert delta["low"] < delta["ratio"] < delta["high"]
    assert (delta["n_before"], delta["n_after"]) == (3, 3)
    assert api.refused(400, "GET", "compare?runs=slow-draft/R1,slow-draft/R9")
