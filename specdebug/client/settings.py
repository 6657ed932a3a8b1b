"""What the client keeps on this machine: the login, and what could not be sent yet."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Login:
    """A server and a token for it."""

    url: str
    token: str


def config_file() -> Path:
    """Where `specdebug login` keeps its answer; readable by its owner alone."""
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "specdebug" / "login.json"


def spool_folder() -> Path:
    """Where rows wait for a server that is away: $SPECDEBUG_SPOOL, else the user's state home."""
    chosen = os.environ.get("SPECDEBUG_SPOOL")
    if chosen:
        return Path(chosen).expanduser()
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "specdebug" / "spool"


def saved_login() -> Login | None:
    """The kept login; None where there is none or it cannot be read."""
    try:
        data = json.loads(config_file().read_text())
        return Login(str(data["url"]), str(data["token"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save_login(login: Login) -> Path:
    """Keep a login, whole or not at all. Raises OSError."""
    path = config_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump({"url": login.url, "token": login.token}, file)
    part.replace(path)
    return path
