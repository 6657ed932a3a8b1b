"""Checks of how figures were taken: chunk counting, sample sizes, warm-up, mixed starts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import PurePath

from specdebug.diagnosis.arguments import release_knowledge, setups
from specdebug.diagnosis.decode import (
    NEW_RATE,
    OLD_RATE,
    busy_indices,
    counted_indices,
    line_evidence,
    rate_windows,
    window_reading,
)
from specdebug.diagnosis.doubts import doubts
from specdebug.diagnosis.facts import Boot, Case
from specdebug.diagnosis.figures import Run, baseline, runs, speculative_runs
from specdebug.diagnosis.findings import Evidence, Finding

ENOUGH_DRAFTS = 1000
ENOUGH_REPEATS = 5


@dataclass(frozen=True)
class ChunkCount:
    """A client's figure that times the accept length is the server's."""

    client: Run
    server: Run
    accept_len: float


def chunk_counted(case: Case) -> list[ChunkCount]:
    """Client rows whose tok/s times accept length is within 10 % of the server's tok/s."""
    found: list[ChunkCount] = []
    servers = [r for r in runs(case) if r.origin == "log" and r.speculative and r.tok_s]
    for client in runs(case):
        if client.origin != "row" or not client.tok_s or client.counted_by == "server":
            continue
        for server in servers:
            length = server.accept_len
            if not length or length < 1.2 or not server.tok_s:
                continue
            ratio = client.tok_s * length / server.tok_s
            if abs(ratio - 1) <= 0.10 and client.tok_s < 0.9 * server.tok_s:
                found.append(ChunkCount(client, server, length))
                break
    return found


def client_counts_chunks(case: Case) -> Finding | None:
    """The client's throughput times the accept length is the server's throughput."""
    found = chunk_counted(case)
    if not found:
        return None
    one = found[0]
    client, server = one.client.tok_s or 0.0, one.server.tok_s or 0.0
    base = baseline(case)
    real = ""
    if base is not None and base.tok_s and client < base.tok_s <= server:
        real = f" The loss against the baseline of {base.tok_s:g} tok/s is not real."
    return Finding(
        "client-counts-chunks",
        "medium",
        "likely",
        f"The client reports {client:g} tok/s and the server {server:.4g}; times the accept length "
        f"{one.accept_len:.2f} the client's figure is {client * one.accept_len:.4g}: it counts one "
        f"token per streamed chunk.{real}",
        (*one.client.evidence, *one.server.evidence[:1]),
        "Count the tokens of each chunk (completion_tokens, or the tokenizer), not the events.",
        "completion_tokens of the same requests",
    )


def too_few_samples(case: Case) -> Finding | None:
    """Fewer than 1,000 drafts behind the accept length, or runs without repeats compared."""
    few: list[str] = []
    evidence: list[Evidence] = []
    for run in speculative_runs(case):
        if run.accept_len is not None and run.drafts is not None and run.drafts < ENOUGH_DRAFTS:
            few.append(f"{run.label} rests on about {run.drafts} drafts")
            evidence += run.evidence[:1]
    named = {each.source for each in evidence}
    for p in case.positions:
        # The run of the same input has been named already: its drafts are these.
        if 0 < p.drafts < ENOUGH_DRAFTS and p.source not in named:
            few.append(f"{p.source} rests on {p.drafts} drafts")
            evidence.append(Evidence(p.source, p.line, p.text))
    rows = [r for r in runs(case) if r.origin == "row" and r.tok_s]
    if len(rows) + bool(case.baseline_tok_s) > 1:
        once = [r for r in rows if len(r.samples) < ENOUGH_REPEATS]
        if once:
            have = "throughputs have" if len(once) > 1 else "throughput has"
            few.append(f"{len(once)} {have} fewer than {ENOUGH_REPEATS} repeats")
            evidence += [e for r in once for e in r.evidence[:1]]
    if not few:
        return None
    return Finding(
        "too-few-samples",
        "info",
        "certain",
        "Few samples: " + "; ".join(few) + ". Small differences may be noise.",
        tuple(dict.fromkeys(evidence)),
        f"Pool at least {ENOUGH_DRAFTS} drafts, and repeat runs at least {ENOUGH_REPEATS} times, "
        "interleaved.",
    )


def warm_up_counted(case: Case) -> Finding | None:
    """Lines with a cold or idle step would move a plain average of the throughput."""
    for boot in case.boots:
        finding = _warm_up(boot)
        if finding is not None:
            return finding
    return None


