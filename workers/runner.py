"""One run from top to bottom: checks, launch, wait, warm up, load, stop; it knows no database and
derives no figures."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from specdebug.sglang import preflight as expected
from specdebug.sglang import server_info
from workers import bench_serving, engines, load, preflight, provenance
from workers.gpu_use import GpuUse
from workers.measuring import MEASURED, WARM, Measuring
from workers.plan import (
    Exit,
    OutcomeState,
    Phase,
    Progress,
    RunEnded,
    RunOutcome,
    RunPlan,
    ShouldStop,
)
from workers.prompt_files import PromptFile, read_prompts
from workers.server import Server, free_port, is_taken, write_whole

HOST = "127.0.0.1"
LAST_WORDS_SECONDS = 5.0  # for the figures a server is asked for before it is stopped

OnProgress = Callable[[Progress], None]


def measure(plan: RunPlan, *, on_progress: OnProgress, should_stop: ShouldStop) -> RunOutcome:
    """Carry out `plan` and say what came of it.

    `on_progress` is called from this thread at every step, `should_stop` often: a sentence from it
    ends the run as cancelled. Whatever the server or the plan does wrong is an outcome; an
    exception out of here is our own bug, and the server is stopped even then.
    """
    run = _Run(plan, on_progress, should_stop)
    try:
        run.go()
    except RunEnded as ended:
        run.state, run.reason = ended.state, ended.reason
    finally:
        # What could be told before the stop is told; the server goes whatever happened.
        run.stop()
    return run.outcome()


class _Run:
    def __init__(self, plan: RunPlan, on_progress: OnProgress, should_stop: ShouldStop) -> None:
        self.plan, self.on_progress, self.should_stop = plan, on_progress, should_stop
        self.folder = Path(plan.folder)
        self.state: OutcomeState = "done"
        self.reason = ""
        self.phase: Phase = "preparing"
        self.started_at = time.time()
        self.ready_at: float | None = None
        self.argv: tuple[str, ...] = ()
        self.env: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        self.server: Server | None = None
        self.client: load.Client | None = None
        self.exit: Exit | None = None
        self.gpus = GpuUse(self.folder)
        self.unreleased = ""
        self.info: dict[str, Any] | None = None
        self.metrics = ""
        self.measuring: Measuring | None = None
        self.looked = _Looking()
        self.preflight: dict[str, Any] | None = None

    # ---- the steps -------------------------------------------------------------------------------

    def go(self) -> None:
        self._tell("preparing", "checking the plan", 0.0)
        preflight.check(self.plan, self.folder)
        prompts = read_prompts(self.plan.workload.prompts)
        if self.plan.workload.client == "bench-serving":
            bench_serving.check(self.plan, prompts.prompts)
        engine = engines.engine(self.plan.engine)
        if engine.launches:
            url = self._launch(engine)
        else:
            self.argv = self.plan.server_args
            url = engines.attached_url(self.plan.server_args)
            self.versions = engines.versions(engine, {})
            self.gpus.watch(url)
        key = engines.flag(self.plan.server_args, "--api-key") or ""
        self.client = load.Client(url, key=key, request_seconds=self.plan.deadlines.request)
        self._wait_ready(self.client, url)
        self._hold_to_plan(self.client)
        self._measure(self.client, prompts)

    def _launch(self, engine: engines.Engine) -> str:
        """Start the engine; the URL at which it will answer."""
        plan = self.plan
        self.env = engines.environment(engine, plan.env)
        given = engines.flag(plan.server_args, "--port")
        port = _port(given) if given is not None else free_port(HOST)
        if given is not None and is_taken(port, HOST):
            raise RunEnded(
                "failed",
                f"Port {port} is in use on this machine; leave --port out and a free one is taken.",
            )
        self.argv = engine.command(plan.server_args, host=HOST, port=port)
        self.versions = engines.versions(engine, self.env)
        if reason := self.should_stop():
            raise RunEnded("cancelled", reason)
        foreseen = preflight.foresee(plan, self.versions)
        self.preflight = foreseen.as_dict() | {"strict": plan.strict}
        if no := foreseen.objection(strict=plan.strict):
            raise RunEnded("failed", no)
        if engine.gpus:
            self._lease(plan)
        self._tell("launching", foreseen.in_short() or "starting the engine", 0.02)
        # Beside the loading: it takes a second or two and nobody waits for it.
        self.looked.begin(engine, plan.server_args, self.env)
        self.server = Server.launch(
            self.argv, self.env, self.folder, plan.run, hold=self.gpus.handles
        )
        return f"http://{HOST}:{port}"

    def _lease(self, plan: RunPlan) -> None:
        self._tell("preparing", "looking for free GPUs", 0.01)
        self.gpus.lease(
            plan.server_args,
            plan.env,
            run=plan.run,
            on_wait=lambda text: self._tell("preparing", text, 0.01),
            should_stop=self.should_stop,
        )
        self.env |= self.gpus.env

    def _wait_ready(self, client: load.Client, url: str) -> None:
        if self.server is None:
            if problem := client.is_up():
                raise RunEnded("failed", f"The server at {url} does not answer: {problem}.")
        else:
            self._tell("loading", "starting", 0.05)
            self.server.wait_ready(
                url,
                self.plan.deadlines,
                on_phase=lambda text: self._tell("loading", text, _loaded(text)),
                should_stop=self.should_stop,
            )
        self.ready_at = time.time()

    def _hold_to_plan(self, client: load.Client) -> None:
        """Of a strict plan: go no further where an argument is not in force as asked."""
        if not self.plan.strict or self.server is None:
            return
        info = client.server_info()
        if info is None:
            return
        wrong = expected.differing(self.plan.server_args, server_info.from_mapping(info).args)
        if wrong:
            said = "; ".join(map(str, wrong))
            raise RunEnded("failed", f"Not measured, because the plan is strict: {said}.")

    def _measure(self, client: load.Client, prompts: PromptFile) -> None:
        self.measuring = Measuring(
            self.plan,
            prompts,
            client,
            tell=self._tell,
            should_stop=self.should_stop,
            died=self._died,
        )
        self.measuring.warm_up()
        self._tell("measuring", f"repeat 1 of {self.plan.workload.repeats}", WARM)
        self._keep("server_info_before.json", json.dumps(_cleaned(client.server_info())))
        self._keep("metrics_before.txt", client.metrics())
        self.measuring.measure()

    def _died(self) -> str:
        """How the server ended if it did, with the line of its log that tells why."""
        if self.server is None or self.server.look() is None:
            return ""
        return f"{self.server.ended_how()} while {self.phase}{self.server.why()}"

    # ---- the end ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ask the server what it still can tell, then end it. Safe in every state."""
        ended_in = self.phase
        try:
            if self.client is not None:
                self._last_words(self.client)
            if self.server is not None:
                self._tell("stopping", "waiting for the server to end", MEASURED)
        finally:
            self.phase = ended_in
            try:
                if self.server is not None:
                    self.exit = self.server.stop(self.plan.deadlines.stop)
                    self._hide_secrets()
            finally:
                self.unreleased = self.gpus.end(
                    on_wait=lambda text: self._tell("stopping", text, MEASURED)
                )
                self.phase = ended_in

    def _last_words(self, client: load.Client) -> None:
        with contextlib.closing(client):
            if self.ready_at is None or self._died():
                return
            self.info = client.server_info(LAST_WORDS_SECONDS)
            # A server that hangs must not delay its own end twice.
            self.metrics = client.metrics(LAST_WORDS_SECONDS) if self.info else ""
            self._keep("server_info.json", json.dumps(_cleaned(self.info)))
            self._keep("metrics.txt", self.metrics)

    def _hide_secrets(self) -> None:
        """Engines print their arguments, keys included; take those out of the log, byte for byte,
        so that lines and offsets stay."""
        secrets = engines.secret_values(self.plan.server_args, self.env)
        if not secrets or self.server is None:
            return
        with contextlib.suppress(OSError):
            data = self.server.log.read_bytes()
            for secret in secrets:
                data = data.replace(secret.encode(), b"*" * len(secret.encode()))
            self.server.log.write_bytes(data)

    def outcome(self) -> RunOutcome:
        done = self.state == "done"
        if done and self.exit is not None and self.exit.survivors:
            # The figures stand; that something is left on the machine must not pass in silence.
            self.reason = f"Left on the machine: processes {list(self.exit.survivors)}."
        self.reason = " ".join(filter(None, (self.reason, self.unreleased)))
        info = self.info if self.info is not None else self._kept_info()
        found = self.looked.found()
        return RunOutcome(
            state=self.state,
            phase="finished" if done else self.phase,
            reason=self.reason,
            argv=engines.argv_without_secrets(self.argv),
            env=engines.without_secrets(self.env),
            versions=self._versions(info),
            host=socket.gethostname(),
            started_at=self.started_at,
            ready_at=self.ready_at,
            ended_at=time.time(),
            log=str(self.server.log) if self.server else "",
            server_info=_cleaned(info),
            metrics_text=self.metrics,
            repeats=tuple(self.measuring.repeats) if self.measuring else (),
            exit=self.exit,
            preflight=self.preflight,
            provenance=found.facts,
            files=(*self.gpus.files, *self._files(found.diff)),
            folder=str(self.folder),
        )

    def _files(self, diff: str) -> tuple[tuple[str, str], ...]:
        """Names and kinds of what else in the folder belongs to the record."""
        files = list(self.measuring.files) if self.measuring else []
        if diff:
            self._keep("engine.diff", diff)
            files.append(("engine.diff", "engine-diff"))
        return tuple(files)

    def _kept_info(self) -> dict[str, Any] | None:
        """What the server said before it was measured, where it can no longer be asked."""
        with contextlib.suppress(OSError, ValueError):
            found = json.loads((self.folder / "server_info_before.json").read_text())
            return found if isinstance(found, dict) else None
        return None

    def _versions(self, info: Mapping[str, Any] | None) -> dict[str, str]:
        said = (info or {}).get("version")
        return {
            **self.versions,
            **self.gpus.facts,
            **({"server": said} if isinstance(said, str) else {}),
        }

    def _keep(self, name: str, text: str) -> None:
        """A side file of the run; a full disk costs the file, not the run."""
        with contextlib.suppress(OSError):
            write_whole(self.folder / name, text)

    def _tell(self, phase: Phase, detail: str, fraction: float | None) -> None:
        self.phase = phase
        self.on_progress(Progress(phase=phase, detail=detail, fraction=fraction))


