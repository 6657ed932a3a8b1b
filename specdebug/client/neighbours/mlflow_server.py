"""MLflow's finished runs from a running server, through its public REST API (2.0, as MLflow 2 and 3
serve it); MLflow is not needed and nothing is written there."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import httpx

from specdebug.client.neighbours import ForeignRun, Found
from specdebug.client.neighbours.mlflow import STATES, metric_name

PAGE = 200
# Points of one metric an answer; the server's own limit is 25,000.
HISTORY = 10_000
SECONDS = 60.0


def read(url: str, experiment: str | None, transport: httpx.BaseTransport | None = None) -> Found:
    """The finished runs of a server, or of one experiment by its name or id.

    Raises ValueError where it does not answer as MLflow does, or holds no finished run. The login
    is taken from $MLFLOW_TRACKING_TOKEN, or $MLFLOW_TRACKING_USERNAME and _PASSWORD.
    """
    server = _Server(url, transport)
    wanted = server.experiments(experiment)
    if not wanted:
        raise ValueError(f"{url} has no experiment" + (f" {experiment!r}" if experiment else ""))
    runs = tuple(_run(server, run) for run in server.runs(wanted) if _status(run) in STATES)
    if not runs:
        raise ValueError(
            f"{url} holds no finished run" + (f" in {experiment!r}" * bool(experiment))
        )
    return Found(runs)


class _Server:
    """The few calls that are needed; raises ValueError with what the server said."""

    def __init__(self, url: str, transport: httpx.BaseTransport | None) -> None:
        self.url = url.rstrip("/")
        headers, auth = {}, None
        if token := os.environ.get("MLFLOW_TRACKING_TOKEN"):
            headers["Authorization"] = f"Bearer {token}"
        elif name := os.environ.get("MLFLOW_TRACKING_USERNAME"):
            auth = httpx.BasicAuth(name, os.environ.get("MLFLOW_TRACKING_PASSWORD", ""))
        try:
            self.http = httpx.Client(
                base_url=f"{self.url}/api/2.0/mlflow/",
                headers=headers,
                auth=auth,
                timeout=SECONDS,
                transport=transport,
            )
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ValueError(f"{url!r} is no address of a server: {error}") from None

    def call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        try:
            answer = self.http.request(method, path, **options)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ValueError(
                f"{self.url} does not answer: {error or type(error).__name__}"
            ) from None
        try:
            data = answer.json()
        except ValueError:
            data = None
        if answer.status_code != 200 or not isinstance(data, dict):
            said = data.get("message") if isinstance(data, dict) else None
            raise ValueError(
                f"{self.url} answers {answer.status_code} to {path}"
                + (f": {said}" if said else "; is it an MLflow server?")
            )
        return data

    def experiments(self, wanted: str | None) -> list[str]:
        """Ids of the active experiments, or of the one of this name or id."""
        found: list[str] = []
        body: dict[str, Any] = {"max_results": PAGE}
        while True:
            answer = self.call("POST", "experiments/search", json=body)
            for row in answer.get("experiments", ()):
                number = str(row.get("experiment_id"))
                if wanted in (None, number, row.get("name")):
                    found.append(number)
            if not answer.get("next_page_token"):
                return found
            body["page_token"] = answer["next_page_token"]

    def runs(self, experiments: list[str]) -> Iterator[dict[str, Any]]:
        body: dict[str, Any] = {
            "experiment_ids": experiments,
            "max_results": PAGE,
            "order_by": ["attributes.start_time ASC"],
        }
        while True:
            answer = self.call("POST", "runs/search", json=body)
            yield from answer.get("runs", ())
            if not answer.get("next_page_token"):
                return
            body["page_token"] = answer["next_page_token"]

    def history(self, run: str, metric: str) -> Iterator[dict[str, Any]]:
        asked: dict[str, Any] = {"run_id": run, "metric_key": metric, "max_results": HISTORY}
        while True:
            answer = self.call("GET", "metrics/get-history", params=asked)
            yield from answer.get("metrics", ())
            if not answer.get("next_page_token"):
                return
            asked["page_token"] = answer["next_page_token"]


def _status(run: dict[str, Any]) -> str:
    return str(run.get("info", {}).get("status", ""))


def _run(server: _Server, run: dict[str, Any]) -> ForeignRun:
    info, data = run["info"], run.get("data", {})
    number = str(info.get("run_id") or info.get("run_uuid"))
    names = sorted(str(row["key"]) for row in data.get("metrics", ()))
    tags = {row.get("key"): str(row.get("value", "")) for row in data.get("tags", ())}
    return ForeignRun(
        key=f"mlflow:{number}",
        title=info.get("run_name") or tags.get("mlflow.runName") or number,
        params={str(row["key"])[:80]: str(row["value"])[:5000] for row in data.get("params", ())},
        points=lambda: _points(server, number, names),
        state=STATES[_status(run)],
        reason="failed in MLflow" if _status(run) == "FAILED" else "",
        note=tags.get("mlflow.note.content", "")[:5000],
    )


def _points(
    server: _Server, run: str, names: list[str]
) -> Iterator[tuple[int, float, dict[str, float]]]:
    for name in names:
        for row in server.history(run, name):
            try:
                value, step = float(row["value"]), int(row.get("step", 0))
                moment = int(row.get("timestamp", 0)) / 1000
            except (KeyError, TypeError, ValueError):
                continue
            if math.isfinite(value):
                yield step, moment, {metric_name(name): value}
