"""The record from a script: `Client`, one server with what it is asked; docs/client.md. Handles for
what it answers are in `investigation` and `run`."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specdebug.client.http import ApiError, Connection, Unreachable
from specdebug.client.investigation import Investigation
from specdebug.client.run import Run
from specdebug.client.sender import replay
from specdebug.client.settings import spool_folder

if TYPE_CHECKING:
    import httpx

__all__ = ["Client", "Investigation", "Run"]

log = logging.getLogger("specdebug")

Json = dict[str, Any]


class Client:
    """One server. Without arguments: $SPECDEBUG_URL and $SPECDEBUG_TOKEN, else the kept login.

    Raises ApiError where the server says no, Unreachable where it does not answer; only logging
    into a run raises neither.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        spool: Path | str | None = None,
        socket: Path | None = None,
        transport: httpx.BaseTransport | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self.connection = Connection(
            url, token, timeout=timeout, socket=socket, transport=transport
        )
        self.spool = Path(spool) if spool is not None else spool_folder()
        self._on_close = on_close
        self._runs: list[Run] = []
        self._replayed = False

    @classmethod
    def local(cls, folder: Path | str) -> Client:
        """A private server on `folder`, started if none runs there, and stopped after the last
        client has closed. Needs the web extra on this machine; no port is opened."""
        from specdebug.client.local import connect

        found = connect(Path(folder))
        return cls(
            "http://localhost",
            found.token,
            socket=found.socket,
            spool=Path(folder) / "spool",
            on_close=found.close,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Send what is left of the runs' rows and let the server go."""
        for run in self._runs:
            run.close()
        self.connection.close()
        if self._on_close is not None:
            self._on_close()
            self._on_close = None

    # ---- reading ---------------------------------------------------------------------------------

    def me(self) -> Json:
        """Who the token belongs to and what it may do."""
        return self._get("me")

    def investigations(
        self, filter: str | None = None, order: str | None = None
    ) -> Iterator[Investigation]:
        """Investigations, all or those a filter leaves."""
        params = {"filter": filter, "order": order}
        for row in self.connection.pages("investigations", params):
            yield Investigation(self, row)

    def runs(
        self, filter: str | None = None, order: str | None = None, limit: int | None = None
    ) -> Iterator[Json]:
        """Runs of all investigations; limit: how many at most."""
        params = {"filter": filter, "order": order, "limit": limit and min(limit, 1000)}
        for place, row in enumerate(self.connection.pages("runs", params)):
            if limit is not None and place >= limit:
                return
            yield row

    def run(self, name: str) -> Run:
        """A run by its name, as slow-draft/R3."""
        slug, _, label = name.partition("/")
        number = label.upper().removeprefix("R")
        if not number.isascii() or not number.isdigit():
            raise ValueError(f"{name!r} is no name of a run; it is like slow-draft/R3")
        return Run(self, self._get(f"investigations/{slug}/runs/{number}")["run"])

    def search(self, query: str, kind: str | None = None, limit: int = 20) -> list[Json]:
        """Matches of a query over everything; docs/api.md has the language."""
        found = self._get("search", {"q": query, "kind": kind, "limit": limit})
        items: list[Json] = found["items"]
        return items

    def compare(self, runs: Iterable[str], baseline: str | None = None) -> Json:
        """Runs by name beside a baseline: deltas with intervals and sample sizes."""
        return self._get("compare", {"runs": ",".join(runs), "baseline": baseline})

    def findings(self, filter: str | None = None) -> Iterator[Json]:
        """Findings of all investigations."""
        yield from self.connection.pages("findings", {"filter": filter})

    def workers(self) -> Json:
        """Workers and the length of the queue."""
        return self._get("workers")

    def check(self, files: Mapping[str, str], **options: Any) -> Json:
        """What the server's library finds in texts by name; nothing is kept."""
        given = [{"name": name, "text": text} for name, text in files.items()]
        return self._post("check", {"files": given, **options})

    def preflight(self, command: str, **options: Any) -> Json:
        """What a launch command will really do."""
        return self._post("preflight", {"command": command, **options})

    # ---- writing ---------------------------------------------------------------------------------

    def investigation(self, name: str, question: str | None = None, **fields: Any) -> Investigation:
        """The investigation of this address or title; opened with `question` where there is none.

        fields: context, goal_metric, goal_kind, goal_value, notes.
        """
        found = self._find(name)
        if found is not None:
            return Investigation(self, found)
        if question is None:
            raise LookupError(f"there is no investigation {name!r}; give a question to open it")
        body = {"title": name, "question": question, **fields}
        key = hashlib.sha256(f"investigation {name}\n{question}".encode()).hexdigest()
        made = self.connection.call("POST", "investigations", body, key=key)
        # Where the key was used before, what was made then may have another name by now.
        return Investigation(self, made)

    def _find(self, name: str) -> Json | None:
        if name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name):
            try:
                return self._get(f"investigations/{name}")
            except ApiError as no:
                if no.status != 404:
                    raise
        quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        params = {"filter": f"title = {quoted}", "order": "created"}
        return next(self.connection.pages("investigations", params), None)

    def import_archive(self, path: Path | str) -> Investigation:
        """Take in what `Investigation.export` wrote, as a new investigation."""
        return Investigation(self, self.connection.upload("POST", "import", Path(path), {}))

    def send_spooled(self) -> int:
        """Send what earlier programs could not; how many runs were completed."""
        return replay(self.connection, self.spool)

    # ---- within the package ----------------------------------------------------------------------

    def _get(self, path: str, params: Json | None = None) -> Json:
        found: Json = self.connection.call("GET", path, params=params)
        return found

    def _post(self, path: str, data: Any = None) -> Json:
        found: Json = self.connection.call("POST", path, data)
        return found

    def _watch(self, run: Run) -> None:
        self._runs.append(run)
        if not self._replayed:
            self._replayed = True
            threading.Thread(target=self._replay_quietly, daemon=True).start()

    def _replay_quietly(self) -> None:
        try:
            self.send_spooled()
        except (ApiError, Unreachable, OSError, RuntimeError) as error:
            log.info("specdebug: earlier rows still wait in %s: %s", self.spool, error)
