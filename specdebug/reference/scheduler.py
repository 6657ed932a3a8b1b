"""One thread that runs requests first in, first out, and keeps the engine's counts; no HTTP.

Log lines and averages follow SGLang's definitions, its oddities included: throughput in a decode
line divides by the time since the last decode line, idle time and prefill too, and the average
accept length moves only when a decode line is written.
"""

import logging
import queue
import threading
import time
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from specdebug.reference.engine import Engine

log = logging.getLogger("specdebug.reference")


@dataclass(frozen=True)
class Job:
    """What is asked for one prompt, checked already: ids [prompt], stops, lengths."""

    prompt: tuple[int, ...]
    max_new_tokens: int
    stop_ids: frozenset[int] = frozenset()
    stop_texts: tuple[str, ...] = ()
    streaming: bool = False


@dataclass(frozen=True)
class Progress:
    """The output so far: all ids and their text; `meta` is set on the last one only."""

    ids: list[int]
    text: str
    finish: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


@dataclass
class Ticket:
    """A submitted job; `progress` ends with a Progress that has `meta`, or with None: dropped."""

    job: Job
    rid: str
    received: float = field(default_factory=time.time)
    started: float = field(default_factory=time.perf_counter)
    queue_time: float = 0.0
    progress: "queue.SimpleQueue[Progress | None]" = field(default_factory=queue.SimpleQueue)
    cancelled: threading.Event = field(default_factory=threading.Event)


@dataclass
class Totals:
    """Counts since the start (requests, tokens) or since the last flush (averages)."""

    requests: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    aborted: int = 0
    latency_seconds: float = 0.0
    running: int = 0
    used_tokens: int = 0
    gen_throughput: float = 0.0
    accept_length: float = 0.0
    accept_rate: float = 0.0
    # Accepted plus bonus tokens, and verifies, over all decode lines since the last flush.
    line_tokens: int = 0
    line_verifies: int = 0

    @property
    def average_accept_length(self) -> float | None:
        """SGLang's avg_spec_accept_length; None until a decode line was written."""
        return self.line_tokens / self.line_verifies if self.line_verifies else None


class Closed(Exception):
    """The scheduler takes no more requests."""


