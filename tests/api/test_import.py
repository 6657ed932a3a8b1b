"""`specdebug import` into the real record: taken in once, whole, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specdebug.client import cli
from tests.api.conftest import Caller

AIPERF = {
    "output_token_throughput": {"unit": "tokens/sec", "avg": 52.5},
    "request_count": {"unit": "requests", "avg": 10.0},
    "time_to_first_token": {"unit": "ms", "avg": 195.5},
}


def mlruns(root: Path) -> Path:
    own = root / "mlruns" / "1" / "aa"
    for folder in ("params", "metrics"):
        (own / folder).mkdir(parents=True)
    (own.parent / "meta.yaml").write_text("experiment_id: '1'\nname: nightly\n")
    (own / "meta.yaml").write_text("run_id: aa\nrun_name: first\nstatus: 3\n")
    (own / "params" / "topk").write_text("1")
    lines = (f"{1000 * step} {50 + step} {step}\n" for step in range(2500))
    (own / "metrics" / "speed").write_text("".join(lines))
    return root / "mlruns"


def runs(api: Caller) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get("investigations/slow-draft/runs")["items"]
    return found


@pytest.mark.usefixtures("served", "inv")
def test_runs_of_mlflow_come_with_parameters_and_every_point(
    api: Caller, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["import", str(mlruns(tmp_path)), "--from", "mlflow", "--into", "slow-draft", "--json"]
    assert cli.main(words) == 0
    assert json.loads(capsys.readouterr().out) == {"taken": ["slow-draft/R0"], "skipped": []}
    assert cli.main(words) == 0
    assert json.loads(capsys.readouterr().out) == {"taken": [], "skipped": ["slow-draft/R0"]}
    (run,) = runs(api)
    assert run["state"] == "done"
    assert run["params"] == {"topk": "1", "imported_from": "mlflow:aa"}
    points = api.get("investigations/slow-draft/runs/0/points?metric=speed")
    assert (points["total"], points["values"][0], points["values"][-1]) == (2500, 50.0, 2549.0)


@pytest.mark.usefixtures("served", "inv")
def test_an_import_that_broke_off_goes_on_where_it_was(api: Caller, tmp_path: Path) -> None:
    words = ["import", str(mlruns(tmp_path)), "--from", "mlflow", "--into", "slow-draft"]
    config = {"topk": "1", "imported_from": "mlflow:aa"}
    api.post("investigations/slow-draft/script-runs", {"title": "first", "config": config})
    rows = [[step, float(step), {"speed": 50.0 + step}] for step in range(1000)]
    body = {"writer": "import", "first_row": 0, "rows": rows}
    api.post("investigations/slow-draft/runs/0/points", body)
    assert cli.main(words) == 0
    (run,) = runs(api)
    assert run["state"] == "done"
    assert api.get("investigations/slow-draft/runs/0/points?metric=speed")["total"] == 2500


@pytest.mark.usefixtures("served", "inv")
def test_one_bad_file_of_several_leaves_nothing_half_imported(
    api: Caller, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(AIPERF))
    bad.write_text('{"output_token_throughput": 1}')
    words = ["import", "--from", "aiperf", "--into", "slow-draft"]
    assert cli.main([*words, str(good), str(bad)]) == 2
    assert f"{bad} is no summary of AIPerf" in capsys.readouterr().err
    assert runs(api) == []
    assert cli.main([*words, str(good)]) == 0
    (run,) = runs(api)
    assert run["metrics"]["tok_s"] == {"value": 52.5, "count": 1} | run["metrics"]["tok_s"]
    assert run["metrics"]["mean_ttft_ms"]["value"] == 195.5


@pytest.mark.usefixtures("served", "inv")
def test_an_archive_goes_out_and_comes_in_on_the_command_line(
    api: Caller, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.post("investigations/slow-draft/script-runs", {"title": "first", "config": {"topk": "1"}})
    place = tmp_path / "slow-draft.zip"
    assert cli.main(["export", "slow-draft", "--output", str(place)]) == 0
    capsys.readouterr()
    assert cli.main(["import", str(place), "--json"]) == 0
    (made,) = json.loads(capsys.readouterr().out)
    assert made["slug"] != "slow-draft"
    (run,) = api.get(f"investigations/{made['slug']}/runs")["items"]
    assert run["params"] == {"topk": "1"}
    place.write_bytes(b"PK\x03\x04 no archive")
    assert cli.main(["import", str(place)]) == 4
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
