"""Decode lines summed up: which count, their middles per rank, and the window they betray.

It reads the rows of a Case only; whether a figure is a fault is decided in checks/.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from specdebug.diagnosis.arguments import ReleaseKnowledge, as_int
from specdebug.diagnosis.facts import Boot, Stretch
from specdebug.diagnosis.findings import Evidence
from specdebug.measure import series

DECODE_LOG_INTERVAL = 40


@dataclass(frozen=True)
class DecodeSummary:
    """The decode lines of one rank or of all ranks of one start.

    busy: lines with a running request; counted: those of them whose step time is not an outlier.
    accept_len: weighted by running requests, NaN-free lines only. drafts: verifications estimated
    from the log interval. graph_off: share of busy lines that say graphs were off. All None when
    no line carries the figure.
    """

    rank: str
    busy: int
    counted: int
    accept_len: float | None
    step_ms: float | None
    tok_s: float | None
    running: float | None
    running_max: float
    queue_max: float
    drafts: int
    graph_off: float | None
    speculative: bool
    evidence: tuple[Evidence, ...]


def decode_text(stretch: Stretch, i: int) -> str:
    """The figures of decode line i in the words of the log."""
    parts = [f"#running-req: {stretch.running[i]:g}"]
    if not math.isnan(stretch.accept_len[i]):
        parts.append(f"accept len: {stretch.accept_len[i]:.2f}")
    if not math.isnan(stretch.accept_rate[i]):
        parts.append(f"accept rate: {stretch.accept_rate[i]:.2f}")
    if stretch.graph[i] >= 0:
        parts.append(f"cuda graph: {bool(stretch.graph[i])}")
    parts.append(f"gen throughput (token/s): {stretch.throughput[i]:.2f}")
    parts.append(f"#queue-req: {stretch.queue[i]:g}")
    return ", ".join(parts)


def line_evidence(boot: Boot, stretch: Stretch, i: int) -> Evidence:
    """Decode line i as evidence, verbatim where the text was kept."""
    text = stretch.texts.get(stretch.lines[i])
    if text:
        return Evidence(boot.source, stretch.lines[i], text)
    rank = f"[{stretch.rank}] " if stretch.rank else ""
    return Evidence(boot.source, stretch.lines[i], rank + decode_text(stretch, i))


def busy_indices(stretch: Stretch) -> list[int]:
    """Indices of the lines with at least one running request."""
    return [i for i, running in enumerate(stretch.running) if running > 0]


def counted_indices(stretch: Stretch) -> list[int]:
    """Busy lines whose step time is within twice the median: warm-up and idle gaps left out."""
    busy = busy_indices(stretch)
    times = series.step_times(
        [stretch.accept_len[i] for i in busy],
        [stretch.running[i] for i in busy],
        [stretch.throughput[i] for i in busy],
    )
    if series.median(times) is None:
        return busy
    return [i for i, keep in zip(busy, series.counted(times), strict=True) if keep]


def summarise(boot: Boot, stretch: Stretch, interval: int = DECODE_LOG_INTERVAL) -> DecodeSummary:
    """Sum up the decode lines of one rank."""
    busy = busy_indices(stretch)
    kept = counted_indices(stretch)
    lengths = [(stretch.accept_len[i], stretch.running[i]) for i in busy]
    lengths = [(a, w) for a, w in lengths if not math.isnan(a)]
    weight = math.fsum(w for _, w in lengths)
    times = series.step_times(
        [stretch.accept_len[i] for i in busy],
        [stretch.running[i] for i in busy],
        [stretch.throughput[i] for i in busy],
    )
    graphs = [stretch.graph[i] for i in busy if stretch.graph[i] >= 0]
    shown = [line_evidence(boot, stretch, i) for i in (kept[:1] + kept[-1:])]
    return DecodeSummary(
        rank=stretch.rank,
        busy=len(busy) * stretch.every,
        counted=len(kept) * stretch.every,
        accept_len=math.fsum(a * w for a, w in lengths) / weight if weight else None,
        step_ms=series.median(times),
        tok_s=series.median([stretch.throughput[i] for i in kept]) or None,
        running=None if stretch.assumed else series.median([stretch.running[i] for i in kept]),
        running_max=max((stretch.running[i] for i in busy), default=0.0),
        queue_max=max((stretch.queue[i] for i in busy), default=0.0),
        drafts=round(
            math.fsum(stretch.drafts[i] for i in busy)
            if stretch.drafts
            else weight * interval * stretch.every
        ),
        graph_off=graphs.count(0) / len(graphs) if graphs else None,
        speculative=bool(lengths),
        evidence=tuple(dict.fromkeys(shown)),
    )


def interval_of(boot: Boot) -> int:
    """Decode steps between two decode lines of this start."""
    fact = boot.effective.get("decode_log_interval")
    return (as_int(fact.value) if fact else None) or DECODE_LOG_INTERVAL


@lru_cache(maxsize=64)
def summary_of(boot: Boot) -> tuple[DecodeSummary, ...]:
    """One summary per rank that printed a busy decode line."""
    found = [summarise(boot, s, interval_of(boot)) for s in boot.stretches]
    return tuple(s for s in found if s.busy)


def together(parts: Sequence[DecodeSummary]) -> DecodeSummary:
    """All ranks as one server: throughput and requests add up, lengths are weighted by drafts."""
    if len(parts) == 1:
        return parts[0]
    spec = [p for p in parts if p.accept_len is not None]
    weight = sum(p.drafts for p in spec)
    times = [p.step_ms for p in parts if p.step_ms is not None]
    off = [p.graph_off for p in parts if p.graph_off is not None]
    tok_s = [p.tok_s for p in parts if p.tok_s is not None]
    running = [p.running for p in parts if p.running is not None]
    return DecodeSummary(
        rank="all ranks",
        busy=sum(p.busy for p in parts),
        counted=sum(p.counted for p in parts),
        accept_len=sum((p.accept_len or 0) * p.drafts for p in spec) / weight if weight else None,
        step_ms=series.median(times),
        tok_s=sum(tok_s) or None,
        running=sum(running) or None,
        running_max=sum(p.running_max for p in parts),
        queue_max=max(p.queue_max for p in parts),
        drafts=weight,
        graph_off=max(off) if off else None,
        speculative=bool(spec),
        evidence=tuple(e for p in parts for e in p.evidence[:1]),
    )


@dataclass(frozen=True)
class WindowReading:
    """The tokens verified per step that the lines' accept len and accept rate fit.

    windows: every whole number that fits; by_formula: the same under each definition still
    possible ("len / window" up to 0.5.10.post1, "(len - 1) / (window - 1)" from 0.5.11).
    """

    windows: tuple[int, ...]
    by_formula: dict[str, tuple[int, ...]]
    lines: int
    evidence: tuple[Evidence, ...]


OLD_RATE, NEW_RATE = "len / window", "(len - 1) / (window - 1)"
LARGEST_WINDOW = 128


def _fits(formula: str, window: int, length: float, rate: float) -> bool:
    # Both figures are printed with two decimals, so each is off by up to 0.005.
    if formula == OLD_RATE:
        return abs(length / window - rate) <= 0.0051 + 0.0051 / window
    return abs((length - 1) / (window - 1) - rate) <= 0.0051 + 0.0051 / (window - 1)


def rate_windows(length: float, rate: float) -> dict[str, tuple[int, ...]]:
    """The windows that one pair of accept len and accept rate fits, by definition of the rate."""
    found = {
        formula: tuple(w for w in range(2, LARGEST_WINDOW + 1) if _fits(formula, w, length, rate))
        for formula in (OLD_RATE, NEW_RATE)
    }
    return {formula: windows for formula, windows in found.items() if windows}


@lru_cache(maxsize=64)
def window_reading(boot: Boot, knowledge: ReleaseKnowledge) -> WindowReading | None:
    """The window read from the decode lines; None where they carry no rate or fit nothing.

    Nineteen lines of twenty must fit, so that one mangled line decides nothing.
    """
    pairs: list[tuple[float, float]] = []
    evidence: list[Evidence] = []
    for stretch in boot.stretches:
        for i in busy_indices(stretch):
            length, rate = stretch.accept_len[i], stretch.accept_rate[i]
            if math.isnan(length) or math.isnan(rate):
                continue
            pairs.append((length, rate))
            if len(evidence) < 3:
                evidence.append(line_evidence(boot, stretch, i))
    if not pairs:
        return None
    formulas = []
    if not knowledge.surely_from("0.5.11"):
        formulas.append(OLD_RATE)
    if not knowledge.surely_before("0.5.11"):
        formulas.append(NEW_RATE)
    found: dict[str, tuple[int, ...]] = {}
    distinct = list(dict.fromkeys(pairs))[:2000]
    for formula in formulas:
        telling = distinct
        if formula == NEW_RATE:
            telling = [p for p in distinct if not (p[0] <= 1.0051 and p[1] <= 0.0051)]
            if not telling:
                continue
        found[formula] = tuple(
            window
            for window in range(2, LARGEST_WINDOW + 1)
            if sum(_fits(formula, window, *p) for p in telling) >= 0.95 * len(telling)
        )
    found = {f: w for f, w in found.items() if w}
    windows = tuple(sorted({w for ws in found.values() for w in ws}))
    return WindowReading(windows, found, len(pairs), tuple(evidence)) if windows else None
