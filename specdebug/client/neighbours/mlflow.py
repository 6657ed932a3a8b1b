"""MLflow's runs, from its folder of files (mlruns) or its SQLite database; MLflow is not needed,
and a running server is read by `mlflow_server`.

Layouts as of MLflow 2 and 3: EXPERIMENT/RUN/{meta.yaml,params,metrics,tags}, and the tables
experiments, runs, params, metrics, latest_metrics and tags.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from specdebug.client.neighbours import ForeignRun, Found

STATES = {"FINISHED": "done", "FAILED": "failed", "KILLED": "cancelled"}
# The file store writes numbers, the database words.
NUMBERS = {"3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_NAME = re.compile(r"[^A-Za-z0-9_.:/@-]")
_LARGEST_META = 1 << 20
_RUNS = (
    "SELECT r.run_uuid, r.name, r.status FROM runs r JOIN experiments e"
    " ON e.experiment_id = r.experiment_id WHERE r.lifecycle_stage = 'active'"
)

_NOTES = "SELECT run_uuid, value FROM tags WHERE key = 'mlflow.note.content'"


def read(path: Path, experiment: str | None = None) -> Found:
    """The finished runs. Raises ValueError where it is neither folder nor database of MLflow."""
    if path.is_dir():
        return _folder(path, experiment)
    with path.open("rb") as file:
        if file.read(16) != b"SQLite format 3\0":
            raise ValueError(f"{path} is neither a folder nor an SQLite database of MLflow")
    return _database(path, experiment)


def metric_name(name: str) -> str:
    """A metric's name as the record takes it."""
    clean = _NAME.sub("_", name)[:80]
    return clean if clean[:1].isalpha() or clean[:1] == "_" else f"_{clean}"[:80]


# ---- the folder of files -------------------------------------------------------------------------


def _folder(root: Path, experiment: str | None) -> Found:
    runs: list[ForeignRun] = []
    problems: list[str] = []
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        meta = _meta(folder / "meta.yaml")
        if not meta or (experiment and experiment not in (folder.name, meta.get("name"))):
            continue
        for own in sorted(path for path in folder.iterdir() if (path / "meta.yaml").is_file()):
            try:
                run = _file_run(own)
                if run is not None:
                    for _ in _file_points(own / "metrics", problems):
                        pass
                    runs.append(run)
            except (OSError, ValueError) as error:
                problems.append(f"{own}: {error}")
    if not runs and not problems:
        raise ValueError(
            f"{root} holds no run of MLflow" + (f" in {experiment}" * bool(experiment))
        )
    return Found(tuple(runs), tuple(problems))


def _meta(path: Path) -> dict[str, str]:
    """The flat `key: value` lines of a meta.yaml; empty where there is none."""
    try:
        if path.stat().st_size > _LARGEST_META:
            return {}
        text = path.read_text("utf-8", "replace")
    except OSError:
        return {}
    found = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and re.fullmatch(r"\w+", key):
            found[key] = value.strip().strip("'\"")
    return found


def _file_run(folder: Path) -> ForeignRun | None:
    meta = _meta(folder / "meta.yaml")
    status = NUMBERS.get(meta.get("status", ""), meta.get("status", ""))
    if status not in STATES or meta.get("lifecycle_stage") == "deleted":
        return None
    params = {
        path.relative_to(folder / "params").as_posix()[:80]: path.read_text("utf-8", "replace")[
            :5000
        ]
        for path in _files(folder / "params")
    }
    tags = folder / "tags"
    title = meta.get("run_name") or _text(tags / "mlflow.runName") or folder.name
    return ForeignRun(
        key=f"mlflow:{meta.get('run_id') or meta.get('run_uuid') or folder.name}",
        title=title,
        params=params,
        points=lambda: _file_points(folder / "metrics"),
        state=STATES[status],
        reason="failed in MLflow" if status == "FAILED" else "",
        note=_text(tags / "mlflow.note.content"),
    )


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")[:5000]
    except OSError:
        return ""


def _file_points(
    folder: Path, problems: list[str] | None = None
) -> Iterator[tuple[int, float, dict[str, float]]]:
    """Lines `milliseconds value step`, a file per metric; unreadable ones go into `problems`."""
    for path in _files(folder):
        name = metric_name(path.relative_to(folder).as_posix())
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                parts = line.split()
                try:
                    moment, value = int(parts[0]) / 1000, float(parts[1])
                    step = int(parts[2]) if len(parts) > 2 else 0
                except (ValueError, IndexError):
                    if parts and problems is not None:
                        problems.append(f"{path}, line {number}: not `milliseconds value step`")
                    continue
                if math.isfinite(value):
                    yield step, moment, {name: value}


# ---- the database --------------------------------------------------------------------------------


def _database(path: Path, experiment: str | None) -> Found:
    # Read only: the tracker may be at work on it.
    db = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)
    try:
        wanted, values = "", []
        if experiment:
            wanted = " AND (e.name = ? OR CAST(e.experiment_id AS TEXT) = ?)"
            values = [experiment, experiment]
        notes = dict(db.execute(_NOTES))
        rows = db.execute(f"{_RUNS}{wanted} ORDER BY r.start_time", values).fetchall()
        runs = [
            ForeignRun(
                key=f"mlflow:{run_id}",
                title=name or run_id,
                params={
                    str(key)[:80]: value
                    for key, value in db.execute(
                        "SELECT key, value FROM params WHERE run_uuid = ?", [run_id]
                    )
                },
                note=(notes.get(run_id) or "")[:5000],
                points=lambda run_id=run_id: _database_points(path, run_id),  # type: ignore[misc]
                state=STATES[status],
                reason="failed in MLflow" if status == "FAILED" else "",
            )
            for run_id, name, status in rows
            if status in STATES
        ]
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path} is no database of MLflow: {error}") from None
    finally:
        db.close()
    if not runs:
        raise ValueError(f"{path} holds no finished run" + (f" of {experiment}" * bool(experiment)))
    return Found(tuple(runs))


def _database_points(path: Path, run_id: str) -> Iterator[tuple[int, float, dict[str, float]]]:
    db = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)
    try:
        rows = db.execute(
            "SELECT key, value, timestamp, step, is_nan FROM metrics WHERE run_uuid = ?"
            " ORDER BY key, step, timestamp",
            [run_id],
        )
        for key, value, moment, step, is_nan in rows:
            if not is_nan and value is not None and math.isfinite(value):
                yield int(step or 0), (moment or 0) / 1000, {metric_name(key): float(value)}
    finally:
        db.close()
