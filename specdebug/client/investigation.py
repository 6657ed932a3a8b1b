"""One investigation as a script holds it: what is asked of it and what is added to it; a handle, no
copy of the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specdebug.client.files import upload
from specdebug.client.run import Run, label

if TYPE_CHECKING:
    from specdebug.client.api import Client

Json = dict[str, Any]


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
                "baseline": label(baseline),
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
            body["hypothesis"] = label(hypothesis)
        if baseline is not None:
            body["baseline"] = label(baseline)
        made = self.client._post(f"{self.path}/script-runs", body)
        run = Run(self.client, made)
        self.client._watch(run)
        return run

    def plan(
        self, title: str, server_args: Sequence[str], *, queue: bool = True, **fields: Any
    ) -> Run:
        """Plan a run for a worker, and send it unless `queue` is False.

        fields: engine, engine_release, env, workload, hypothesis, baseline, follows, note, strict,
        worker.
        """
        for name in ("hypothesis", "baseline", "follows"):
            if fields.get(name) is not None:
                fields[name] = label(fields[name])
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
        """The next experiments worth their time, each with its `key`, cost and `startable`."""
        return self._items("advice")

    def take(self, key: str) -> Json:
        """Register the hypothesis of an advice and queue its run; again: the same pair."""
        return self.client._post(f"{self.path}/advice/{key}/take", {})

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

    def report_pdf(
        self,
        to: Path | str,
        *,
        page: str = "A4",
        timeout: float = 600.0,
        progress: Callable[[Json], None] | None = None,
    ) -> Path:
        """Write the post-mortem as PDF, once the server's worker has made it.

        page: "A4" or "Letter". progress: called with `state`, `step` and `fraction` (0 to 1) until
        then. Raises TimeoutError after `timeout` seconds.
        """
        return self.client.connection.download(
            f"{self.path}/report.pdf",
            Path(to),
            {"page": page},
            timeout=timeout,
            progress=progress,
        )

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
