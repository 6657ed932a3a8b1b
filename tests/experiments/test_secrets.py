"""Keys of a plan stay out of rows, pages and live logs, and reach the engine all the same."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

from experiments import groups, lifecycle, secrets
from experiments.models import ConfigEntry, Investigation, Run, RunGroup
from experiments.refusal import Refused
from experiments.views.lines import tail, window
from workers.plan import Workload

KEY = "sk-1234567890"
ARGS = ("--model-path", "m", "--api-key", KEY)


@pytest.fixture
def run(investigation: Investigation, data_dir: Path) -> Run:
    return lifecycle.add_run(
        investigation=investigation,
        title="guarded",
        engine="sglang",
        server_args=ARGS,
        env={"HF_TOKEN": "hf_secret_token", "SGLANG_LOG_MS": "1"},
    )


def everything() -> str:
    """All that the database holds of runs, groups and arguments."""
    rows = [
        *Run.objects.values(),
        *RunGroup.objects.values(),
        *ConfigEntry.objects.values(),
    ]
    return json.dumps(rows, default=str)


def test_no_row_holds_a_key_and_the_engine_gets_it(run: Run, data_dir: Path) -> None:
    assert KEY not in everything()
    assert "hf_secret_token" not in everything()
    assert run.plan["env"]["SGLANG_LOG_MS"] == "1"
    plan = lifecycle.plan_for_worker(run)
    assert plan.server_args == ARGS
    assert plan.env["HF_TOKEN"] == "hf_secret_token"
    for file in (data_dir / "secrets").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_branches_and_repeats_take_the_key_along_unseen(run: Run) -> None:
    for made in (lifecycle.branch_run(run, title="b"), lifecycle.repeat_run(run)):
        assert made.plan["server_args"] == run.plan["server_args"]
        assert lifecycle.plan_for_worker(made).server_args == ARGS
    assert KEY not in everything()


def test_a_sweep_keeps_its_keys_out_of_its_plan(
    investigation: Investigation, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.dispatch._send", lambda *_, **__: True)
    common = groups.Common("sglang", ARGS, Workload(), {"HF_TOKEN": "hf_secret_token"})
    groups.add_sweep(
        investigation=investigation, title="s", common=common, settings=[{"--page-size": 1}]
    )
    assert RunGroup.objects.exists()
    assert KEY not in everything()
    assert "hf_secret_token" not in everything()
    made = lifecycle.plan_for_worker(Run.objects.get())
    assert KEY in made.server_args


@pytest.mark.parametrize(
    "argument",
    [
        "--model-path=s3://me:pass-word@store/m",
        "--dataset=https://store/m?X-Amz-Signature=pass-word",
        "https://h/m?a=1&token=pass-word",
        "--api-key=pass-word",
    ],
)
def test_secrets_within_addresses_are_put_away_too(
    investigation: Investigation, data_dir: Path, argument: str
) -> None:
    run = lifecycle.add_run(
        investigation=investigation, title="t", engine="sglang", server_args=[argument]
    )
    assert "pass-word" not in everything()
    assert lifecycle.plan_for_worker(run).server_args == (argument,)


def test_ordinary_arguments_stay_as_they_are(investigation: Investigation, data_dir: Path) -> None:
    args = ["--model-path", "org/model", "--tokenizer-mode", "auto", "https://h/m?page=2"]
    run = lifecycle.add_run(
        investigation=investigation, title="t", engine="sglang", server_args=args
    )
    assert run.plan["server_args"] == args
    assert not (data_dir / "secrets").exists()


def test_a_key_that_is_gone_fails_the_run_with_a_sentence(run: Run, data_dir: Path) -> None:
    shutil.rmtree(data_dir / "secrets")
    with pytest.raises(Refused, match="is not on this machine; plan the run again with the key"):
        lifecycle.plan_for_worker(run)
    assert secrets.values_of(run.plan) == ()


def test_a_full_disk_refuses_the_plan_and_keeps_nothing(
    investigation: Investigation, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.open", full)
    with pytest.raises(Refused, match="the key cannot be put away: No space left"):
        lifecycle.add_run(investigation=investigation, title="t", engine="sglang", server_args=ARGS)
    monkeypatch.undo()
    assert not Run.objects.exists()


def test_the_live_log_shows_no_key(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"server_args=ServerArgs(api_key='{KEY}')\nready\n")
    hide = secrets.values_of(run.plan)
    shown = "".join(line.text for line in (*tail(log, hide=hide), *window(log, hide=hide).lines))
    assert KEY not in shown
    assert shown.count("api_key='[removed]'") == 2
    assert KEY in tail(log)[0].text


def test_a_write_up_keeps_no_key_at_all(investigation: Investigation, data_dir: Path) -> None:
    run = lifecycle.record_run(
        investigation=investigation,
        title="theirs",
        repeats=[lifecycle.RecordedRepeat(90.0)],
        server_args=ARGS,
    )
    assert run.plan["server_args"] == ["--model-path", "m", "--api-key", "[removed]"]
    assert not (data_dir / "secrets").exists()
