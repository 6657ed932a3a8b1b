"""Runs are planned with arguments that are data, numbered once, branched, repeated, recorded."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from experiments import lifecycle, store
from experiments.models import Investigation, Run
from workers.plan import RunPlan, Workload
from workers.prompt_files import read_prompts

DRAFTED = shlex.split("--model-path target --speculative-num-steps 3")


@pytest.fixture
def run(investigation: Investigation) -> Run:
    return lifecycle.add_run(
        investigation=investigation,
        title="three steps",
        server_args=DRAFTED,
        env={"SGLANG_LOG_MS": "1"},
        workload=Workload(repeats=5),
    )


def test_a_plan_survives_its_way_through_the_row(run: Run, data_dir: Path) -> None:
    run.refresh_from_db()
    plan = lifecycle.plan_of(run)
    assert plan.server_args == tuple(DRAFTED)
    assert plan.env == {"SGLANG_LOG_MS": "1"}
    assert plan.workload == Workload(repeats=5)
    assert plan.run == "slow-draft-r0"
    assert plan.folder == str(data_dir / "runs" / "slow-draft-r0")
    assert RunPlan.from_json(run.plan).workload == Workload(repeats=5)


def test_runs_are_numbered_from_zero_within_their_investigation(
    investigation: Investigation, run: Run
) -> None:
    second = lifecycle.add_run(investigation=investigation, title="b", server_args=DRAFTED)
    other = lifecycle.create_investigation(title="o", question="q")
    elsewhere = lifecycle.add_run(investigation=other, title="c", server_args=DRAFTED)
    assert [r.label for r in (run, second, elsewhere)] == ["R0", "R1", "R0"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"engine": "magic"}, "no engine"),
        ({"server_args": ["--port", "1"]}, "chosen by the worker"),
        ({"server_args": ["--host=0.0.0.0"]}, "chosen by the worker"),
        ({"server_args": ["a\0b"]}, "zero byte"),
        ({"server_args": ["x"] * 401}, "at most 400"),
        ({"env": {"A B": "1"}}, "no name of an environment variable"),
        ({"env": {"A": "x\0"}}, "zero byte"),
        ({"workload": Workload(repeats=0)}, "workload repeats is 0"),
        ({"workload": Workload(concurrency=10**9)}, "workload concurrency"),
        ({"workload": Workload(temperature=-1)}, "temperature"),
        ({"title": ""}, "title is empty"),
    ],
)
def test_a_plan_that_cannot_run_is_refused(
    investigation: Investigation, values: dict[str, object], said: str
) -> None:
    good: dict[str, object] = {"title": "t", "server_args": DRAFTED}
    with pytest.raises(lifecycle.Refused, match=said):
        lifecycle.add_run(investigation=investigation, **(good | values))  # type: ignore[arg-type]
    assert not Run.objects.exists()


def test_an_argument_with_shell_signs_stays_one_argument(investigation: Investigation) -> None:
    nasty = ["--model-path", "; rm -rf / #`$(id)`"]
    run = lifecycle.add_run(investigation=investigation, title="t", server_args=nasty)
    assert lifecycle.plan_of(run).server_args == tuple(nasty)


def test_a_branch_follows_its_origin_and_keeps_what_is_not_changed(run: Run, baseline: Run) -> None:
    branch = lifecycle.branch_run(run, title="five", server_args=["--speculative-num-steps", "5"])
    plan = lifecycle.plan_of(branch)
    assert (branch.follows, branch.baseline) == (run, baseline)
    assert plan.server_args == ("--speculative-num-steps", "5")
    assert plan.env == {"SGLANG_LOG_MS": "1"}
    assert plan.workload == Workload(repeats=5)
    assert branch.state == "draft"


def test_a_repeat_has_the_same_plan_and_says_what_it_repeats(run: Run) -> None:
    again = lifecycle.repeat_run(run)
    assert again.repeats_run == run
    one, two = lifecycle.plan_of(run), lifecycle.plan_of(again)
    assert (one.server_args, one.workload, one.env) == (two.server_args, two.workload, two.env)
    assert one.run != two.run


def test_a_recorded_run_carries_its_figures_and_the_derived_step_time(
    investigation: Investigation,
) -> None:
    run = lifecycle.record_run(
        investigation=investigation, title="r", repeats=[lifecycle.RecordedRepeat(56.8, 1.6)]
    )
    repeat = run.repeats.get()
    assert (run.state, run.recorded) == ("done", True)
    assert repeat.step_ms == pytest.approx(28.17, abs=0.01)


def test_a_recorded_run_without_arguments_cannot_be_repeated(
    investigation: Investigation,
) -> None:
    run = lifecycle.record_run(
        investigation=investigation, title="r", repeats=[lifecycle.RecordedRepeat(54.8)]
    )
    with pytest.raises(lifecycle.Refused, match="write-up"):
        lifecycle.repeat_run(run)


def test_a_recorded_run_with_arguments_can_be_repeated_for_real(
    investigation: Investigation,
) -> None:
    run = lifecycle.record_run(
        investigation=investigation,
        title="r",
        repeats=[lifecycle.RecordedRepeat(54.8)],
        server_args=DRAFTED,
    )
    again = lifecycle.repeat_run(run)
    assert (again.recorded, lifecycle.plan_of(again).server_args) == (False, tuple(DRAFTED))


@pytest.mark.parametrize("figure", [0.0, -1.0, float("nan"), float("inf")])
def test_a_figure_that_is_none_is_refused(investigation: Investigation, figure: float) -> None:
    with pytest.raises(lifecycle.Refused, match="above zero"):
        lifecycle.record_run(
            investigation=investigation, title="r", repeats=[lifecycle.RecordedRepeat(figure)]
        )


def test_an_unknown_workload_setting_is_named() -> None:
    assert lifecycle.workload_from({"repeats": 7}).repeats == 7
    with pytest.raises(lifecycle.Refused, match="speed"):
        lifecycle.workload_from({"speed": 1})


def test_a_plan_shows_before_the_start_what_the_release_will_make_of_it(
    investigation: Investigation,
) -> None:
    asked = shlex.split(
        "--model-path target --speculative-algorithm EAGLE3 --speculative-draft-model-path d"
        " --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 16"
    )
    run = lifecycle.add_run(investigation=investigation, title="t", server_args=asked)
    tokens = run.config.get(key="speculative_num_draft_tokens")
    assert (tokens.requested, tokens.effective, tokens.predicted) == (16, 2, True)
    assert (tokens.effective_known, tokens.origin) == (False, "override")
    assert "draft-tokens-overridden" in {f["code"] for f in run.shown}
    assert not investigation.findings.exists()


def test_a_plan_that_gets_what_it_asks_for_shows_no_override(investigation: Investigation) -> None:
    asked = shlex.split(
        "--model-path target --speculative-algorithm EAGLE3 --speculative-draft-model-path d"
        " --speculative-num-steps 15 --speculative-eagle-topk 1 --speculative-num-draft-tokens 16"
    )
    run = lifecycle.add_run(investigation=investigation, title="t", server_args=asked)
    assert "draft-tokens-overridden" not in {f["code"] for f in run.shown}


def test_prompts_come_from_a_shipped_set_an_upload_or_where_the_operator_allows(
    investigation: Investigation, data_dir: Path, tmp_path: Path, settings: Any
) -> None:
    def planned(name: str) -> Run:
        work = Workload(prompts=name)
        return lifecycle.add_run(
            investigation=investigation, title="t", server_args=DRAFTED, workload=work
        )

    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "p.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "other.jsonl").write_text('{"text": "a"}\n')
    (allowed / "link.jsonl").symlink_to(tmp_path / "other.jsonl")
    for name in (str(allowed / "p.jsonl"), "/etc/passwd", "file:" + "0" * 64, "../x.jsonl"):
        with pytest.raises(lifecycle.Refused, match="prompts"):
            planned(name)
    settings.PROMPT_DIRS = [str(allowed)]
    assert planned(str(allowed / "p.jsonl")).plan["workload"]["prompts"].endswith("p.jsonl")
    for name in (str(allowed / ".." / "other.jsonl"), str(allowed / "link.jsonl")):
        with pytest.raises(lifecycle.Refused, match="nor a file in"):
            planned(name)
    blob = store.put(io.BytesIO(b'{"text": "a"}\n'))
    run = planned(f"file:{blob.sha256}")
    assert run.plan["workload"]["prompts"] == f"file:{blob.sha256}"
    path = lifecycle.plan_for_worker(run).workload.prompts
    assert [p.body for p in read_prompts(path).prompts] == [{"text": "a"}]


def test_a_plan_knows_before_the_start_what_the_release_will_make_of_it(
    investigation: Investigation,
) -> None:
    story = shlex.split(
        "--model-path m --speculative-algorithm EAGLE3 --speculative-draft-model-path d "
        "--speculative-eagle-topk 1 --speculative-num-steps 1 --speculative-num-draft-tokens 16"
    )
    run = lifecycle.add_run(
        investigation=investigation, title="t", engine="sglang", server_args=story, strict=True
    )
    assert run.preflight["release"] == ""
    assert run.preflight["strict"] is True
    assert lifecycle.plan_of(run).strict is True
    # Once a run of this engine has told its release, that release's rules are asked.
    Run.objects.filter(pk=run.pk).update(
        state=Run.State.DONE, engine_release="0.5.10.post1", ended_at=timezone.now()
    )
    second = lifecycle.repeat_run(run)
    assert second.preflight["release"] == "0.5.10.post1"
    assert "the last run of this engine" in second.preflight["source"]
    assert [c["effective"] for c in second.preflight["changes"]] == [2]
    assert second.plan["strict"] is True


def test_sglang_on_gpus_is_given_time_to_start(investigation: Investigation) -> None:
    plain = lifecycle.add_run(investigation=investigation, title="a", server_args=DRAFTED)
    big = lifecycle.add_run(
        investigation=investigation, title="b", server_args=DRAFTED, engine="sglang"
    )
    assert lifecycle.plan_of(plain).deadlines.launch == 120
    assert lifecycle.plan_of(big).deadlines.launch == 900