class _Looking:
    """Finds out what exactly runs while the server loads."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._found = provenance.Provenance({})

    def begin(
        self, engine: engines.Engine, server_args: Sequence[str], env: Mapping[str, str]
    ) -> None:
        def look() -> None:
            self._found = provenance.gather(engine, server_args, env)

        self._thread = threading.Thread(target=look, name="provenance", daemon=True)
        self._thread.start()

    def found(self) -> provenance.Provenance:
        """What there is; a file system that hangs delays a run's end by so much and no more."""
        if self._thread is not None:
            self._thread.join(LAST_WORDS_SECONDS)
        return self._found


def _port(given: str) -> int:
    if given.isascii() and given.isdigit() and 0 < int(given) < 65536:
        return int(given)
    raise RunEnded("failed", f"--port {given}: a port is a number from 1 to 65535.")


def _loaded(text: str) -> float:
    """Where loading stands, from the phase's own `n/m`."""
    done, slash, total = text.rpartition(" ")[2].partition("/")
    begin = {"starting": 0.05, "loading weights": 0.08, "capturing graphs": 0.2}
    base = next((at for name, at in begin.items() if text.startswith(name)), 0.25)
    if slash and done.isdigit() and total.isdigit() and int(total):
        return base + 0.1 * int(done) / int(total)
    return base


def _cleaned(info: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Server info as it may be stored: no keys, no NUL characters (PostgreSQL refuses them)."""

    def clean(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): clean(str(key), inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [clean(name, inner) for inner in value]
        if isinstance(value, str):
            if value and f"--{name.replace('_', '-')}" in engines.SECRET_FLAGS:
                return engines.REMOVED
            return value.replace("\0", "")
        return value

    return None if info is None else clean("", dict(info))
