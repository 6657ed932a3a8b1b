"""Runs of other trackers, read from their files and sent as runs of ours; each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from specdebug.client.api import Client, Investigation
from specdebug.client.files import upload

# Rows of points a call; the server takes 20,000 points at once.
ROWS = 1000


@dataclass(frozen=True)
class ForeignRun:
    """One run as another tracker has it. key: its id there. points: (step, seconds, {metric:
    value}); repeats: figures of measured passes, where the file has such."""

    key: str
    title: str
    params: dict[str, Any] = field(default_factory=dict)
    points: Callable[[], Iterator[tuple[int, float, dict[str, float]]]] = lambda: iter(())
    repeats: tuple[dict[str, Any], ...] = ()
    state: str = "done"
    reason: str = ""
    note: str = ""
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Found:
    """What a file or folder holds; problems: what could not be read, a sentence each."""

    runs: tuple[ForeignRun, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sent:
    """fresh: False where the run had been taken in before."""

    name: str
    fresh: bool


# Named by the command line; each is a module here.
SOURCES = ("mlflow", "wandb", "tensorboard", "bench", "aiperf", "guidellm")


def read(source: str, where: str, experiment: str | None = None) -> Found:
    """The runs in a file or folder, or of MLflow's server by its URL. Raises OSError and ValueError
    with what is wrong."""
    found: Found
    if where.startswith(("http://", "https://")):
        if source != "mlflow":
            raise ValueError(f"{where}: only a server of MLflow can be read by its URL")
        server = import_module("specdebug.client.neighbours.mlflow_server")
        found = server.read(where, experiment)
    else:
        module = import_module(f"specdebug.client.neighbours.{source}")
        path = Path(where)
        found = module.read(path, experiment) if source == "mlflow" else module.read(path)
    return found


def send(client: Client, inv: Investigation, run: ForeignRun) -> Sent:
    """Take a run in, with points, repeats and files; one with this key is not taken twice."""
    marked = f'imported_from = "{run.key}"'
    known = next(client.connection.pages(f"{inv.path}/runs", {"filter": f"params.{marked}"}), None)
    if known is not None and known["state"] != "running":
        return Sent(f"{inv.slug}/{known['label']}", fresh=False)
    if known is None:
        config = {**run.params, "imported_from": run.key}
        ours = inv.run(run.title[:200] or run.key, config=config, note=run.note)
        path, name = ours.path, ours.name
    else:  # an earlier import was interrupted: it goes on where it was
        path, name = f"{inv.path}/runs/{known['number']}", f"{inv.slug}/{known['label']}"
    _points(client, path, run)
    if run.repeats:
        body = {"first": 0, "repeats": list(run.repeats)}
        client.connection.call("POST", f"{path}/repeats", body)

    for file in run.files:
        upload(client.connection, path, file, None)
    client.connection.call("POST", f"{path}/finish", {"state": run.state, "reason": run.reason})
    return Sent(name, fresh=True)


def _points(client: Client, path: str, run: ForeignRun) -> None:
    rows: list[Any] = []
    first = 0
    for step, moment, values in run.points():
        rows.append([step, moment, values])
        if len(rows) == ROWS:
            first = _rows(client, path, first, rows)
            rows = []
    if rows:
        _rows(client, path, first, rows)


def _rows(client: Client, path: str, first: int, rows: list[Any]) -> int:
    body = {"writer": "import", "first_row": first, "rows": rows}
    client.connection.call("POST", f"{path}/points", body)
    return first + len(rows)
