"""Evidence of a run or an investigation: added by content, found again by kind, read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import IO, Any

from experiments import store
from experiments.models import Evidence, Investigation, Run
from specdebug.sglang.recognise import recognise

HEAD = 1 << 20
# A model's config.json has a few kilobytes; what is far larger is none.
LARGEST_CONFIG = 4 << 20

SERVER_LOG = "server-log"
SERVER_INFO = "server-info"
DRAFT_CONFIG = "draft-config"
TARGET_CONFIG = "target-config"
METRICS = "metrics"
# What a worker keeps beside the log: for people and later readers, no input of the checks, which
# have the same figures from the rows.
REQUESTS, CLIENT_OUTPUT, ENGINE_DIFF = "requests", "client-output", "engine-diff"
BESIDE = (REQUESTS, CLIENT_OUTPUT, ENGINE_DIFF, "gpu-samples")


def clean_name(name: str) -> str:
    """A file's own name without folders and control characters, "file" where nothing is left."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(c for c in last if c.isprintable()).strip()[:200] or "file"


def add(
    *,
    investigation: Investigation,
    run: Run | None,
    name: str,
    stream: IO[bytes],
    kind: str = "",
    by: str = "",
    limit: int = store.DEFAULT_LIMIT,
) -> Evidence:
    """Keep a file; its kind is told from its content unless `kind` is given.

    The same content under the same name for the same run is one row, however often it is added.
    """
    blob = store.put(stream, limit=limit)
    problem = ""
    if not kind:
        with store.path_of(blob.sha256).open("rb") as file:
            told = recognise(name, file.read(HEAD))
        kind = told.kind
        problem = told.reason if told.kind == "unusable" else ""
    return Evidence.objects.get_or_create(
        investigation=investigation,
        run=run,
        blob=blob,
        name=clean_name(name),
        defaults={"kind": kind, "problem": problem, "added_by": by[:150]},
    )[0]


def as_json(data: Mapping[str, Any]) -> str:
    """An object as the text it is kept under: same object, same text."""
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False, default=str)


def unsaved(run: Run, name: str, kind: str, stream: IO[bytes]) -> Evidence:
    """A row of a run whose content is stored and which is not written yet."""
    return Evidence(
        investigation=run.investigation,
        run=run,
        blob=store.put(stream),
        name=name,
        kind=kind,
    )


def newest(rows: Iterable[Evidence], kind: str) -> Evidence | None:
    """The last one added of a kind; None when there is none."""
    found = [row for row in rows if row.kind == kind]
    return found[-1] if found else None


def json_of(row: Evidence | None) -> dict[str, Any] | None:
    """The object that an evidence file holds; None where it is missing, broken or no object."""
    if row is None or row.blob.size > LARGEST_CONFIG:
        return None
    try:
        data = json.loads(store.path_of(row.blob_id).read_bytes())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None