class Scheduler:
    """Runs tickets one at a time on its own thread."""

    def __init__(self, engine: Engine, *, decode_log_interval: int, max_queued: int | None) -> None:
        self.engine = engine
        self.totals = Totals()
        self.lock = threading.Lock()
        self.waiting: deque[Ticket] = deque()
        self.wake = threading.Condition(self.lock)
        self.closing = False
        self.current: Ticket | None = None
        self.interval = decode_log_interval
        self.max_queued = max_queued
        self.cycles = self.interval_cycles = self.interval_tokens = 0
        self.decode_tic = self.prefill_tic = time.perf_counter()
        self.last_prefill_tokens = 0
        self.thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def submit(self, job: Job, rid: str | None = None) -> Ticket:
        """Queue a job. Raises Closed when shutting down, queue.Full over --max-queued-requests."""
        ticket = Ticket(job, rid or uuid.uuid4().hex)
        with self.wake:
            if self.closing:
                raise Closed
            if self.max_queued is not None and len(self.waiting) >= self.max_queued:
                raise queue.Full
            self.waiting.append(ticket)
            self.wake.notify()
        return ticket

    @property
    def queued(self) -> int:
        """Requests waiting behind the running one."""
        return len(self.waiting)

    def flush(self) -> bool:
        """Reset the averages; False, and nothing done, while a request runs or waits."""
        with self.lock:
            if self.current is not None or self.waiting:
                return False
            self.totals.line_tokens = self.totals.line_verifies = 0
            return True

    def close(self, grace: float) -> None:
        """Take no more requests; let those at hand finish within `grace` seconds, or drop them."""
        with self.wake:
            self.closing = True
            self.wake.notify()
        self.thread.join(grace)
        with self.lock:
            for ticket in [*self.waiting, *filter(None, [self.current])]:
                ticket.cancelled.set()
        self.thread.join(grace)

    def _run(self) -> None:
        self.engine.claim_thread()
        while True:
            with self.wake:
                self.current = None
                self.totals.running = 0
                while not self.waiting and not self.closing:
                    self.wake.wait()
                if not self.waiting:
                    return
                ticket = self.current = self.waiting.popleft()
                self.totals.running = 1
            try:
                self._serve(ticket)
            except Exception:
                log.exception("Scheduler hit an exception")
                ticket.progress.put(None)

    def _serve(self, ticket: Ticket) -> None:
        job, decoder = ticket.job, self.engine.decoder
        if ticket.cancelled.is_set():
            self._drop(ticket)
            return
        ticket.queue_time = time.perf_counter() - ticket.started
        self._prefill_line(len(job.prompt))
        ids: list[int] = []
        piece = [decoder.begin(job.prompt)]
        while True:
            finish, text = self._extend(job, ids, piece)
            if decoder.counts.cycles:  # the first token comes from the prefill
                self._count_cycle(len(piece), finish is not None)
            if finish is not None:
                self._finish(ticket, ids, text, finish)
                return
            if ticket.cancelled.is_set():
                self._drop(ticket)
                return
            if job.streaming:
                ticket.progress.put(Progress(list(ids), self.engine.text(ids)))
            piece = decoder.cycle()

    def _extend(
        self, job: Job, ids: list[int], piece: list[int]
    ) -> tuple[dict[str, Any] | None, str | None]:
        """Add a piece to ids up to the first stop; the finish reason, and a text cut at a stop."""
        for token in piece:
            ids.append(token)
            if token in job.stop_ids:
                return {"type": "stop", "matched": token}, None
            for stop in job.stop_texts:
                # A stop string is found with the token that completes it.
                tail = self.engine.text(ids[-len(stop) - 8 :])
                if stop in tail:
                    text = self.engine.text(ids)
                    return {"type": "stop", "matched": stop}, text[: text.rindex(stop)]
            if len(ids) >= job.max_new_tokens:
                return {"type": "length", "length": len(ids)}, None
        return None, None

    def _drop(self, ticket: Ticket) -> None:
        self.totals.aborted += 1
        self.totals.used_tokens = 0
        log.info("Abort request %s: its client has gone.", ticket.rid)
        ticket.progress.put(None)

    def _finish(
        self, ticket: Ticket, ids: list[int], text: str | None, finish: dict[str, Any]
    ) -> None:
        latency = time.perf_counter() - ticket.started
        totals = self.totals
        totals.requests += 1
        totals.prompt_tokens += len(ticket.job.prompt)
        totals.generated_tokens += len(ids)
        totals.latency_seconds += latency
        totals.used_tokens = 0
        meta: dict[str, Any] = {
            "id": ticket.rid,
            "finish_reason": finish,
            "prompt_tokens": len(ticket.job.prompt),
            "weight_version": "default",
            "total_retractions": 0,
            "queue_time": ticket.queue_time,
            "completion_tokens": len(ids),
            "cached_tokens": 0,
            "e2e_latency": latency,
            **self._speculation(len(ids)),
            "request_received_ts": ticket.received,
        }
        text = self.engine.text(ids) if text is None else text
        # The next request may begin before the client has read this one: the ticket owns its data.
        ticket.progress.put(Progress(ids, text, finish, meta))

    def _speculation(self, completion_tokens: int) -> dict[str, Any]:
        """The spec_ fields of meta_info; absent without speculation or before the first verify."""
        counts, proposed_per_cycle = self.engine.decoder.counts, self.engine.num_steps
        if not proposed_per_cycle or not counts.cycles:
            return {}
        release = self.engine.release
        proposed = counts.cycles * proposed_per_cycle
        return {
            "spec_accept_rate": counts.accepted / proposed,
            "spec_accept_length": completion_tokens / counts.cycles,
            **dict.fromkeys(release.accepted_names, counts.accepted),
            **dict.fromkeys(release.proposed_names, proposed),
            "spec_verify_ct": counts.cycles,
            **{name: list(counts.histogram) for name in release.histogram_names},
        }

    def _prefill_line(self, tokens: int) -> None:
        now = time.perf_counter()
        rate = self.last_prefill_tokens / (now - self.prefill_tic)
        self.prefill_tic, self.last_prefill_tokens = now, tokens
        log.info(
            "Prefill batch, #new-seq: 1, #new-token: %d, #cached-token: 0, token usage: %.2f, "
            "#running-req: 0, #queue-req: %d, cpu graph: False, input throughput (token/s): %.2f",
            tokens,
            0.0,
            self.queued,
            rate,
        )

    def _count_cycle(self, tokens: int, finished: bool) -> None:
        """Count one decode step of `tokens` new tokens; write the decode line when it is due."""
        self.cycles += 1
        self.interval_cycles += 1
        self.interval_tokens += tokens
        totals = self.totals
        totals.used_tokens = 0 if finished else self.engine.decoder.cache.used
        if self.cycles % self.interval:
            return
        now = time.perf_counter()
        totals.gen_throughput = self.interval_tokens / (now - self.decode_tic)
        accept = ""
        if self.engine.num_steps:
            totals.line_tokens += self.interval_tokens
            totals.line_verifies += self.interval_cycles
            totals.accept_length = self.interval_tokens / self.interval_cycles
            totals.accept_rate = self.engine.release.log_accept_rate(
                totals.accept_length, self.engine.num_steps + 1
            )
            accept = (
                f"accept len: {totals.accept_length:.2f}, accept rate: {totals.accept_rate:.2f}, "
            )
        self.decode_tic = now
        self.interval_cycles = self.interval_tokens = 0
        log.info(
            "Decode batch, #running-req: 1, #token: %d, token usage: %.2f, %scpu graph: False, "
            "gen throughput (token/s): %.2f, #queue-req: %d",
            totals.used_tokens,
            totals.used_tokens / self.engine.capacity,
            accept,
            totals.gen_throughput,
            self.queued,
        )