def _warm_up(boot: Boot) -> Finding | None:
    for stretch in boot.stretches:
        busy, kept = busy_indices(stretch), set(counted_indices(stretch))
        cold = [i for i in busy if i not in kept]
        if not cold or not kept:
            continue
        plain = math.fsum(stretch.throughput[i] for i in busy) / len(busy)
        clean = math.fsum(stretch.throughput[i] for i in kept) / len(kept)
        if clean <= 0 or abs(plain / clean - 1) < 0.02:
            continue
        return Finding(
            "warm-up-counted",
            "info",
            "certain",
            f"{len(cold)} of {len(busy)} decode lines {_colds(len(cold))}; an "
            f"average over all of them gives {plain:.4g} tok/s instead of {clean:.4g}.",
            (line_evidence(boot, stretch, cold[0]),),
            "Leave the first line after an idle time out, as the figures here do; run a warm-up "
            "before measuring.",
        )
    return None


def _colds(count: int) -> str:
    return (
        "are cold starts or count idle time" if count > 1 else "is a cold start or counts idle time"
    )


def several_boots(case: Case) -> Finding | None:
    """One file holds more than one server start."""
    by_source: dict[str, list[Boot]] = {}
    for boot in case.boots:
        if not boot.heading:  # somebody has told these apart already
            by_source.setdefault(boot.source, []).append(boot)
    for source, boots in by_source.items():
        if len(boots) < 2:
            continue
        lines = ", ".join(str(b.line) for b in boots)
        return Finding(
            "several-boots",
            "medium",
            "certain",
            f"{PurePath(source).name} holds {len(boots)} server starts (from lines {lines}); each "
            "is judged by itself.",
            tuple(Evidence(source, b.line, _start_text(b)) for b in boots),
            "Write one log file per start.",
        )
    return None


def _start_text(boot: Boot) -> str:
    keys = ("speculative_algorithm", "speculative_num_steps", "speculative_num_draft_tokens")
    said = [boot.effective[k].text for k in keys if k in boot.effective]
    return ", ".join(said) or "server start"


def accept_rate_not_comparable(case: Case) -> Finding | None:
    """Accept rates that were computed by different formulas lie side by side."""
    formulas: dict[str, list[Evidence]] = {}
    for setup in setups(case):
        if setup.boot is None:
            continue
        reading = window_reading(setup.boot, release_knowledge(setup))
        if reading is None or len(reading.by_formula) != 1:
            continue
        formula = next(iter(reading.by_formula))
        formulas.setdefault(formula, []).extend(reading.evidence[:1])
    for row in case.measured:
        if row.accept_len is None or row.accept_rate is None or row.workload != "table":
            continue
        fits = rate_windows(row.accept_len, row.accept_rate)
        if len(fits) == 1:
            formulas.setdefault(next(iter(fits)), []).append(row.evidence())
    for p in case.positions:
        if "spec_accept_rate" in p.text or "histogram" in p.formula:
            formulas.setdefault("accepted / drafted (per request)", []).append(
                Evidence(p.source, p.line, p.text)
            )
    strict = {NEW_RATE, "accepted / drafted (per request)"}
    if len(formulas) < 2 or (set(formulas) <= strict):
        return _not_of_this_release(case)
    return Finding(
        "accept-rate-not-comparable",
        "info",
        "certain",
        "Accept rates by different formulas lie side by side: " + "; ".join(formulas) + ". The "
        f"logged one ({OLD_RATE}) counts the bonus token, so 1 / window is its floor.",
        tuple(e for group in formulas.values() for e in group),
        "Compare accept lengths, never rates.",
    )


def _not_of_this_release(case: Case) -> Finding | None:
    """Rates by a definition that is not the noted release's: one of the two is another's."""
    for doubt in doubts(case):
        if doubt.reading is None:
            continue
        own = NEW_RATE if OLD_RATE in doubt.reading.by_formula else OLD_RATE
        return Finding(
            "accept-rate-not-comparable",
            "medium",
            "likely",
            f"Release {doubt.release} is noted, but {doubt.said}; by {own}, the noted release's "
            "own, they fit no window. Either the noted release is wrong or the log is of another "
            "server: what hangs on the release holds for the one that is right.",
            (doubt.noted, *doubt.reading.evidence),
            "Note the release that printed this log.",
            "the version in /server_info of the server that printed the log",
        )
    return None
