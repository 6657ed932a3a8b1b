"""One run as a script holds it: logging into it, following it, reading it; it measures nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from specdebug.client.files import upload
from specdebug.client.http import Unreachable
from specdebug.client.sender import Sender
from specdebug.client.watch import LogWatch

if TYPE_CHECKING:
    from specdebug.client.api import Client

log = logging.getLogger("specdebug")

Json = dict[str, Any]
FINISH_SECONDS = 30.0


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


def label(row: Any) -> str:
    """The label of a run or hypothesis, however it is given."""
    if isinstance(row, Run):
        return row.label
    if isinstance(row, dict):
        return str(row.get("hypothesis", row)["label"])
    return str(row)
