"""Checks of acceptance that is not the same everywhere: over context length, over ranks."""

from __future__ import annotations

import math
from itertools import pairwise

from specdebug.diagnosis.checks.accepting import DEAD, DEAD_LINES, dead_run
from specdebug.diagnosis.decode import (
    DecodeSummary,
    busy_indices,
    counted_indices,
    line_evidence,
    summary_of,
)
from specdebug.diagnosis.facts import Boot, Case, Stretch
from specdebug.diagnosis.findings import Evidence, Finding
from specdebug.measure import series

UNEVEN = 1.3
# Over less than this a fall is no matter of context, and its rate per 1,000 tokens a guess.
REACH = 1.0


def acceptance_decays(case: Case) -> Finding | None:
    """Accept length falls with context length, rank by rank: pooling ranks can fake it."""
    for boot in case.boots:
        for stretch in boot.stretches:
            finding = _decay(boot, stretch)
            if finding is not None:
                return finding
    return None


def _decay(boot: Boot, stretch: Stretch) -> Finding | None:
    poisoned = _poisoned(stretch)
    kept = [
        i
        for i in counted_indices(stretch)
        if not math.isnan(stretch.accept_len[i]) and stretch.tokens[i] > 0 and i not in poisoned
    ]
    context = [stretch.tokens[i] / stretch.running[i] for i in kept]
    lengths = [stretch.accept_len[i] for i in kept]
    if len(kept) < 10 or max(lengths) <= DEAD:
        return None
    drop = series.cliff(context, lengths)
    line = series.slope([c / 1000 for c in context], lengths)
    reach = (max(context) - min(context)) / 1000
    middle = sum(lengths) / len(lengths)
    falls = (
        line is not None
        and reach >= REACH
        and -line.t > 3
        and line.per_unit < -0.02
        and -line.per_unit * reach > 0.05 * middle
    )
    # Both t values have n - 2 degrees of freedom, so the larger one belongs to the better fit.
    steep = (
        drop is not None
        and drop.t > 6
        and drop.before > 1.2 * drop.after
        and (line is None or drop.t > -line.t)
    )
    if not falls and not steep:
        return None
    inside = _within_requests(context, lengths)
    if inside is not None and inside.t > -3:
        return None  # only other requests accept less, not the same request as it grows
    rank = f" (rank {stretch.rank})" if stretch.rank and len(boot.stretches) > 1 else ""
    if steep and drop is not None:
        said = (
            f"Accept length drops from {drop.before:.2f} to {drop.after:.2f} at about "
            f"{drop.at:.0f} tokens of context"
        )
    else:
        assert line is not None  # noqa: S101 (falls needs it)
        said = (
            f"Accept length falls by {-line.per_unit:.3f} per 1,000 tokens of context "
            f"(t = {-line.t:.1f}, {line.n} lines)"
        )
    order = sorted(kept, key=lambda i: stretch.tokens[i] / stretch.running[i])
    return Finding(
        "acceptance-decays",
        "high",
        "certain" if steep else "likely",
        f"{said}{rank}.",
        (line_evidence(boot, stretch, order[0]), line_evidence(boot, stretch, order[-1])),
        "Compare the draft's max_position_embeddings and rope settings with the served context.",
        "the draft's config.json" if not steep else "",
    )


def _within_requests(context: list[float], lengths: list[float]) -> series.Slope | None:
    """The slope inside requests, each around its own middle; None when there is one request.

    A context that shrinks, or jumps by far more than decoding adds between two lines, is that of
    another request.
    """
    rises = [b - a for a, b in pairwise(context) if b > a]
    usual = series.median(rises) or 0.0
    groups: list[list[int]] = []
    for i, tokens in enumerate(context):
        before = context[i - 1] if i else tokens
        if not groups or tokens < 0.98 * before or tokens - before > 4 * usual:
            groups.append([])
        groups[-1].append(i)
    kept = [g for g in groups if len(g) >= 3]
    if len(groups) < 2 or not kept:
        return None
    x: list[float] = []
    y: list[float] = []
    for group in kept:
        middle_x = sum(context[i] for i in group) / len(group)
        middle_y = sum(lengths[i] for i in group) / len(group)
        x += [(context[i] - middle_x) / 1000 for i in group]
        y += [lengths[i] - middle_y for i in group]
    return series.slope(x, y)


def _poisoned(stretch: Stretch) -> set[int]:
    """Dead lines that short contexts share: a state that broke, not a context that grew."""
    found = dead_run(stretch)
    if found is None:
        return set()
    lines, before = found
    healthy = [
        stretch.tokens[i] / stretch.running[i]
        for i in busy_indices(stretch)
        if stretch.accept_len[i] > DEAD
    ]
    shortest = min(stretch.tokens[i] / stretch.running[i] for i in lines)
    return set(lines) if before and healthy and shortest < 0.8 * max(healthy) else set()


def acceptance_uneven(case: Case) -> Finding | None:
    """Accept lengths of the ranks of one start lie further apart than 1.3 to 1."""
    for boot in case.boots:
        ranks = [p for p in summary_of(boot) if p.accept_len is not None and p.busy >= DEAD_LINES]
        if len(ranks) < 2:
            continue
        low = min(ranks, key=lambda p: p.accept_len or 0)
        high = max(ranks, key=lambda p: p.accept_len or 0)
        if low.accept_len is None or high.accept_len is None:
            continue
        if high.accept_len / low.accept_len <= UNEVEN:
            continue
        each = ", ".join(f"{p.rank or 'unnamed'} {p.accept_len:.2f}" for p in ranks)
        return Finding(
            "acceptance-uneven",
            "high",
            "certain",
            f"Accept length by rank: {each}; the highest is "
            f"{high.accept_len / low.accept_len:.2f} times the lowest.",
            (_typical(boot, low), _typical(boot, high)),
            "Compare the traffic of the ranks, then their weights and state; never average over "
            "them.",
            "the same prompts sent to each rank",
        )
    return _uneven_averages(case)


def _typical(boot: Boot, rank: DecodeSummary) -> Evidence:
    """The line of a rank that lies nearest to its average."""
    stretch = next(s for s in boot.stretches if s.rank == rank.rank)
    lengths = [(i, stretch.accept_len[i]) for i in busy_indices(stretch)]
    known = [(i, length) for i, length in lengths if not math.isnan(length)]
    nearest, _ = min(known, key=lambda pair: abs(pair[1] - (rank.accept_len or 0)))
    return line_evidence(boot, stretch, nearest)


def _uneven_averages(case: Case) -> Finding | None:
    """The same by the averages that the server keeps for each data-parallel rank."""
    for state in case.states:
        ranks = state.rank_accept_lens
        if len(ranks) < 2 or max(ranks) / min(ranks) <= UNEVEN:
            continue
        each = ", ".join(f"{rank} {length:.2f}" for rank, length in enumerate(ranks))
        return Finding(
            "acceptance-uneven",
            "high",
            "likely",
            f"Average accept length by data-parallel rank: {each}; the highest is "
            f"{max(ranks) / min(ranks):.2f} times the lowest.",
            (
                Evidence(
                    state.source,
                    None,
                    "internal_states avg_spec_accept_length: "
                    + ", ".join(f"{length:.4g}" for length in ranks),
                ),
            ),
            "Compare the traffic of the ranks, then their weights and state; never average over "
            "them.",
            "decode lines of each rank, or the same prompts sent to each rank",
        )
    return None
