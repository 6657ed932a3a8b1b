"""Accept lengths and acceptance by position: definitions and conversions, no engine's log format.

Every accept length counts the bonus token. One run has several of them, and they differ by a few
per cent, so each carries its formula.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "AcceptLength",
    "RequestCounts",
    "accept_lengths",
    "chain_accept_len",
    "conditional_from_histogram",
    "conditional_from_unconditional",
    "constant_tail",
    "iid_accept_len",
    "iid_accuracy",
    "pool_histograms",
    "position_interval",
]

_DEEPEST = 10_000


@dataclass(frozen=True, slots=True)
class AcceptLength:
    """One accept length: its short name, value, formula, and the verifications behind it."""

    name: str
    value: float
    formula: str
    verifies: int


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """What one request reported. histogram[k]: verifications that accepted exactly k drafts."""

    completion_tokens: int
    verifies: int
    histogram: tuple[int, ...] = ()


def accept_lengths(
    requests: Iterable[RequestCounts], server_average: float | None = None
) -> tuple[AcceptLength, ...]:
    """The accept lengths one run allows, up to five, each with its formula.

    Requests without verifications are left out. server_average: the engine's own running average.
    """
    rows = [r for r in requests if r.verifies > 0]
    found: list[AcceptLength] = []
    total = sum(r.verifies for r in rows)
    if rows:
        tokens = sum(r.completion_tokens for r in rows)
        found.append(
            AcceptLength(
                "tokens after the first",
                (tokens - len(rows)) / total,
                "(completion tokens - requests) / verifications: leaves the prefill's token out",
                total,
            )
        )
        found.append(
            AcceptLength(
                "tokens per verification",
                tokens / total,
                "completion tokens / verifications: counts the prefill's token",
                total,
            )
        )
        found.append(
            AcceptLength(
                "mean of requests",
                math.fsum(r.completion_tokens / r.verifies for r in rows) / len(rows),
                "mean over requests of completion tokens / verifications: short requests weigh "
                "as much as long ones",
                total,
            )
        )
    pooled = pool_histograms(r.histogram for r in rows)
    if sum(pooled):
        count = sum(pooled)
        found.append(
            AcceptLength(
                "histogram",
                1.0 + sum(k * c for k, c in enumerate(pooled)) / count,
                "1 + mean of the histogram: the last verification is not cut at the end",
                count,
            )
        )
    if server_average is not None:
        found.append(
            AcceptLength(
                "server average",
                server_average,
                "the engine's running average since start or flush: warm-up included",
                total,
            )
        )
    return tuple(found)


def pool_histograms(histograms: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Sum histograms of different lengths entry by entry."""
    pooled: list[int] = []
    for histogram in histograms:
        pooled.extend([0] * (len(histogram) - len(pooled)))
        for k, count in enumerate(histogram):
            pooled[k] += count
    return tuple(pooled)


def conditional_from_histogram(
    histogram: Sequence[int], num_steps: int | None = None
) -> tuple[float, ...]:
    """P(position k accepted | all before accepted), k = 1, 2, ..., from counts of exactly k.

    The chain ends at num_steps; without it at the highest count seen, where the last rate is 0 by
    construction and therefore left out. Positions never reached are left out as well.
    """
    depth = len(histogram) - 1 if num_steps is None else num_steps
    tails = [sum(histogram[k:]) for k in range(depth + 1)]
    rates: list[float] = []
    for k in range(1, depth + 1):
        if tails[k - 1] == 0:
            break
        rates.append(tails[k] / tails[k - 1])
    return tuple(rates)


def conditional_from_unconditional(rates: Sequence[float]) -> tuple[float, ...]:
    """Turn P(positions 1..k all accepted), as vLLM prints it, into conditional rates.

    Rounding can push a quotient above 1; it is cut there. Stops at the first rate of 0.
    """
    conditional: list[float] = []
    before = 1.0
    for rate in rates:
        if before <= 0:
            break
        conditional.append(min(rate / before, 1.0))
        before = rate
    return tuple(conditional)


def chain_accept_len(conditional: Sequence[float], num_steps: int | None = None) -> float:
    """Expected accept length of a chain: 1 + p1 + p1 p2 + ...

    num_steps beyond the known positions repeats the last rate; none known gives 1.
    """
    depth = len(conditional) if num_steps is None else num_steps
    total, reach = 1.0, 1.0
    for rate in conditional[: max(depth, 0)]:
        reach *= rate
        total += reach
    beyond = depth - len(conditional)
    if conditional and beyond > 0:
        last = conditional[-1]
        total += reach * last * _powers(last, beyond)
    return total


def _powers(rate: float, count: int) -> float:
    """1 + rate + ... + rate^(count - 1); at once where nobody drafts so deep, so that it ends."""
    if count <= _DEEPEST:
        return math.fsum(rate**k for k in range(count))
    return float(count) if rate == 1 else (1 - rate**count) / (1 - rate)


def iid_accept_len(accuracy: float, num_steps: int) -> float:
    """Accept length of a chain with the same acceptance everywhere: (1 - a^(n+1)) / (1 - a)."""
    if not 0 <= accuracy <= 1:
        raise ValueError(f"accuracy is a fraction between 0 and 1, got {accuracy!r}")
    return _powers(accuracy, num_steps + 1)


def iid_accuracy(accept_len: float, num_steps: int) -> float:
    """The constant acceptance that gives this accept length; bisection, within 0..1."""
    return _bisect(lambda a: iid_accept_len(a, num_steps), accept_len)


def constant_tail(first: float, accept_len: float, num_steps: int) -> float:
    """The constant acceptance of positions 2..n that explains accept_len, given position 1.

    0..1; 0 when even a tail of 0 gives more than was measured.
    """
    if first <= 0 or num_steps < 2:
        return 0.0
    return _bisect(lambda r: 1.0 + first * _powers(r, num_steps), accept_len)


def _bisect(rising: Callable[[float], float], wanted: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if rising(middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def position_interval(rate: float, trials: float, z: float = 1.96) -> tuple[float, float]:
    """Wilson interval of one acceptance rate seen in `trials` verifications."""
    if trials <= 0:
        return 0.0, 1.0
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = (
        z
        * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
        / (1 + z * z / trials)
    )
    return max(0.0, centre - half), min(1.0, centre + half)
