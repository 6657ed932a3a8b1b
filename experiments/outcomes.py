"""From a worker's outcome to unsaved rows: repeats, accept lengths, decode lines; writes nothing.

Each figure's definition is in docs/metrics.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from experiments.models import DecodeSample, Repeat, Run
from experiments.queries.figures import pooled_accept_len
from specdebug.measure.acceptance import RequestCounts, accept_lengths
from specdebug.sglang import server_info
from specdebug.sglang.logs import ServerLog
from workers import plan

# Enough points for any chart; a longer log is thinned evenly, its whole stays as evidence.
MOST_SAMPLES = 5000


def moment(seconds: float | None) -> datetime | None:
    """Seconds since the epoch as a time of day."""
    return None if seconds is None else datetime.fromtimestamp(seconds, tz=UTC)


def repeat_row(run: Run, repeat: plan.Repeat) -> Repeat:
    """One repeat with the figures derived from it."""
    requests = repeat.requests
    tokens = sum(r.completion_tokens for r in requests)
    verifies = [r.spec_verify_ct for r in requests if r.spec_verify_ct is not None]
    verify_ct = sum(verifies) if verifies and len(verifies) == len(requests) else None
    tok_s = tokens / repeat.seconds if repeat.seconds > 0 else 0.0
    accept_len = None
    if verify_ct:
        accept_len = pooled_accept_len(tokens, len(requests), verify_ct)
    step_ms = None
    if tok_s > 0:
        # A plain step yields one token for each running request.
        step_ms = 1000 * (accept_len or 1.0) * in_flight(run, repeat) / tok_s
    return Repeat(
        run=run,
        index=repeat.index,
        started_at=moment(repeat.started_at),
        seconds=repeat.seconds,
        requests=len(requests),
        tokens=tokens,
        verify_ct=verify_ct,
        accept_histogram=_histogram(requests),
        tok_s=tok_s,
        accept_len=accept_len,
        step_ms=step_ms,
        output_sha256=_outputs(requests),
        prompts_sha256=_hash(sorted(r.prompt for r in requests)) if requests else "",
    )


def in_flight(run: Run, repeat: plan.Repeat) -> float:
    """Requests that ran at once: the workload's concurrency where it was kept up all the time, at a
    request rate their mean number, which is the sum of their times over the repeat's."""
    work = run.plan.get("workload", {})
    if work.get("request_rate") is None or repeat.seconds <= 0:
        return float(work.get("concurrency") or 1)
    return sum(request.seconds for request in repeat.requests) / repeat.seconds


def lengths(outcome: plan.RunOutcome) -> list[dict[str, Any]]:
    """The accept lengths that a run allows, each with its formula and the passes behind it."""
    counts = [
        RequestCounts(r.completion_tokens, r.spec_verify_ct, r.accept_histogram or ())
        for repeat in outcome.repeats
        for r in repeat.requests
        if r.spec_verify_ct
    ]
    average = None
    if outcome.server_info and outcome.repeats:
        states = server_info.from_mapping(outcome.server_info).ranks
        known = [s.avg_accept_len for s in states if s.avg_accept_len]
        average = sum(known) / len(known) if known and counts else None
    return [
        {"name": one.name, "value": one.value, "formula": one.formula, "verifies": one.verifies}
        for one in accept_lengths(counts, average)
    ]


def _histogram(requests: Sequence[plan.Request]) -> list[int] | None:
    known = [r.accept_histogram for r in requests if r.accept_histogram is not None]
    if not known or len(known) != len(requests):
        return None
    total = [0] * max(len(h) for h in known)
    for histogram in known:
        for k, count in enumerate(histogram):
            total[k] += count
    return total


def _outputs(requests: Sequence[plan.Request]) -> str:
    """One hash over all outputs of a repeat, in the prompts' order whatever finished first."""
    if not requests or not all(r.output_sha256 for r in requests):
        return ""
    return _hash(sorted(f"{r.prompt} {r.output_sha256}" for r in requests))


def _hash(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def samples(run: Run, outcome: plan.RunOutcome, found: ServerLog | None) -> list[DecodeSample]:
    if found is None:
        return []
    spans = [(r.started_at, r.started_at + r.seconds) for r in outcome.repeats]
    # The log prints the worker's local time without its zone.
    zone = datetime.fromtimestamp(outcome.started_at).astimezone().utcoffset()
    shift = zone.total_seconds() if zone else 0.0
    lines = [line for boot in found.boots for line in boot.decode_lines()]
    stride = max(1, -(-len(lines) // MOST_SAMPLES))
    rows = []
    for line in lines[::stride]:
        t = None
        if line.time is not None:
            t = line.time.replace(tzinfo=UTC).timestamp() - shift
        rows.append(
            DecodeSample(
                run=run,
                line=line.line,
                rank=line.rank[:40],
                t=t,
                tok_s=line.throughput,
                accept_len=line.accept_len,
                accept_rate=line.accept_rate,
                running=line.running,
                queue=line.queue,
                # Whole seconds are printed, so a line may be up to one second late.
                in_repeat=t is None or run.by_script or any(a - 1 <= t <= b + 1 for a, b in spans),
            )
        )
    return rows
