"""Files and servers of other trackers, in the shapes in which they are written: what is read, and
what is said of what cannot be."""

from __future__ import annotations

import json
import math
import sqlite3
import struct
from pathlib import Path
from typing import Any

import httpx
import pytest

from specdebug.client.neighbours import ForeignRun, read
from specdebug.client.neighbours.mlflow_server import read as read_server


def rows(run: ForeignRun) -> list[tuple[int, float, dict[str, float]]]:
    return list(run.points())


# ---- MLflow --------------------------------------------------------------------------------------


def mlruns(root: Path) -> Path:
    """The folder as MLflow 2 and 3 write it: a finished, a failed, a running and a deleted run."""
    experiment = root / "mlruns" / "314159"
    experiment.mkdir(parents=True)
    (experiment / "meta.yaml").write_text("experiment_id: '314159'\nname: nightly\n")
    runs = (("aa", 3, "active"), ("bb", 4, "active"), ("cc", 1, "active"), ("dd", 3, "deleted"))
    for name, status, stage in runs:
        own = experiment / name
        for folder in ("params", "metrics/loss", "tags"):
            (own / folder).mkdir(parents=True)
        (own / "meta.yaml").write_text(
            f"run_id: {name}\nrun_name: run {name}\nstatus: {status}\nlifecycle_stage: {stage}\n"
        )
        (own / "params" / "num_steps").write_text("3")
        (own / "metrics" / "tok_s").write_text("1000 50.5 0\n2000 51.5 1\n3000 nan 2\n")
        (own / "metrics" / "loss" / "val").write_text("1000 0.5 0\n")
        (own / "tags" / "mlflow.note.content").write_text("by hand")
    return root / "mlruns"


def test_a_folder_of_mlflow_gives_its_ended_runs(tmp_path: Path) -> None:
    found = read("mlflow", str(mlruns(tmp_path)), "nightly")
    assert [(run.key, run.title, run.state) for run in found.runs] == [
        ("mlflow:aa", "run aa", "done"),
        ("mlflow:bb", "run bb", "failed"),
    ]
    first = found.runs[0]
    assert first.params == {"num_steps": "3"}
    assert first.note == "by hand"
    assert rows(first) == [
        (0, 1.0, {"loss/val": 0.5}),
        (0, 1.0, {"tok_s": 50.5}),
        (1, 2.0, {"tok_s": 51.5}),
    ]
    assert found.problems == ()


def test_a_damaged_line_of_mlflow_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    root = mlruns(tmp_path)
    (root / "314159" / "aa" / "metrics" / "tok_s").write_text("1000 50.5 0\nrubbish\n2000 51 1\n")
    found = read("mlflow", str(root))
    assert len(found.problems) == 1
    assert found.problems[0].endswith("metrics/tok_s, line 2: not `milliseconds value step`")
    assert len(rows(found.runs[0])) == 3


