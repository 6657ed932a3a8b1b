"""The record from a script: `Client`, and handles for investigations and runs; docs/client.md."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from specdebug.client.http import ApiError, Connection, Unreachable
from specdebug.client.sender import Sender, replay
from specdebug.client.settings import spool_folder
from specdebug.client.watch import LogWatch

if TYPE_CHECKING:
    import httpx

__all__ = ["Client", "Investigation", "Run"]

log = logging.getLogger("specdebug")

Json = dict[str, Any]
ENDED = ("done", "failed", "cancelled", "lost")
FINISH_SECONDS = 30.0


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


class Investigation:
    """One investigation; `data` is what the server said last."""

    def __init__(self, client: Client, data: Json) -> None:
        self.client, self.data = client, data

    def __repr__(self) -> str:
        return f"<Investigation {self.slug}>"

    @property
    def slug(self) -> str:
        return str(self.data["slug"])

    @property
    def path(self) -> str:
        return f"investigations/{self.slug}"

    def edit(self, **fields: Any) -> Investigation:
        """Change fields; `baseline` takes a run or its label."""
        if isinstance(fields.get("baseline"), Run):
            fields["baseline"] = fields["baseline"].label
        self.data = self.client.connection.call("PATCH", self.path, fields)
        return self

    def hypothesis(
        self,
        claim: str,
        *,
        mechanism: str = "",
        baseline: Run | str | None = None,
        direction: str = "up",
        checks: Sequence[Json] = (),
        **prediction: Any,
    ) -> Json:
        """State a hypothesis; with a `baseline` its prediction is registered in the same step.

        prediction: metric, low, high, margin. Returns it with everything that belongs to it.
        """
        body: Json = {"claim": claim, "mechanism": mechanism, "checks": list(checks)}
        if baseline is not None:
            body["prediction"] = {
                "baseline": _label(baseline),
                "direction": direction,
                **prediction,
            }
        return self.client._post(f"{self.path}/hypotheses", body)

    def run(
        self,
        title: str = "",
        *,
        config: Mapping[str, Any] | None = None,
        hypothesis: Json | str | None = None,
        baseline: Run | str | None = None,
        **fields: Any,
    ) -> Run:
        """Open a run that this program measures: log, measured, watch_log, finish.

        fields: server_args, engine, engine_release, env, concurrency, follows, host, note.
        """
        body: Json = {"title": title or "run of a script", **fields}
        if config is not None:
            body["config"] = dict(config)
        if hypothesis is not None:
            body["hypothesis"] = _label(hypothesis)
        if baseline is not None:
            body["baseline"] = _label(baseline)
        made = self.client._post(f"{self.path}/script-runs", body)
        run = Run(self.client, made)
        self.client._watch(run)
        return run

    def plan(
        self, title: str, server_args: Sequence[str], *, queue: bool = True, **fields: Any
    ) -> Run:
        """Plan a run for a worker, and send it unless `queue` is False.

        fields: engine, engine_release, env, workload, hypothesis, baseline, follows, note, strict.
        """
        for name in ("hypothesis", "baseline", "follows"):
            if fields.get(name) is not None:
                fields[name] = _label(fields[name])
        body = {"title": title, "server_args": list(server_args), "queue": queue, **fields}
        return Run(self.client, self.client._post(f"{self.path}/runs", body))

    def runs(self, filter: str | None = None, order: str | None = None) -> Iterator[Run]:
        """The runs, all or those a filter leaves."""
        params = {"filter": filter, "order": order}
        for row in self.client.connection.pages(f"{self.path}/runs", params):
            yield Run(self.client, row)

    def findings(self, filter: str | None = None) -> list[Json]:
        """Its findings."""
        return list(self.client.connection.pages(f"{self.path}/findings", {"filter": filter}))

    def verdicts(self) -> list[Json]:
        """Verdicts, oldest first; those `in_force` count."""
        return list(self.client.connection.pages(f"{self.path}/verdicts"))

    def standing(self) -> Json:
        """How far the goal is and what is left."""
        return self.client._get(f"{self.path}/standing")

    def timeline(self) -> list[Json]:
        """What happened, in order."""
        return self._items("timeline")

    def advice(self) -> list[Json]:
        """The next experiments worth their time."""
        return self._items("advice")

    def gap(self) -> list[Json]:
        """Where the tokens per second go, from the baseline to each run."""
        return self._items("gap")

    def _items(self, name: str) -> list[Json]:
        items: list[Json] = self.client._get(f"{self.path}/{name}")["items"]
        return items

    def event(self, title: str, kind: str = "note", **fields: Any) -> Json:
        """Put an event on the timeline."""
        return self.client._post(f"{self.path}/events", {"title": title, "kind": kind, **fields})

    def upload(self, path: Path | str, name: str | None = None) -> Json:
        """Attach a file that belongs to no run."""
        return upload(self.client.connection, self.path, Path(path), name)

    def report(self) -> Json:
        """The post-mortem as JSON, with its digest."""
        return self.client._get(f"{self.path}/report")

    def report_pdf(self, to: Path | str) -> Path:
        """Write the post-mortem as PDF."""
        return self.client.connection.download(f"{self.path}/report.pdf", Path(to))

    def export(self, to: Path | str) -> Path:
        """Write the whole investigation as one archive."""
        return self.client.connection.download(f"{self.path}/archive", Path(to))

    def resolve(self, exception_reason: str = "") -> Investigation:
        """Call it resolved; ApiError lists the obstacles unless you sign why not."""
        body = {"exception_reason": exception_reason} if exception_reason else {}
        self.data = self.client._post(f"{self.path}/resolve", body)
        return self

    def frame(self) -> Any:
        """The runs as a pandas DataFrame, one row each, metrics and parameters as columns."""
        import importlib

        pandas = importlib.import_module("pandas")
        rows = []
        for run in self.runs(order="label"):
            row = {k: run.data[k] for k in ("label", "title", "state", "engine", "baseline")}
            row |= {name: m["value"] for name, m in run.data["metrics"].items()}
            row |= {f"params.{name}": value for name, value in run.data["params"].items()}
            rows.append(row)
        return pandas.DataFrame(rows)


class Run:
    """One run; `data` is what the server said last."""

    def __init__(self, client: Client, data: Json) -> None:
        self.client, self.data = client, data
        self._sender: Sender | None = None
        self._log: LogWatch | None = None
        self._repeats = 0
        self._finished = False

    def __repr__(self) -> str:
        return f"<Run {self.name}>"

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._finished:
            return
        if error is None:
            self.finish()
        elif isinstance(error, KeyboardInterrupt):
            self.finish("cancelled", reason="interrupted")
        else:
            self.finish("failed", reason=f"{type(error).__name__}: {error}"[:2000])

    @property
    def label(self) -> str:
        return str(self.data["label"])

    @property
    def name(self) -> str:
        """Its name among all runs, slow-draft/R3."""
        return f"{self.data['investigation']}/{self.label}"

    @property
    def path(self) -> str:
        return f"investigations/{self.data['investigation']}/runs/{self.data['number']}"

    # ---- measured by this program ----------------------------------------------------------------

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log a row of points; returns at once, never raises, keeps them while the server is
        away."""
        if self._sender is None:
            self._sender = Sender(self.client.connection, self.path, self.client.spool)
        self._sender.log(step, values)

    def measured(self, tok_s: float, **figures: Any) -> Run:
        """Send one measured pass, which verdicts rest on: output tokens per second of wall time.

        figures: accept_len, step_ms, seconds, requests, tokens, verify_ct.
        """
        body = {"first": self._repeats, "repeats": [{"tok_s": tok_s, **figures}]}
        self.data = self.client._post(f"{self.path}/repeats", body)
        self._repeats += 1
        return self

    def watch_log(self, path: Path | str) -> None:
        """Stream a log file while it grows, in the background; it need not be there yet."""
        if self._log is not None:
            raise ValueError(f"{self.name} streams {self._log.file} already; a run has one log")
        self._log = LogWatch(self.client.connection, self.path, Path(path))

    def finish(
        self, state: str = "done", *, reason: str = "", timeout: float = FINISH_SECONDS, **more: Any
    ) -> bool:
        """Send what is left and end the run; False where the server is away: rows and end then
        wait in the spool, for `Client.send_spooled` or the next program.

        more: server_info, versions, exit_code.
        """
        self._finished = True
        deadline = time.monotonic() + timeout
        if self._log is not None and not self._log.close(timeout):
            log.warning("specdebug: the end of the log of %s was not sent", self.name)
        left = max(1.0, deadline - time.monotonic())
        arrived = self._sender is None or self._sender.flush(left)
        body = {"state": state, "reason": reason, **more}
        if arrived:
            try:
                self.data = self.client._post(f"{self.path}/finish", body)
                self.close()
                return True
            except Unreachable as error:
                log.warning("specdebug: %s is finished later: %s", self.name, error)
        if self._sender is None:
            self._sender = Sender(self.client.connection, self.path, self.client.spool)
        self._sender.keep_finish(body)
        self.close()
        return False

    def close(self) -> None:
        """Stop the background work; the run stays as it is."""
        if self._log is not None:
            self._log.close(0.0)
        if self._sender is not None:
            self._sender.close(1.0 if self._finished else FINISH_SECONDS)
            self._sender = None

    # ---- any run ---------------------------------------------------------------------------------

    def refresh(self) -> Run:
        """Ask the server anew."""
        self.data = self.full()["run"]
        return self

    def full(self) -> Json:
        """Everything about it: arguments, repeats, verdict, findings."""
        return self.client._get(self.path)

    def standing(self) -> Json:
        """Where it stands: state, phase, fraction."""
        return self.client._get(f"{self.path}/standing")

    def wait(
        self,
        timeout: float | None = None,
        *,
        every: float = 1.0,
        progress: Callable[[Json], None] | None = None,
    ) -> Run:
        """Wait until it has ended; raises TimeoutError. progress: called with each standing."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            now = self.standing()
            if progress is not None:
                progress(now)
            if now["ended"] and now["state"] != "draft":
                return self.refresh()
            if now["state"] == "draft":
                raise ValueError(f"{self.name} is a draft; queue it first")
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{self.name} is still {now['state']} after {timeout:g} s")
            time.sleep(every)

    def queue(self) -> Run:
        """Send a draft to the workers."""
        self.data = self.client._post(f"{self.path}/queue")
        return self

    def cancel(self) -> Run:
        """Ask it to stop."""
        self.data = self.client._post(f"{self.path}/cancel")
        return self

    def repeat(self, *, queue: bool = True) -> Run:
        """The same run once more."""
        return Run(self.client, self.client._post(f"{self.path}/repeat", {"queue": queue}))

    def branch(self, title: str, *, queue: bool = True, **changes: Any) -> Run:
        """A run that follows this one and differs in `changes`: server_args, env, workload."""
        body = {"title": title, "queue": queue, **changes}
        return Run(self.client, self.client._post(f"{self.path}/branch", body))

    def upload(self, path: Path | str, name: str | None = None) -> Json:
        """Attach a file: a log, a config, benchmark output."""
        return upload(self.client.connection, self.path, Path(path), name)

    def points(self, metric: str, most: int = 10_000) -> Json:
        """The points of a metric as lists: steps, times, values."""
        return self.client._get(f"{self.path}/points", {"metric": metric, "most": most})

    def frame(self, metric: str) -> Any:
        """The points of a metric as a pandas DataFrame with step, time and value."""
        import importlib

        found = self.points(metric, most=100_000)
        columns = {"step": found["steps"], "time": found["times"], "value": found["values"]}
        return importlib.import_module("pandas").DataFrame(columns)


def upload(connection: Connection, path: str, file: Path, name: str | None) -> Json:
    """Attach a file by its hash where the server has it, else send it."""
    name = name or file.name
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    try:
        found: Json = connection.call(
            "POST", f"{path}/files/known", {"sha256": digest.hexdigest(), "name": name}
        )
    except ApiError as no:
        if no.status != 404:
            raise
        found = connection.upload("PUT", f"{path}/files", file, {"name": name})
    return found


def _label(row: Any) -> str:
    """The label of a run or hypothesis, however it is given."""
    if isinstance(row, Run):
        return row.label
    if isinstance(row, dict):
        return str(row.get("hypothesis", row)["label"])
    return str(row)
