"""Prompts and concurrency: what a server is asked and how it answered, request by request; it
computes no rates."""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import queue
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx

from specdebug.sglang import meta_info
from workers.plan import Repeat, Request, RunEnded, ShouldStop, Workload
from workers.prompt_files import Prompt

LARGEST_ANSWER = 64 * 1024 * 1024
LOOK_SECONDS = 0.1
# A request that broke off may be the first sign of a server that dies: how long to look for that.
DYING_SECONDS = 3.0
FLUSH_TRIES = 20  # SGLang refuses while a request is still being cleared away

Answer = Mapping[str, Any]


class _BrokeOff(RunEnded):
    """A request without an answer, as a dying server leaves it."""


class Client:
    """One server's HTTP side as SGLang speaks it; may be used from several threads."""

    def __init__(self, url: str, *, key: str = "", request_seconds: float = 300.0) -> None:
        """`request_seconds` is the longest silence of one request; `key` the engine's API key."""
        self.url = url
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(10.0, read=request_seconds, pool=None),
            limits=httpx.Limits(max_connections=None),
            trust_env=False,  # a proxy between us and the engine would be measured too
        )
        self._seconds = request_seconds

    def close(self) -> None:
        self._http.close()

    def _ask(
        self, method: str, path: str, body: object = None, seconds: float | None = None
    ) -> Any:
        """The response with its content read. Raises httpx.HTTPError, ValueError when too large."""
        timeout = httpx.USE_CLIENT_DEFAULT if seconds is None else httpx.Timeout(seconds)
        with self._http.stream(method, path, json=body, timeout=timeout) as response:
            parts, size = [], 0
            for part in response.iter_bytes():
                size += len(part)
                if size > LARGEST_ANSWER:
                    raise ValueError(f"the answer is larger than {LARGEST_ANSWER >> 20} MiB")
                parts.append(part)
        return response.status_code, b"".join(parts)

    def is_up(self) -> str:
        """ "" when /health answers 200, else what it did."""
        try:
            status, _ = self._ask("GET", "/health", seconds=30.0)
        except (httpx.HTTPError, ValueError) as problem:
            return str(problem) or type(problem).__name__
        return "" if status == 200 else f"/health answered {status}"

    def flush_cache(self) -> bool:
        """Empty the prefix cache and reset averages; False where the server has no such thing."""
        for _ in range(FLUSH_TRIES):
            try:
                status, _body = self._ask("POST", "/flush_cache", seconds=30.0)
            except (httpx.HTTPError, ValueError):
                return False
            if status == 200:
                return True
            if status != 400:  # 400: not idle yet
                return False
            time.sleep(LOOK_SECONDS)
        return False

    def server_info(self, seconds: float = 30.0) -> dict[str, Any] | None:
        """/server_info, or its older name; None where neither answers."""
        for path in ("/server_info", "/get_server_info"):
            try:
                status, body = self._ask("GET", path, seconds=seconds)
                if status == 200:
                    # NaN is no JSON, and a database says so at the worst moment.
                    found = json.loads(body, parse_constant=lambda _: None)
                    return found if isinstance(found, dict) else None
            except httpx.TimeoutException:
                return None
            except (httpx.HTTPError, ValueError):
                continue
        return None

    def metrics(self, seconds: float = 30.0) -> str:
        """The text of /metrics, "" where there is none."""
        try:
            status, body = self._ask("GET", "/metrics", seconds=seconds)
        except (httpx.HTTPError, ValueError):
            return ""
        return bytes(body).decode(errors="replace") if status == 200 else ""

    def generate(self, prompt: Prompt, workload: Workload) -> Request:
        """One request. Raises RunEnded with the prompt's id and what the server said."""
        body = {
            **prompt.body,
            "sampling_params": {
                "max_new_tokens": workload.max_new_tokens,
                "temperature": workload.temperature,
                "ignore_eos": workload.ignore_eos,
            },
        }
        where = f"Prompt {prompt.id}"
        begin = time.perf_counter()
        try:
            status, data = self._ask("POST", "/generate", body)
        except httpx.ReadTimeout:
            raise RunEnded("failed", f"{where}: no answer within {self._seconds:g} s.") from None
        except (httpx.HTTPError, ValueError) as problem:
            text = str(problem) or type(problem).__name__
            raise _BrokeOff("failed", f"{where}: the request failed: {text}") from None
        seconds = time.perf_counter() - begin
        if status != 200:
            raise RunEnded("failed", f"{where}: the server answered {status}: {_said(data)}")
        try:
            return _request(prompt, seconds, json.loads(data))
        except (ValueError, KeyError, TypeError):
            raise RunEnded(
                "failed", f"{where}: this is no answer of /generate: {_said(data)}"
            ) from None


