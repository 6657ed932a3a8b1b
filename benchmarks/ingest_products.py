"""The products that benchmarks/ingest.py measures, each through its own HTTP API."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
from ingest import ROOT, Product, last_values, params, points

READY_SECONDS = 180


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def wait(http: httpx.Client, method: str, path: str, **options: Any) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        try:
            if http.request(method, path, **options).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"{path} was not up in {READY_SECONDS} s")


def good(answer: httpx.Response) -> Any:
    assert answer.status_code < 300, (answer.status_code, answer.text[:300])
    return answer.json() if answer.content else {}


def copies(db: sqlite3.Connection, table: str, row: sqlite3.Row, **changes: Any) -> None:
    """Insert `row` once more with some columns changed."""
    values = {**dict(row), **changes}
    columns = ", ".join(f'"{name}"' for name in values)
    marks = ", ".join("?" * len(values))
    db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", list(values.values()))  # noqa: S608


class Ours(Product):
    name = "specdebug"

    def __init__(self) -> None:
        from specdebug import __version__

        self.version = __version__
        self.folder = Path(tempfile.mkdtemp(prefix="ingest-ours-"))
        self.env = {
            "SPECDEBUG_DATA": str(self.folder),
            "DJANGO_SETTINGS_MODULE": "specdebug.settings",
            "PYTHONPATH": str(ROOT),
            "SPECDEBUG_API_RATE": "1000000",
        }
        token = subprocess.run(
            [sys.executable, "-m", "django", "api_token", "--migrate"],
            env={**os.environ, **self.env},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()[-1]
        port = free_port()
        self.launch(
            [
                *(sys.executable, "-m", "gunicorn", "specdebug.wsgi"),
                *("-b", f"127.0.0.1:{port}", "--workers", "1", "--threads", "4"),
            ],
            self.env,
            self.folder,
        )
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{port}/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=120,
        )
        wait(self.http, "GET", "healthz")
        self.base = "api/v1/investigations"
        body = {"title": "ingest", "question": "How fast?"}
        slug = good(self.http.post(self.base, json=body))["slug"]
        self.runs = f"{self.base}/{slug}"

    def create(self, i: int) -> Any:
        body = {"title": f"run-{i}", "config": params(i)}
        return good(self.http.post(f"{self.runs}/script-runs", json=body))["number"]

    def log(self, run: Any, i: int) -> None:
        now = time.time()
        rows = [[step, now + step, values] for step, values in points(i)]
        body = {"writer": "w", "first_row": 0, "rows": rows}
        good(self.http.post(f"{self.runs}/runs/{run}/points", json=body))

    def finish(self, run: Any) -> None:
        good(self.http.post(f"{self.runs}/runs/{run}/finish", json={}))

    def fill(self, count: int) -> None:
        """100 runs through the API, the rest as copied rows: a search reads no history."""
        body = {"title": "many", "question": "How fast?"}
        self.runs = f"{self.base}/{good(self.http.post(self.base, json=body))['slug']}"
        for i in range(100):
            run = self.create(i)
            self.log(run, i)
            self.finish(run)
        db = sqlite3.connect(self.folder / "specdebug.sqlite3", timeout=60)
        db.row_factory = sqlite3.Row
        run = db.execute("SELECT * FROM experiments_run ORDER BY id DESC LIMIT 1").fetchone()
        tables = {
            name: db.execute(f"SELECT * FROM {name} WHERE run_id = ?", [run["id"]]).fetchall()  # noqa: S608
            for name in ("experiments_configentry", "experiments_metricsummary")
        }
        pk = run["id"]
        for i in range(100, count):
            pk += 1
            copies(db, "experiments_run", run, id=pk, number=i, title=f"run-{i}", position=i + 1.0)
            wanted, known = last_values(i), params(i)
            for row in tables["experiments_metricsummary"]:
                value = wanted[row["name"]]
                copies(db, "experiments_metricsummary", row, id=None, run_id=pk, value=value)
            for row in tables["experiments_configentry"]:
                value = json.dumps(known[row["key"]])
                copies(db, "experiments_configentry", row, id=None, run_id=pk, requested=value)
        db.commit()
        db.close()

    def ordered(self) -> int:
        asked = {"filter": "metrics.tok_s > 60", "order": "-metrics.tok_s", "limit": "50"}
        return len(good(self.http.get(f"{self.runs}/runs", params=asked))["items"])


class MLflow(Product):
    name = "mlflow"

    def __init__(self, bin_: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ingest-mlflow-"))
        self.db = self.folder / "main.db"
        port = free_port()
        mlflow = str(bin_.absolute() / "mlflow")
        shown = subprocess.run([mlflow, "--version"], capture_output=True, text=True, check=True)
        self.version = shown.stdout.split()[-1]
        self.launch(
            [
                *(mlflow, "server", "--backend-store-uri", f"sqlite:///{self.db}"),
                *("--default-artifact-root", str(self.folder / "art")),
                *("--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
            ],
            {
                "MLFLOW_DISABLE_TELEMETRY": "true",
                "DO_NOT_TRACK": "1",
                "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            },
            self.folder,
        )
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}/", timeout=120)
        wait(self.http, "GET", "health")
        self.experiment = self._experiment("ingest")

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return good(self.http.post(f"api/2.0/mlflow/{path}", json=body))

    def _experiment(self, name: str) -> str:
        return str(self._post("experiments/create", {"name": name})["experiment_id"])

    def create(self, i: int) -> Any:
        body = {
            "experiment_id": self.experiment,
            "start_time": int(time.time() * 1000),
            "run_name": f"run-{i}",
        }
        run = self._post("runs/create", body)["run"]["info"]["run_id"]
        pairs = [{"key": key, "value": value} for key, value in params(i).items()]
        self._post("runs/log-batch", {"run_id": run, "params": pairs})
        return run

    def log(self, run: Any, i: int) -> None:
        now = int(time.time() * 1000)
        flat = [
            {"key": key, "value": value, "timestamp": now + step, "step": step}
            for step, values in points(i)
            for key, value in values.items()
        ]
        self._post("runs/log-batch", {"run_id": run, "metrics": flat})

    def finish(self, run: Any) -> None:
        body = {"run_id": run, "status": "FINISHED", "end_time": int(time.time() * 1000)}
        self._post("runs/update", body)

    def fill(self, count: int) -> None:
        self.experiment = self._experiment("many")
        for i in range(100):
            run = self.create(i)
            self.log(run, i)
            self.finish(run)
        db = sqlite3.connect(self.db, timeout=60)
        db.row_factory = sqlite3.Row
        wanted = [int(self.experiment)]
        row = db.execute("SELECT * FROM runs WHERE experiment_id = ? LIMIT 1", wanted).fetchone()
        run = row["run_uuid"]
        latest = db.execute("SELECT * FROM latest_metrics WHERE run_uuid = ?", [run]).fetchall()
        param = db.execute("SELECT * FROM params WHERE run_uuid = ?", [run]).fetchall()
        for i in range(100, count):
            made = uuid.uuid4().hex
            start = row["start_time"] + i
            copies(db, "runs", row, run_uuid=made, name=f"run-{i}", start_time=start)
            values, known = last_values(i), params(i)
            for old in latest:
                copies(db, "latest_metrics", old, run_uuid=made, value=values[old["key"]])
            for old in param:
                copies(db, "params", old, run_uuid=made, value=known[old["key"]])
        db.commit()
        db.close()

    def ordered(self) -> int:
        body = {
            "experiment_ids": [self.experiment],
            "filter": "metrics.tok_s > 60",
            "order_by": ["metrics.tok_s DESC"],
            "max_results": 50,
        }
        return len(self._post("runs/search", body)["runs"])


class Trackio(Product):
    """A run is born with its first rows, which carry its parameters; there is no metric filter, so
    the search is the SQL that its read-only endpoint takes."""

    name = "trackio"
    TOKEN = "bench-token"  # noqa: S105 (of a server that lives for this run)
    QUERY = (
        "WITH last AS (SELECT run_id, json_extract(metrics,'$.tok_s') v, MAX(step) FROM metrics"
        " GROUP BY run_id) SELECT last.run_id, last.v, c.config FROM last JOIN configs c"
        " ON c.run_id = last.run_id WHERE last.v > 60 ORDER BY last.v DESC LIMIT 50"
    )

    def __init__(self, bin_: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ingest-trackio-"))
        port = free_port()
        python = str(bin_.absolute() / "python")
        ask = "import trackio; print(trackio.__version__)"
        told = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
        self.version = told.stdout.strip()
        self.launch(
            [str(bin_.absolute() / "trackio"), "show", "--host", "127.0.0.1"],
            {
                "TRACKIO_DIR": str(self.folder),
                "GRADIO_SERVER_PORT": str(port),
                "TRACKIO_WRITE_TOKEN": self.TOKEN,
                "GRADIO_ANALYTICS_ENABLED": "False",
                "HF_HUB_OFFLINE": "1",
                "HF_HUB_DISABLE_TELEMETRY": "1",
                "BROWSER": "/bin/true",
                "HF_HOME": str(self.folder / "hf"),
            },
            self.folder,
        )
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{port}/api/",
            headers={"X-Trackio-Write-Token": self.TOKEN},
            timeout=120,
        )
        wait(self.http, "POST", "get_all_projects", json={})
        self.project, self.made = "ingest", 0

    def _post(self, name: str, **values: Any) -> Any:
        answer = good(self.http.post(name, json={"kwargs": values}))
        assert not answer.get("error"), answer
        return answer["data"]

    def _rows(self, run: str, i: int, rows: Any, *, config: bool) -> list[dict[str, Any]]:
        return [
            {
                "project": self.project,
                "run": run,
                "run_id": run,
                "step": step,
                "metrics": values,
                "config": params(i) if config else None,
                "log_id": None,
            }
            for step, values in rows
        ]

    def create(self, i: int) -> Any:
        self.made += 1
        run = f"{self.project}-{self.made:08d}"
        rows = self._rows(run, i, points(i)[:1], config=True)
        self._post("bulk_log", logs=rows, hf_token=None)
        return run

    def log(self, run: Any, i: int) -> None:
        rows = self._rows(run, i, points(i), config=False)
        self._post("bulk_log", logs=rows, hf_token=None)

    def finish(self, run: Any) -> None:
        """It has no such call."""

    def fill(self, count: int) -> None:
        self.project = "many"
        for i in range(100):
            run = self.create(i)
            self.log(run, i)
        for first in range(100, count, 100):
            rows = []
            for i in range(first, min(count, first + 100)):
                rows += self._rows(f"many-x{i:08d}", i, points(i)[-1:], config=True)
            self._post("bulk_log", logs=rows, hf_token=None)

    def ordered(self) -> int:
        return len(self._post("query_project", project=self.project, query=self.QUERY)["rows"])
