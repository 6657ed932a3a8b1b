"""An outcome becomes rows once, whole or not at all, whatever it holds."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import checkup, intake, lifecycle, outcomes, queries, store
from experiments.models import (
    Blob,
    ConfigChange,
    DecodeSample,
    Evidence,
    Investigation,
    Repeat,
    Run,
)
from experiments.refusal import ClaimLost, Refused
from workers import plan

Claimed = Callable[..., Run]
SampleOf = Callable[[str], Any]


def rows_of(run: Run) -> dict[str, int]:
    return {
        "repeats": run.repeats.count(),
        "config": run.config.filter(effective_known=True).count(),
        "samples": run.samples.count(),
        "evidence": run.evidence.count(),
        "changes": run.changes.count(),
        "findings": run.finding_events.count(),
    }


def test_an_outcome_becomes_rows(claimed: Claimed, sample: SampleOf, tmp_path: Path) -> None:
    run = claimed("steps1")
    taken = intake.take_outcome(run.pk, token="t", outcome=sample("steps1").outcome(tmp_path))
    assert taken.fresh
    run = taken.run
    assert (run.state, run.reason, run.check_problem) == ("done", "", "")
    assert (run.host, run.exit_code, run.engine_release) == ("testhost", 0, "0.5.10.post1")
    assert run.argv[:3] == ["python", "-m", "sglang.launch_server"]
    assert run.ended_at is not None
    assert run.checked_at is not None
    assert run.samples.count() == 20
    assert {e.name for e in run.evidence.all()} == {"server.log", "server_info.json"}


def test_the_figures_of_a_repeat_are_derived_by_their_definitions(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    intake.take_outcome(run.pk, token="t", outcome=sample("steps1").outcome(tmp_path))
    repeat = run.repeats.get(index=0)
    assert (repeat.tokens, repeat.requests, repeat.verify_ct) == (128, 2, 78)
    assert repeat.tok_s == pytest.approx(128 / 4.0)
    assert repeat.accept_len == pytest.approx(126 / 78)
    assert repeat.step_ms == pytest.approx(1000 * (126 / 78) / 32)
    assert repeat.accept_histogram == [30, 48]
    assert len(repeat.output_sha256) == 64
    assert len(repeat.prompts_sha256) == 64


def test_step_time_counts_the_requests_that_share_a_step() -> None:
    request = plan.Request("p", 1.0, 10, 101, spec_verify_ct=50)
    repeat = plan.Repeat(0, 0.0, 2.0, (request,) * 4)
    row = outcomes.repeat_row(Run(plan={"workload": {"concurrency": 4}}), repeat)
    assert row.tok_s == pytest.approx(202.0)
    assert row.accept_len == pytest.approx(2.0)
    assert row.step_ms == pytest.approx(1000 * 2.0 * 4 / 202)


def test_without_a_draft_a_step_yields_one_token_and_no_accept_length() -> None:
    request = plan.Request("p", 1.0, 10, 100)
    row = outcomes.repeat_row(Run(), plan.Repeat(0, 0.0, 2.0, (request,)))
    assert (row.accept_len, row.verify_ct, row.accept_histogram) == (None, None, None)
    assert row.step_ms == pytest.approx(20.0)


def test_figures_that_one_request_lacks_are_not_made_up_from_the_others() -> None:
    full = plan.Request("p", 1.0, 10, 100, spec_verify_ct=50, accept_histogram=(0, 50))
    bare = plan.Request("q", 1.0, 10, 100)
    row = outcomes.repeat_row(Run(), plan.Repeat(0, 0.0, 2.0, (full, bare)))
    assert (row.accept_len, row.verify_ct, row.accept_histogram) == (None, None, None)
    assert row.output_sha256 == ""


def test_a_repeat_without_a_token_has_no_speed_and_no_step_time() -> None:
    request = plan.Request("p", 0.0, 10, 0, spec_verify_ct=0)
    row = outcomes.repeat_row(Run(), plan.Repeat(0, 0.0, 0.0, (request,)))
    assert (row.tok_s, row.step_ms, row.accept_len) == (0.0, None, None)


def test_the_hash_of_outputs_does_not_depend_on_who_finished_first() -> None:
    one = plan.Request("a", 1.0, 1, 1, output_sha256="1" * 64)
    two = plan.Request("b", 1.0, 1, 1, output_sha256="2" * 64)
    hashes = {
        outcomes.repeat_row(Run(), plan.Repeat(0, 0.0, 1.0, order)).output_sha256
        for order in ((one, two), (two, one))
    }
    assert len(hashes) == 1


def test_requested_and_effective_stand_side_by_side_with_who_decided(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    intake.take_outcome(run.pk, token="t", outcome=sample("steps1").outcome(tmp_path))
    config = {entry.key: entry for entry in run.config.all()}
    tokens = config["speculative_num_draft_tokens"]
    assert (tokens.requested, tokens.effective, tokens.origin) == (16, 2, "override")
    assert tokens.differs
    assert "steps + 1" in tokens.why
    steps = config["speculative_num_steps"]
    assert (steps.requested, steps.effective, steps.origin) == (1, 1, "explicit")
    page = config["page_size"]
    assert (page.was_requested, page.effective, page.origin) == (False, 1, "default")


def test_without_server_info_the_log_says_what_is_in_force_and_where(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    outcome = sample("steps1").outcome(tmp_path, server_info=None)
    intake.take_outcome(run.pk, token="t", outcome=outcome)
    tokens = run.config.get(key="speculative_num_draft_tokens")
    assert (tokens.effective, tokens.origin) == (2, "override")
    line = Path(outcome.log).read_text().splitlines()[(tokens.line or 0) - 1]
    assert "speculative_num_draft_tokens=2" in line


def test_with_neither_the_rules_predict_and_the_rows_say_so(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    outcome = sample("steps1").outcome(
        tmp_path, state="failed", reason="it died", server_info=None, log="", repeats=()
    )
    intake.take_outcome(run.pk, token="t", outcome=outcome)
    tokens = run.config.get(key="speculative_num_draft_tokens")
    assert (tokens.effective, tokens.predicted, tokens.effective_known) == (2, True, False)
    assert tokens.origin == "override"


def test_the_same_outcome_again_changes_nothing(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    outcome = sample("steps1").outcome(tmp_path)
    intake.take_outcome(run.pk, token="t", outcome=outcome)
    before = rows_of(run)
    again = intake.take_outcome(run.pk, token="t", outcome=outcome)
    assert not again.fresh
    assert rows_of(run) == before


def test_an_outcome_of_a_lost_claim_is_refused_and_leaves_no_row(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    outcome = sample("steps1").outcome(tmp_path)
    with pytest.raises(ClaimLost, match="no longer held"):
        intake.take_outcome(run.pk, token="another", outcome=outcome)
    Run.objects.filter(pk=run.pk).update(state=Run.State.LOST)
    with pytest.raises(ClaimLost, match="lost"):
        intake.take_outcome(run.pk, token="t", outcome=outcome)
    assert set(rows_of(run).values()) == {0}
    with pytest.raises(ClaimLost, match="no run"):
        intake.take_outcome(424242, token="t", outcome=outcome)


def test_a_claim_lost_while_the_outcome_is_read_leaves_no_row(
    claimed: Claimed, sample: SampleOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = claimed("steps1")

    def late(*args: Any, **kwargs: Any) -> bool:
        Run.objects.filter(pk=run.pk).update(claim="another")
        return lifecycle.finish_run(*args, **kwargs)

    monkeypatch.setattr(intake, "finish_run", late)
    with pytest.raises(ClaimLost):
        intake.take_outcome(run.pk, token="t", outcome=sample("steps1").outcome(tmp_path))
    assert set(rows_of(run).values()) == {0}


def test_rows_come_all_or_none(
    claimed: Claimed, sample: SampleOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = claimed("steps1")

    def fails(*args: Any) -> None:
        raise RuntimeError("half-way")

    monkeypatch.setattr(intake, "_save_changes", fails)
    outcome = sample("steps1").outcome(tmp_path)
    with pytest.raises(RuntimeError):
        intake.take_outcome(run.pk, token="t", outcome=outcome)
    run.refresh_from_db()
    assert run.state == "running"
    assert set(rows_of(run).values()) == {0}
    monkeypatch.undo()


def test_a_disk_that_cannot_take_the_log_does_not_cost_the_figures(
    claimed: Claimed, sample: SampleOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = claimed("steps1")
    outcome = sample("steps1").outcome(tmp_path / "runs")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    taken = intake.take_outcome(run.pk, token="t", outcome=outcome)
    assert (taken.run.state, taken.run.repeats.count()) == ("done", 3)
    assert "no space left" in taken.run.reason
    assert not taken.run.evidence.exists()
    assert not Blob.objects.exists()


def test_a_rule_of_ours_that_stumbles_keeps_the_figures_and_says_so(
    claimed: Claimed, sample: SampleOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = claimed("steps1")
    outcome = sample("steps1").outcome(tmp_path)

    def stumbles(run: Run) -> None:
        raise ZeroDivisionError("a rule")

    monkeypatch.setattr(checkup, "recheck", stumbles)
    taken = intake.take_outcome(run.pk, token="t", outcome=outcome)
    assert (taken.run.state, taken.run.check_problem) == ("done", "ZeroDivisionError: a rule")
    assert taken.run.repeats.count() == 3
    monkeypatch.undo()
    again = intake.take_outcome(run.pk, token="t", outcome=outcome)
    assert again.run.check_problem == ""
    assert again.run.checked_at is not None


def test_a_crash_is_an_outcome_with_its_log(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    outcome = sample("steps1").outcome(
        tmp_path,
        state="failed",
        phase="loading",
        reason="the server exited with code 1",
        repeats=(),
        server_info=None,
        exit=plan.Exit(code=1, asked=False),
    )
    taken = intake.take_outcome(run.pk, token="t", outcome=outcome)
    assert (taken.run.state, taken.run.exit_code) == ("failed", 1)
    assert taken.run.reason == "the server exited with code 1"
    assert taken.run.evidence.filter(kind="server-log").exists()


def test_a_log_that_is_gone_is_said_and_the_figures_are_kept(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    outcome = sample("steps1").outcome(tmp_path)
    Path(outcome.log).unlink()
    taken = intake.take_outcome(run.pk, token="t", outcome=outcome)
    assert taken.run.repeats.count() == 3
    assert "log could not be read" in taken.run.reason


def test_a_log_of_random_bytes_does_not_stop_the_outcome(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    outcome = sample("steps1").outcome(tmp_path, server_info=None)
    Path(outcome.log).write_bytes(bytes(range(256)) * 4000)
    taken = intake.take_outcome(run.pk, token="t", outcome=outcome)
    assert (taken.run.state, taken.run.check_problem) == ("done", "")


def test_changes_are_told_against_the_run_that_it_follows(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    first = claimed("steps1")
    intake.take_outcome(first.pk, token="t", outcome=sample("steps1").outcome(tmp_path / "a"))
    second = claimed("steps15", follows=first)
    intake.take_outcome(second.pk, token="t", outcome=sample("steps15").outcome(tmp_path / "b"))
    changed = {c.key: (c.before, c.after) for c in ConfigChange.objects.filter(run=second)}
    assert changed["speculative_num_steps"] == (1, 15)
    assert changed["speculative_num_draft_tokens"] == (2, 16)
    assert "port" not in changed
    assert "random_seed" not in changed


def test_decode_lines_outside_the_repeats_are_marked(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    intake.take_outcome(run.pk, token="t", outcome=sample("steps1").outcome(tmp_path))
    # The sample's log is months away from the repeats that the test made up.
    assert not run.samples.filter(in_repeat=True).exists()
    times = [s.t for s in run.samples.all() if s.t is not None]
    other = claimed("steps1")
    inside = plan.Repeat(0, min(times), max(times) - min(times), ())
    outcome = sample("steps1").outcome(tmp_path, repeats=(inside,))
    intake.take_outcome(other.pk, token="t", outcome=outcome)
    assert not other.samples.filter(in_repeat=False).exists()


def test_a_very_long_log_is_thinned_for_charts_and_kept_whole(
    claimed: Claimed, sample: SampleOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "MOST_SAMPLES", 7)
    run = claimed("steps1")
    outcome = sample("steps1").outcome(tmp_path)
    intake.take_outcome(run.pk, token="t", outcome=outcome)
    assert 4 <= DecodeSample.objects.filter(run=run).count() <= 7
    log = run.evidence.get(kind="server-log")
    assert store.path_of(log.blob_id).read_bytes() == Path(outcome.log).read_bytes()


def test_an_uploaded_log_is_recognised_by_content_and_looked_at(
    investigation: Investigation, data_dir: Path, sample: SampleOf, tmp_path: Path
) -> None:
    outcome = sample("steps1").outcome(tmp_path)
    with Path(outcome.log).open("rb") as stream:
        row = intake.take_file(
            investigation=investigation, name="notes.txt", stream=stream, by="Ada"
        )
    assert (row.kind, row.problem, row.added_by) == ("server-log", "", "Ada")
    page = queries.investigation_page(investigation.slug)
    assert all(f.finding.opened_in is None for f in page.dossier.findings)


def test_the_same_file_twice_is_one_row(investigation: Investigation, data_dir: Path) -> None:
    for _ in range(2):
        intake.take_file(
            investigation=investigation, name="a.log", stream=io.BytesIO(b"hello world\n")
        )
    assert Evidence.objects.count() == 1


def test_a_file_above_the_limit_leaves_nothing(
    investigation: Investigation, data_dir: Path
) -> None:
    with pytest.raises(Refused, match="larger than"):
        intake.take_file(
            investigation=investigation, name="a", stream=io.BytesIO(b"x" * 2048), limit=1024
        )
    assert not Evidence.objects.exists()


def test_a_file_name_is_a_name_and_no_path(investigation: Investigation, data_dir: Path) -> None:
    names = ["../../etc/passwd", "a\0b\n.log", "C:\\logs\\x.log", "", "x" * 500]
    for n, name in enumerate(names):
        intake.take_file(investigation=investigation, name=name, stream=io.BytesIO(b"%d" % n))
    kept = [e.name for e in Evidence.objects.all()]
    assert kept[:4] == ["passwd", "ab.log", "x.log", "file"]
    assert len(kept[4]) <= 200


def test_rows_of_repeats_are_unique(claimed: Claimed, sample: SampleOf, tmp_path: Path) -> None:
    run = claimed("plain")
    intake.take_outcome(run.pk, token="t", outcome=sample("plain").outcome(tmp_path))
    assert list(Repeat.objects.filter(run=run).values_list("index", flat=True)) == [0, 1, 2]
    assert run.repeats.get(index=1).accept_len is None


def test_keys_of_the_server_reach_neither_rows_nor_files(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    outcome = sample("steps1").outcome(tmp_path)
    info = dict(outcome.server_info) | {
        "api_key": "sesame-open",
        "internal_states": [{"api_key": "sesame-open", "tp_size": 1}],
    }
    run.plan["server_args"] += ["--api-key", "sesame-open"]
    run.save()
    intake.take_outcome(
        run.pk, token="t", outcome=sample("steps1").outcome(tmp_path, server_info=info)
    )
    run.refresh_from_db()
    rows = [run.server_info, run.shown, *run.config.values_list("requested", "effective")]
    assert "sesame" not in str(rows)
    for row in run.evidence.all():
        assert b"sesame" not in store.path_of(row.blob_id).read_bytes()
    assert run.server_info is not None
    assert run.server_info["internal_states"] == [{"tp_size": 1}]


def test_what_else_lies_in_the_runs_folder_is_kept_and_disturbs_no_check(
    claimed: Claimed, sample: SampleOf, tmp_path: Path
) -> None:
    run = claimed("steps1")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "requests.jsonl").write_text('{"repeat": 0}\n')
    (folder / "link").symlink_to("/etc/hostname")
    named = (("requests.jsonl", "requests"), ("gone", "requests"), ("link", "requests"))
    outcome = replace(
        sample("steps1").outcome(tmp_path),
        folder=str(folder),
        files=(*named, ("../../etc/passwd", "requests")),
        preflight={"release": "0.5.10.post1"},
        provenance={"machine": {"kernel": "6"}},
    )
    intake.take_outcome(run.pk, token="t", outcome=outcome)
    run.refresh_from_db()
    assert [row.name for row in run.evidence.filter(kind="requests")] == ["requests.jsonl"]
    assert run.preflight == {"release": "0.5.10.post1"}
    assert run.provenance["machine"] == {"kernel": "6"}
    assert run.accept_lengths[0]["verifies"] == 3 * 78
    assert run.check_problem == ""