def _said(body: bytes) -> str:
    """What an error body says, short."""
    text = body.decode(errors="replace").strip()
    try:
        found = json.loads(text)
        if isinstance(found, dict):
            found = found.get("error", found.get("detail", found.get("message", found)))
        if isinstance(found, dict):
            found = found.get("message", found)
        text = found if isinstance(found, str) else json.dumps(found)
    except ValueError:
        pass
    return text[:300] or "nothing"


def _request(prompt: Prompt, seconds: float, answer: Answer) -> Request:
    """Raises KeyError, TypeError, ValueError where the answer is not one of /generate."""
    meta = answer["meta_info"]
    counts = meta_info.from_mapping(answer)
    ids = answer.get("output_ids")
    output = ",".join(map(str, ids)) if isinstance(ids, list) and ids else str(answer["text"])
    return Request(
        prompt=prompt.id,
        seconds=seconds,
        prompt_tokens=int(meta.get("prompt_tokens") or 0),
        completion_tokens=int(meta["completion_tokens"]),
        spec_verify_ct=counts.verify_ct if counts else None,
        accept_histogram=counts.histogram if counts else None,
        output_sha256=hashlib.sha256(output.encode()).hexdigest(),
        meta=meta,
    )


def arrivals(count: int, rate: float | None, seed: int) -> list[float]:
    """Seconds after the start at which each of `count` requests is due.

    All at once without a `rate`; else a Poisson process of `rate` requests per second, the same
    for the same seed. The first one is due at once, as sglang.bench_serving has it.
    """
    if rate is None:
        return [0.0] * count
    dice = random.Random(seed)  # noqa: S311 (arrival times are no secret)
    due, found = 0.0, []
    for _ in range(count):
        found.append(due)
        due += dice.expovariate(rate)
    return found


def run_repeat(
    client: Client,
    prompts: Sequence[Prompt],
    workload: Workload,
    *,
    index: int,
    should_stop: ShouldStop,
    died: Callable[[], str],
    on_answer: Callable[[int], None],
) -> Repeat:
    """Ask all prompts once, at most `workload.concurrency` at a time, at `workload.request_rate`.

    `on_answer` gets the number of answers so far. `died` says "" while the server lives, else how
    it ended. Raises RunEnded for a failed request, a dead server, or a wish to stop; requests then
    still open end with the server, or with their time limit.
    """
    waiting: queue.SimpleQueue[Prompt | None] = queue.SimpleQueue()
    answers: queue.SimpleQueue[Request | RunEnded] = queue.SimpleQueue()
    dues = arrivals(len(prompts), workload.request_rate, workload.seed * 1000 + index)
    due = collections.deque(zip(dues, prompts, strict=True))
    threads = min(workload.concurrency, len(prompts))

    def ask() -> None:
        while (prompt := waiting.get()) is not None:
            try:
                answers.put(client.generate(prompt, workload))
            except RunEnded as ended:
                answers.put(ended)
            except Exception as problem:
                # Not raised here: a client closed under a request that nobody waits for raises too.
                broken = RunEnded("failed", f"Prompt {prompt.id}: {problem!r}")
                broken.__cause__ = problem
                answers.put(broken)

    started_at, begin = time.time(), time.perf_counter()
    for _ in range(threads):
        threading.Thread(target=ask, name="load", daemon=True).start()
    found: list[Request] = []
    try:
        while len(found) < len(prompts):
            if reason := should_stop():
                raise RunEnded("cancelled", reason)
            passed = time.perf_counter() - begin
            while due and due[0][0] <= passed:
                waiting.put(due.popleft()[1])
            patience = min(LOOK_SECONDS, due[0][0] - passed) if due else LOOK_SECONDS
            try:
                answer = answers.get(timeout=patience)
            except queue.Empty:
                if how := died():
                    raise RunEnded("failed", how) from None
                continue
            if isinstance(answer, RunEnded):
                raise _died_or(answer, died)
            found.append(answer)
            on_answer(len(found))
    finally:
        # Whoever still waits for a prompt gets none.
        with contextlib.suppress(queue.Empty):
            while True:
                waiting.get_nowait()
        for _ in range(threads):
            waiting.put(None)
    seconds = time.perf_counter() - begin
    order = {prompt.id: place for place, prompt in reversed(list(enumerate(prompts)))}
    found.sort(key=lambda request: order[request.prompt])
    return Repeat(index=index, started_at=started_at, seconds=seconds, requests=tuple(found))


def _died_or(failed: RunEnded, died: Callable[[], str]) -> RunEnded:
    """The server's end where that is why the request failed."""
    until = time.monotonic() + DYING_SECONDS
    while isinstance(failed, _BrokeOff) and time.monotonic() < until:
        if how := died():
            return RunEnded("failed", how)
        time.sleep(LOOK_SECONDS)
    return failed