def test_a_database_of_mlflow_gives_its_ended_runs(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    db = sqlite3.connect(path)
    db.executescript(
        "CREATE TABLE experiments (experiment_id INTEGER, name TEXT);"
        "CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, lifecycle_stage TEXT,"
        " start_time BIGINT, experiment_id INTEGER);"
        "CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);"
        "INSERT INTO tags VALUES ('mlflow.note.content', 'by hand', 'aa');"
        "CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);"
        "CREATE TABLE metrics (key TEXT, value REAL, timestamp BIGINT, step BIGINT,"
        " is_nan BOOLEAN, run_uuid TEXT);"
        "INSERT INTO experiments VALUES (1, 'nightly'), (2, 'other');"
        "INSERT INTO runs VALUES ('aa', 'first', 'FINISHED', 'active', 1, 1),"
        " ('bb', 'second', 'RUNNING', 'active', 2, 1), ('cc', 'third', 'FINISHED', 'active', 3, 2);"
        "INSERT INTO params VALUES ('topk', '1', 'aa');"
        "INSERT INTO metrics VALUES ('tok s', 50, 1000, 0, 0, 'aa'), ('tok s', 0, 2, 1, 1, 'aa');"
    )
    db.commit()
    db.close()
    found = read("mlflow", str(path), "nightly")
    assert [(run.key, run.params) for run in found.runs] == [("mlflow:aa", {"topk": "1"})]
    assert rows(found.runs[0]) == [(0, 1.0, {"tok_s": 50.0})]
    assert found.runs[0].note == "by hand"
    with pytest.raises(ValueError, match="holds no finished run of weekly"):
        read("mlflow", str(path), "weekly")


class Tracker(httpx.BaseTransport):
    """The three calls of MLflow's REST API, a page at a time."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/2.0/mlflow/")
        if path == "experiments/search":
            return self._page(request, "experiments", [{"experiment_id": "1", "name": "nightly"}])
        if path == "runs/search":
            assert json.loads(request.content)["experiment_ids"] == ["1"]
            run = {
                "info": {"run_id": "aa", "run_name": "first", "status": "FINISHED"},
                "data": {
                    "params": [{"key": "topk", "value": "1"}],
                    "metrics": [{"key": "tok_s", "value": 51.0}],
                },
            }
            going = {"info": {"run_id": "bb", "status": "RUNNING"}, "data": {}}
            return self._page(request, "runs", [run, going])
        assert path == "metrics/get-history"
        history = [
            {"key": "tok_s", "value": 50.0 + step, "timestamp": 1000, "step": step}
            for step in range(2)
        ]
        return self._page(request, "metrics", history)

    def _page(self, request: httpx.Request, name: str, items: list[Any]) -> httpx.Response:
        body = json.loads(request.content) if request.content else dict(request.url.params)
        at = int(body.get("page_token", 0))
        more = {"next_page_token": str(at + 1)} if at + 1 < len(items) else {}
        return httpx.Response(200, json={name: items[at : at + 1], **more})


def test_a_server_of_mlflow_is_read_page_by_page() -> None:
    found = read_server("http://tracker", "nightly", Tracker())
    assert [(run.key, run.title, run.params) for run in found.runs] == [
        ("mlflow:aa", "first", {"topk": "1"})
    ]
    assert rows(found.runs[0]) == [(0, 1.0, {"tok_s": 50.0}), (1, 1.0, {"tok_s": 51.0})]
    with pytest.raises(ValueError, match="has no experiment 'weekly'"):
        read_server("http://tracker", "weekly", Tracker())


def test_a_server_that_is_none_of_mlflow_is_named() -> None:
    page = httpx.MockTransport(lambda request: httpx.Response(404, text="<html>not here"))
    with pytest.raises(ValueError, match="answers 404 to experiments/search; is it an MLflow"):
        read_server("http://tracker", None, page)
    with pytest.raises(ValueError, match="does not answer"):
        read("mlflow", "http://127.0.0.1:9")
    with pytest.raises(ValueError, match="only a server of MLflow"):
        read("wandb", "http://127.0.0.1:9")


# ---- W&B and TensorBoard -------------------------------------------------------------------------


def test_a_history_of_wandb_with_its_settings(tmp_path: Path) -> None:
    folder = tmp_path / "run-20260101_000000-abc"
    folder.mkdir()
    (folder / "config.json").write_text(
        json.dumps({"lr": {"desc": None, "value": 0.1}, "_wandb": {"value": {}}, "steps": 3})
    )
    (folder / "history.jsonl").write_text(
        '{"_step": 0, "_timestamp": 5.5, "loss": 1.5, "name": "x"}\nrubbish\n'
        '{"_step": 1, "loss": 1}\n'
    )
    found = read("wandb", str(folder / "history.jsonl"))
    assert found.runs[0].params == {"lr": 0.1, "steps": 3}
    assert rows(found.runs[0]) == [(0, 5.5, {"loss": 1.5}), (1, 0.0, {"loss": 1.0})]
    assert [p.rpartition("history.jsonl")[2] for p in found.problems] == [
        ", line 2: no JSON object"
    ]


def events(values: list[float]) -> bytes:
    """Records of an event file, a scalar `loss` in each; checksums are not looked at."""
    whole = b""
    for step, value in enumerate(values):
        scalar = b"\x0a\x04loss\x15" + struct.pack("<f", value)
        summary = b"\x0a" + bytes([len(scalar)]) + scalar
        event = b"\x09" + struct.pack("<d", 7.0 + step) + b"\x10" + bytes([step])
        event += b"\x2a" + bytes([len(summary)]) + summary
        whole += struct.pack("<Q", len(event)) + b"crc!" + event + b"crc!"
    return whole


def test_event_files_of_tensorboard_below_a_folder(tmp_path: Path) -> None:
    for name in ("train", "eval"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "events.out.tfevents.1").write_bytes(events([0.5, 0.25, math.nan]))
    found = read("tensorboard", str(tmp_path))
    assert [run.title for run in found.runs] == ["eval", "train"]
    assert rows(found.runs[0]) == [(0, 7.0, {"loss": 0.5}), (1, 8.0, {"loss": 0.25})]
    assert found.problems == ()


def test_a_cut_event_file_is_taken_up_to_the_cut_and_named(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(events([0.5, 0.25])[:-9])
    found = read("tensorboard", str(path))
    assert len(rows(found.runs[0])) == 1
    assert "is cut or damaged at byte" in found.problems[0]


# ---- benchmarks ----------------------------------------------------------------------------------


def test_lines_of_one_setting_are_repeats_of_one_run(tmp_path: Path) -> None:
    path = tmp_path / "bench.jsonl"
    lines = [
        {"backend": "sglang", "output_throughput": tok_s, "duration": 10.0, "completed": 8,
         "max_concurrency": wide, "accept_length": 2.5, "total_output_tokens": 900}
        for wide, tok_s in ((1, 90.0), (1, 91.0), (8, 400.0))
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)))
    found = read("bench", str(path))
    assert [(run.params["max_concurrency"], len(run.repeats)) for run in found.runs] == [
        (1, 2),
        (8, 1),
    ]
    assert found.runs[0].repeats[0] == {
        "tok_s": 90.0, "accept_len": 2.5, "seconds": 10.0, "requests": 8, "tokens": 900,
    }  # fmt: skip


def test_the_result_of_vllm_is_a_repeat(tmp_path: Path) -> None:
    path = tmp_path / "vllm.json"
    path.write_text(
        json.dumps(
            {"date": "20260101-000000", "backend": "vllm", "model_id": "m", "duration": 20.0,
             "completed": 100, "total_output_tokens": 2000, "output_throughput": 100.0,
             "total_token_throughput": 300.0, "max_concurrency": 4, "mean_ttft_ms": 30.0,
             "spec_decode_acceptance_length": 2.25}
        )
    )  # fmt: skip
    (run,) = read("bench", str(path)).runs
    assert run.repeats == (
        {"tok_s": 100.0, "accept_len": 2.25, "seconds": 20.0, "requests": 100, "tokens": 2000},
    )


AIPERF = {
    "schema_version": "1.3",
    "aiperf_version": "0.10.0",
    "output_token_throughput": {"unit": "tokens/sec", "avg": 52.5},
    "request_count": {"unit": "requests", "avg": 10.0},
    "total_output_tokens": {"unit": "tokens", "avg": 640.0},
    "benchmark_duration": {"unit": "sec", "avg": 12.25},
    "time_to_first_token": {"unit": "ms", "avg": 195.5, "p50": 175.0},
    "inter_token_latency": {"unit": "us", "avg": 35000.0},
    "input_config": {"loadgen": {"concurrency": 2}, "endpoint": {"model_names": ["kimi"]}},
    "was_cancelled": False,
}


def test_a_summary_of_aiperf_is_a_measured_pass(tmp_path: Path) -> None:
    path = tmp_path / "profile_export_aiperf.json"
    path.write_text(json.dumps(AIPERF))
    (run,) = read("aiperf", str(path)).runs
    assert run.repeats == ({"tok_s": 52.5, "seconds": 12.25, "requests": 10, "tokens": 640},)
    assert run.params["concurrency"] == 2
    assert run.params["model"] == "kimi"
    assert rows(run) == [(0, 0.0, {"mean_ttft_ms": 195.5, "mean_itl_ms": pytest.approx(35.0)})]


def guidellm(speed: float | None) -> dict[str, Any]:
    def over(value: float) -> dict[str, Any]:
        return {"successful": {"mean": value}, "total": {"mean": 0.0}}

    metrics = {
        "request_totals": {"successful": 20, "incomplete": 1, "errored": 0, "total": 21},
        "output_token_count": over(128.0),
        "time_to_first_token_ms": over(40.0),
        "request_concurrency": over(3.9),
    }
    if speed is not None:
        metrics["output_tokens_per_second"] = over(speed)
    strategy = {"type_": "concurrent", "streams": 4}
    return {"config": {"strategy": strategy}, "duration": 30.0, "metrics": metrics}


def test_each_benchmark_of_guidellm_is_a_run(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.json"
    path.write_text(json.dumps({"benchmarks": [guidellm(85.5), guidellm(None)]}))
    found = read("guidellm", str(path))
    (run,) = found.runs
    assert run.title == "GuideLLM, concurrent 4"
    assert run.repeats == ({"tok_s": 85.5, "seconds": 30.0, "requests": 20, "tokens": 2560},)
    assert run.params["streams"] == 4
    assert rows(run) == [(0, 0.0, {"mean_ttft_ms": 40.0})]
    assert found.problems[0].endswith("benchmark 1: no output throughput of completed requests")


@pytest.mark.parametrize(
    "source", ["mlflow", "wandb", "tensorboard", "bench", "aiperf", "guidellm"]
)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff" * 400,
        b"hello\n",
        b"{",
        b"[1]",
        b"{}",
        b"[" * 20_000,
        b'{"benchmarks": [1]}',
    ],
    ids=range(8),
)
def test_what_is_no_such_file_is_refused_in_one_line(
    tmp_path: Path, source: str, content: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="file") as refused:
        read(source, str(path))
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400
    with pytest.raises(OSError, match="gone"):
        read(source, str(tmp_path / "gone"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"was_cancelled": True}, "was cancelled"),
        ({"output_token_throughput": {"unit": "tokens/sec", "avg": 0}}, "no summary of AIPerf"),
        ({"output_token_throughput": 52.5}, "no summary of AIPerf"),
    ],
)
def test_a_summary_of_aiperf_that_measured_nothing_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(AIPERF | change))
    with pytest.raises(ValueError, match=said):
        read("aiperf", str(path))
