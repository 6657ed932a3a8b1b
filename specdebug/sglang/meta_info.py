"""Per-request acceptance from /generate answers: verify counts and histograms, pooled, every
formula named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RequestAcceptance:
    """One request. `histogram[k]` counts verify passes that accepted exactly k drafts; `proposed`
    counts drafts offered over all passes. None where the release does not report it."""

    completion_tokens: int
    prompt_tokens: int | None
    verify_ct: int
    accepted: int | None
    proposed: int | None
    histogram: tuple[int, ...] | None
    reported_len: float | None
    reported_rate: float | None
    e2e_s: float | None
    output_ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class AcceptLen:
    """One accept length and how it was computed, with the number of verify passes behind it."""

    value: float
    formula: str
    verifies: int


@dataclass(frozen=True)
class PooledAcceptance:
    """Acceptance over many requests.

    `tail[k]` is P(at least k+1 drafts accepted) and `conditional[k]` is P(draft k+1 accepted |
    draft k was), both from summed histograms; `reached[k]` is the number of passes behind
    conditional[k]. Empty without histograms. `lengths` holds the same run under every formula the
    inputs allow: they differ, so compare like with like.
    """

    requests: int
    verifies: int
    histogram: tuple[int, ...]
    tail: tuple[float, ...]
    conditional: tuple[float, ...]
    reached: tuple[int, ...]
    lengths: Mapping[str, AcceptLen]


def read_meta_info(text: str | bytes) -> list[RequestAcceptance]:
    """Requests in one answer, a list of answers, or JSON lines; answers without speculation are
    left out.

    Raises ValueError when nothing in `text` is a /generate answer.
    """
    raise NotImplementedError


def from_mapping(answer: Mapping[str, Any]) -> RequestAcceptance | None:
    """One decoded answer, or its meta_info object; None when it carries no speculative count."""
    raise NotImplementedError


def pool(requests: Iterable[RequestAcceptance]) -> PooledAcceptance:
    """Sum counts over requests, then divide; never average ratios (except where the formula says
    so)."""
    raise NotImplementedError


def pool_histogram(histogram: Iterable[int]) -> PooledAcceptance:
    """The same from one summed histogram."""
    raise NotImplementedError
