"""From what the log readers return to the rows of a Case; no file access and no judgement."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from specdebug.diagnosis.facts import Boot, Fact, Notice, Positions, Stretch
from specdebug.sglang.patterns import regex

if TYPE_CHECKING:  # a check without a log starts sooner without its readers
    from specdebug.sglang.decode_table import Column, DecodeTable
    from specdebug.sglang.log_types import ServerLog
    from specdebug.sglang.vllm import VllmLog

CONDITIONAL = "P(position k accepted | position k-1 was)"


def boots(log: ServerLog, source: str) -> list[Boot]:
    """The starts of a log that hold anything: arguments, decode lines or events."""
    out: list[Boot] = []
    for boot in log.boots:
        line = boot.server_args_line
        effective = {
            key: Fact(value, source, line, f"{key}={value!r}"[:200])
            for key, value in (boot.server_args or {}).items()
        }
        notices = [
            Notice("argument-warning", source, w.line, w.text, {"rule": w.rule or ""})
            for w in boot.argument_warnings
        ]
        notices += [
            Notice("model-load", source, m.line, m.text, {"type": m.model_type}, m.rank)
            for m in boot.model_loads
        ]
        notices += [
            Notice(e.kind, source, e.line, e.text, dict(e.fields), e.rank) for e in boot.events
        ]
        stretches = tuple(stretch(table) for table in boot.decode.values() if table.count)
        if not (effective or notices or stretches):
            continue
        low, high = boot.release_between
        out.append(
            Boot(
                source=source,
                line=boot.start_line,
                excerpt=boot.server_args is None,
                effective=effective,
                stretches=stretches,
                notices=tuple(sorted(notices, key=lambda n: n.line or 0)),
                release=str(boot.release) if boot.release else None,
                release_from=str(low) if low else None,
                release_until=str(high) if high else None,
                ready=boot.first("ready") is not None,
            )
        )
    return out


# Checks sort and fit these lines in plain Python; so many take about a second.
MOST_LINES = 50_000


def stretch(table: DecodeTable) -> Stretch:
    """The kept decode lines of one rank as plain columns, thinned evenly to MOST_LINES."""
    step = max(1, -(-len(table) // MOST_LINES))

    # On a CPU the engine prints "cpu graph": running without one is how it is meant to be there.
    cpu = any(extra.get("graph") == "cpu graph" for extra in table.extras.values())

    def column(name: Column) -> list[float]:
        return _figures(table[name][::step].tolist())

    return Stretch(
        rank=table.rank,
        lines=table.lines[::step].tolist(),
        running=_zeros(column("running")),
        queue=_zeros(column("queue")),
        tokens=column("tokens"),
        accept_len=_figures(column("accept_len"), least=1e-9),
        accept_rate=column("accept_rate"),
        graph=[-1 if cpu or math.isnan(g) else int(g) for g in column("graph")],
        throughput=_zeros(column("throughput")),
        every=step * max(table.stride, 1),
    )


def _figures(values: list[float], least: float = 0.0) -> list[float]:
    """The values with NaN for those that no server has: one that is damaged prints anything."""
    return [v if least <= v < 1e12 else math.nan for v in values]


def _zeros(values: list[float]) -> list[float]:
    return [0.0 if math.isnan(v) else v for v in values]


def vllm_boot(log: VllmLog, source: str) -> tuple[Boot, Positions | None]:
    """A vLLM log as one start; running and throughput come from the nearest line before."""
    lines: list[int] = []
    columns: dict[str, list[float]] = {"running": [], "queue": [], "len": [], "tok_s": []}
    for spec in log.spec:
        near = [t for t in log.throughput if t.line <= spec.line] or list(log.throughput)
        last = near[-1] if near else None
        lines.append(spec.line)
        columns["len"].append(spec.accept_len)
        columns["running"].append(float((last.running if last else None) or 1))
        columns["queue"].append(float((last.waiting if last else None) or 0))
        columns["tok_s"].append(last.generation_tok_s if last else 0.0)
    counted = [(s.drafted or 0) / max(len(s.per_position), 1) for s in log.spec]
    nan = [math.nan] * len(lines)
    stretches = (
        (
            Stretch(
                "",
                lines,
                _zeros(_figures(columns["running"])),
                _zeros(_figures(columns["queue"])),
                nan,
                _figures(columns["len"], least=1e-9),
                list(nan),
                [-1] * len(lines),
                _zeros(_figures(columns["tok_s"])),
                {spec.line: spec.text.strip()[:400] for spec in log.spec},
                drafts=counted if all(counted) else (),
                assumed=not log.throughput,
            ),
        )
        if lines
        else ()
    )
    return Boot(source, 1, True, {}, stretches, (), log.version, engine="vllm"), _vllm_positions(
        log, source
    )


def _vllm_positions(log: VllmLog, source: str) -> Positions | None:
    rows = [s for s in log.spec if s.per_position and s.drafted]
    if not rows:
        return None
    depth = max(len(s.per_position) for s in rows)
    accepted = [0.0] * depth
    drafts = 0.0
    for row in rows:
        count = (row.drafted or 0) / len(row.per_position)
        drafts += count
        for k, rate in enumerate(row.per_position):
            accepted[k] += rate * count
    if drafts <= 0:
        return None
    from specdebug.sglang import vllm

    unconditional = tuple(a / drafts for a in accepted)
    return Positions(
        source,
        rows[0].line,
        rows[0].text,
        vllm.conditional(unconditional),
        round(drafts),
        f"{CONDITIONAL}, from the logged per-position rates weighted by drafts",
        depth,
        1 + sum(unconditional),
    )


# What launchers, schedulers and drivers print around the engine; the engine's own events are read
# in sglang/log_events.py.
_OUTSIDE = regex(
    r"(?i)startup probe failed|timed out waiting for|timeout waiting for|did not become ready"
    r"|not ready (?:after|within)|failed to start within|start(?:ing|-up)? timed out"
    r"|memory capacity is unbalanced|occupied by other processes|busy or unavailable"
    r"|device\(s\) is/are busy"
)


def outside_notices(text: str, source: str) -> tuple[Notice, ...]:
    """Lines about a start that is late or a GPU that is not free, with their numbers."""
    return tuple(
        Notice("outside", source, number, line.strip()[:500])
        for number, line in enumerate(text.splitlines(), start=1)
        if _OUTSIDE.search(line) and "server_args=" not in line
    )
