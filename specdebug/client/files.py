"""Files sent to an investigation or a run: by their hash where the server has them already."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from specdebug.client.http import ApiError, Connection


def upload(connection: Connection, path: str, file: Path, name: str | None) -> dict[str, Any]:
    """Attach a file by its hash where the server has it, else send it."""
    name = name or file.name
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    try:
        found: dict[str, Any] = connection.call(
            "POST", f"{path}/files/known", {"sha256": digest.hexdigest(), "name": name}
        )
    except ApiError as no:
        if no.status != 404:
            raise
        found = connection.upload("PUT", f"{path}/files", file, {"name": name})
    return found
