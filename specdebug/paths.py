"""Where the program keeps its state: one data folder, never the checkout."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

# sun_path holds 108 bytes with its closing zero; a longer socket path cannot be bound at all.
LONGEST_SOCKET_PATH = 107


def data_dir() -> Path:
    """The data folder: $SPECDEBUG_DATA, else specdebug/ under the user's data home."""
    chosen = os.environ.get("SPECDEBUG_DATA")
    if chosen:
        return Path(chosen).expanduser().absolute()
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "specdebug"


def broker_socket(data: Path) -> Path:
    """The embedded broker's Unix socket: in the data folder, or in a private folder under the
    system's temporary one where the data folder's path is too long for a socket."""
    plain = data / "run" / "valkey.sock"
    if len(os.fsencode(plain)) <= LONGEST_SOCKET_PATH:
        return plain
    name = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"specdebug-{os.getuid()}-{name}" / "valkey.sock"
