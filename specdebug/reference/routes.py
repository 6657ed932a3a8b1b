"""The HTTP face: routes, streaming, one form of error, clients that leave; decides nothing else."""

import contextlib
import json
import logging
import queue
import select
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from specdebug.reference import NAME, info, wire
from specdebug.reference.scheduler import Closed, Progress, Scheduler, Ticket
from specdebug.reference.server_args import Resolved
from specdebug.reference.wire import Ask, Refused

log = logging.getLogger("specdebug.reference")
access = logging.getLogger("specdebug.reference.http")

MAX_BODY = 8 << 20
# How often a waiting handler looks whether its client is still there.
LOOK_SECONDS = 0.2
FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. "
    "(When there are running or waiting requests, the operation will not be performed.)\n"
)


class Gone(Exception):
    """The client closed its connection."""


class Server(ThreadingHTTPServer):
    """Bound before the weights load, so that a taken port is known at once; 503 until `open`."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, resolved: Resolved) -> None:
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), Handler)
        self.resolved = resolved
        self.scheduler: Scheduler | None = None
        self.ready = threading.Event()

    def server_bind(self) -> None:
        """Bind without the base class's reverse name look-up, which can take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke outside a route is the client's business, not a traceback."""
        log.debug("connection from %s broke", client_address, exc_info=True)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = NAME
    sys_version = ""
    timeout = 120
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Routes that read."""
        self._answer(GET)

    def do_POST(self) -> None:
        """Routes that run something."""
        self._answer(POST)

    def _answer(self, table: dict[str, Callable[["Handler"], None]]) -> None:
        path = urlsplit(self.path).path
        self.started = False
        try:
            route = table.get(path)
            if route is None:
                other = GET if table is POST else POST
                if path in other:
                    raise Refused(405, f"{self.command} is not allowed on {path}")
                raise Refused(404, f"no such route: {path}")
            if path not in EARLY and not self.server.ready.is_set():
                raise Refused(503, "the server is starting")
            route(self)
        except Refused as error:
            self._error(error.status, error.message)
        except (Gone, ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception:
            log.exception("Exception in %s %s", self.command, path)
            if self.started:
                self.close_connection = True
            else:
                self._error(500, "the server failed on this request; its log says why")

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler; only routes that need the server ready ask for it."""
        if self.server.scheduler is None:
            raise Refused(503, "the server is starting")
        return self.server.scheduler

    # -- routes ---------------------------------------------------------------------------------

    def health(self) -> None:
        """200 when requests are served, 503 before and while shutting down; runs nothing."""
        ready = self.server.ready.is_set() and self.scheduler.thread.is_alive()
        self.send(200 if ready and not self.scheduler.closing else 503, b"", "text/plain")

    def health_generate(self) -> None:
        """Really generate one token, behind whatever waits in the queue."""
        ask = wire.read_generate(
            {"input_ids": [0], "sampling_params": {"max_new_tokens": 1}}, self.scheduler.engine
        )
        self.last(self.submit(ask)[0])
        self.send(200, b"", "text/plain")

    def server_info(self) -> None:
        """Effective arguments and state."""
        self.send_json(info.server_info(self.server.resolved, self.scheduler))

    def model_info(self) -> None:
        """The target."""
        self.send_json(info.model_info(self.server.resolved))

    def models(self) -> None:
        """OpenAI's list."""
        self.send_json(info.models(self.server.resolved, self.scheduler))

    def metrics(self) -> None:
        """Prometheus text, behind --enable-metrics."""
        if not self.server.resolved.args["enable_metrics"]:
            raise Refused(404, "start the server with --enable-metrics")
        text = info.metrics(self.server.resolved, self.scheduler)
        self.send(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    def flush_cache(self) -> None:
        """Reset the averages, only when idle."""
        if self.headers.get("Content-Length", "0") != "0":
            self.read_body()
        done = self.scheduler.flush()
        log.info("Cache flushed successfully!" if done else "Cache not flushed: requests run.")
        self.send(200 if done else 400, FLUSHED.encode(), "text/plain")

    def generate(self) -> None:
        """/generate: text or input_ids, one or several, whole or streamed."""
        ask = wire.read_generate(wire.body(self.read_body()), self.scheduler.engine)
        tickets = self.submit(ask)

        def answer(ticket: Ticket, progress: Progress) -> dict[str, Any]:
            return wire.generate_answer(progress, len(ticket.job.prompt), ticket.rid)

        if ask.stream:
            self.send_stream(answer(tickets[0], step) for step in self.follow(tickets[0]))
            return
        answers = [answer(ticket, self.last(ticket, tickets)) for ticket in tickets]
        self.send_json(answers if ask.many else answers[0])

    def completions(self) -> None:
        """/v1/completions."""
        ask = wire.read_completion(wire.body(self.read_body()), self.scheduler.engine)
        tickets = self.submit(ask)
        model = self.server.resolved.args["served_model_name"]
        rid = f"cmpl-{uuid.uuid4().hex}"
        if ask.stream:
            self.send_stream(self._completion_pieces(ask, tickets[0], rid, model))
            return
        done = [self.last(ticket, tickets) for ticket in tickets]
        choices = [wire.completion_choice(p, index, p.text) for index, p in enumerate(done)]
        counted = wire.usage(
            sum(len(ticket.job.prompt) for ticket in tickets), sum(len(p.ids) for p in done)
        )
        self.send_json(wire.completion_answer(rid, model, choices, counted))

    def _completion_pieces(
        self, ask: Ask, ticket: Ticket, rid: str, model: str
    ) -> Iterator[dict[str, Any]]:
        sent = 0
        tokens = 0
        for progress in self.follow(ticket):
            text, tokens = progress.text[sent:], len(progress.ids)
            sent = max(sent, len(progress.text))
            yield wire.completion_answer(
                rid, model, [wire.completion_choice(progress, 0, text)], None
            )
        if ask.usage_at_end:
            counted = wire.usage(len(ticket.job.prompt), tokens)
            yield wire.completion_answer(rid, model, [], counted)

    # -- running --------------------------------------------------------------------------------

    def submit(self, ask: Ask) -> list[Ticket]:
        """Queue all jobs of a request, or none."""
        tickets: list[Ticket] = []
        try:
            for job in ask.jobs:
                rid = ask.rid if len(ask.jobs) == 1 else None
                tickets.append(self.scheduler.submit(job, rid))
        except (Closed, queue.Full) as error:
            for ticket in tickets:
                ticket.cancelled.set()
            full = isinstance(error, queue.Full)
            raise Refused(
                503, "the queue is full" if full else "the server is shutting down"
            ) from None
        return tickets

    def follow(self, ticket: Ticket) -> Iterator[Progress]:
        """All progress of a ticket; cancels it when the client leaves. Raises Gone or Refused."""
        try:
            while True:
                try:
                    progress = ticket.progress.get(timeout=LOOK_SECONDS)
                except queue.Empty:
                    if self._left():
                        raise Gone from None
                    continue
                if progress is None:
                    raise Refused(500, "the request was dropped; the server's log says why")
                yield progress
                if progress.meta is not None:
                    return
        except (Gone, GeneratorExit, ConnectionError):
            ticket.cancelled.set()
            raise

    def last(self, ticket: Ticket, siblings: list[Ticket] | None = None) -> Progress:
        """The outcome of a ticket; a client that leaves cancels its siblings too."""
        try:
            for progress in self.follow(ticket):
                if progress.meta is not None:
                    return progress
        except BaseException:
            for other in siblings or []:
                other.cancelled.set()
            raise
        raise Refused(500, "the request ended without an outcome")

    def _left(self) -> bool:
        try:
            if select.select([self.connection], [], [], 0)[0]:
                return not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True
        return False

    # -- bytes ----------------------------------------------------------------------------------

    def read_body(self) -> bytes:
        """The body, at most MAX_BODY bytes."""
        length = self.headers.get("Content-Length")
        if length is None or not length.isdecimal():
            self.close_connection = True
            raise Refused(411, "send the body with a Content-Length")
        if int(length) > MAX_BODY:
            self.close_connection = True
            raise Refused(413, f"the body has {length} bytes, at most {MAX_BODY} are taken")
        raw = self.rfile.read(int(length))
        if len(raw) < int(length):
            raise Gone
        return raw

    def send_json(self, value: Any, status: int = 200) -> None:
        """A JSON answer."""
        self.send(status, json.dumps(value).encode(), "application/json")

    def send(self, status: int, content: bytes, kind: str) -> None:
        """A whole answer."""
        self.started = True
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def send_stream(self, pieces: Iterator[dict[str, Any]]) -> None:
        """Server-sent events, one per piece, then [DONE]."""
        first = next(pieces)  # a refusal is still an ordinary error answer
        self.started = True
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        self._event(first)
        try:
            for piece in pieces:
                self._event(piece)
        except Refused as error:
            self._event(_error_form(error.status, error.message))
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, piece: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(piece).encode() + b"\n\n")

    def _error(self, status: int, message: str) -> None:
        # An unread body would be taken for the next request on this connection.
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.send_json(_error_form(status, message), status)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The base class's own errors (bad request lines, unknown methods) in our form."""
        self._error(int(code), message or "bad request")

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """uvicorn's access line."""
        number = int(code) if isinstance(code, int) or str(code).isdecimal() else 0
        phrase = self.responses[number][0] if number in self.responses else ""
        request = self.requestline.encode("unicode_escape").decode()[:300]
        host, port = self.client_address[:2]
        access.info('INFO:     %s:%s - "%s" %s %s', host, port, request, number, phrase)

    def log_message(self, format: str, *args: Any) -> None:
        """Everything else the base class would print."""
        log.debug(format, *args)


def _error_form(status: int, message: str) -> dict[str, Any]:
    kind = "BadRequestError" if status < 500 else "InternalServerError"
    return {"error": {"message": message, "type": kind, "code": status}}


GET: dict[str, Callable[[Handler], None]] = {
    "/health": Handler.health,
    "/health_generate": Handler.health_generate,
    "/server_info": Handler.server_info,
    "/get_server_info": Handler.server_info,
    "/model_info": Handler.model_info,
    "/get_model_info": Handler.model_info,
    "/v1/models": Handler.models,
    "/metrics": Handler.metrics,
    "/flush_cache": Handler.flush_cache,
}
POST: dict[str, Callable[[Handler], None]] = {
    "/generate": Handler.generate,
    "/v1/completions": Handler.completions,
    "/flush_cache": Handler.flush_cache,
}
# Answered while the weights load.
EARLY = {"/health"}
