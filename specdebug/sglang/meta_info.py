"""Per-request acceptance from /generate answers: counts and histograms, pooled, formulas named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from specdebug.sglang.pasted import as_text, json_values, number, whole

# Names by release, newest first: 0.5.12, 0.5.11, 0.5.6.
_ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_PROPOSED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")
_MAX_WINDOW = 4_096


@dataclass(frozen=True)
class RequestAcceptance:
    """One request.

    `histogram[k]` counts verify passes that accepted exactly k drafts; `proposed` counts drafts
    offered over all passes; `e2e_s` is seconds. None where the release does not report it.
    """

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
    inputs allow (tokens_after_first, completion, histogram, accepted, mean_of_requests): they
    differ, so compare like with like.
    """

    requests: int
    verifies: int
    histogram: tuple[int, ...]
    tail: tuple[float, ...]
    conditional: tuple[float, ...]
    reached: tuple[int, ...]
    lengths: Mapping[str, AcceptLen]


def read_meta_info(text: str | bytes) -> list[RequestAcceptance]:
    """Requests in one answer, a list of answers, or JSON lines; those without speculation left out.

    Raises ValueError when nothing in `text` is a /generate answer.
    """
    found: list[RequestAcceptance] = []
    answers = 0
    for _, value in json_values(as_text(text)):
        for answer in value if isinstance(value, list) else [value]:
            if not looks_like(answer):
                continue
            answers += 1
            request = from_mapping(answer)
            if request is not None:
                found.append(request)
    if not answers:
        raise ValueError("no /generate answer (an object with meta_info) in it")
    return found


def looks_like(data: Any) -> bool:
    """Whether a decoded value is an answer or its meta_info."""
    if not isinstance(data, Mapping):
        return False
    inner = data.get("meta_info", data)
    return isinstance(inner, Mapping) and "completion_tokens" in inner


def from_mapping(answer: Mapping[str, Any]) -> RequestAcceptance | None:
    """One decoded answer, or its meta_info object; None when it carries no speculative count."""
    meta = answer.get("meta_info", answer)
    if not isinstance(meta, Mapping):
        return None
    verifies, completion = whole(meta.get("spec_verify_ct")), whole(meta.get("completion_tokens"))
    if verifies is None or completion is None or verifies < 1 or completion < 0:
        return None
    ids = answer.get("output_ids")
    return RequestAcceptance(
        completion_tokens=completion,
        prompt_tokens=whole(meta.get("prompt_tokens")),
        verify_ct=verifies,
        accepted=_first_whole(meta, _ACCEPTED),
        proposed=_first_whole(meta, _PROPOSED),
        histogram=_histogram(meta),
        reported_len=number(meta.get("spec_accept_length")),
        reported_rate=number(meta.get("spec_accept_rate")),
        e2e_s=number(meta.get("e2e_latency")),
        output_ids=tuple(ids)
        if isinstance(ids, list) and all(isinstance(i, int) for i in ids)
        else None,
    )


def _first_whole(meta: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    found = next((whole(meta[name]) for name in names if meta.get(name) is not None), None)
    return found if found is not None and found >= 0 else None


def _histogram(meta: Mapping[str, Any]) -> tuple[int, ...] | None:
    value = next((meta[name] for name in _HISTOGRAM if isinstance(meta.get(name), list)), None)
    if value is None or not 0 < len(value) <= _MAX_WINDOW:
        return None
    counts = [whole(item) for item in value]
    if any(count is None or count < 0 for count in counts):
        return None
    return tuple(count for count in counts if count is not None)


def pool(requests: Iterable[RequestAcceptance]) -> PooledAcceptance:
    """Sum counts over requests, then divide; ratios are averaged only where the formula says so."""
    rows = list(requests)
    with_histogram = [row.histogram for row in rows if row.histogram]
    width = max((len(histogram) for histogram in with_histogram), default=0)
    summed = [sum(h[k] for h in with_histogram if k < len(h)) for k in range(width)]
    pooled = pool_histogram(summed)
    verifies = sum(row.verify_ct for row in rows)
    lengths = dict(pooled.lengths)
    if verifies:
        tokens = sum(row.completion_tokens for row in rows)
        after_first = sum(max(0, row.completion_tokens - 1) for row in rows)
        lengths["tokens_after_first"] = AcceptLen(
            after_first / verifies, "tokens after the first / verify passes", verifies
        )
        lengths["completion"] = AcceptLen(
            tokens / verifies, "completion tokens / verify passes", verifies
        )
        lengths["mean_of_requests"] = AcceptLen(
            sum(row.completion_tokens / row.verify_ct for row in rows) / len(rows),
            "mean over requests of completion tokens / verify passes",
            verifies,
        )
        if all(row.accepted is not None for row in rows):
            accepted = sum(row.accepted or 0 for row in rows)
            lengths["accepted"] = AcceptLen(
                1 + accepted / verifies, "1 + accepted drafts / verify passes", verifies
            )
    return PooledAcceptance(
        requests=len(rows),
        verifies=verifies,
        histogram=pooled.histogram,
        tail=pooled.tail,
        conditional=pooled.conditional,
        reached=pooled.reached,
        lengths=lengths,
    )


def pool_histogram(histogram: Iterable[int]) -> PooledAcceptance:
    """The same from one summed histogram (entry k: passes that accepted exactly k drafts)."""
    counts = tuple(histogram)
    passes = sum(counts)
    if not passes:
        return PooledAcceptance(0, 0, counts, (), (), (), {})
    at_least = [sum(counts[k:]) for k in range(len(counts))]
    reached = tuple(count for count in at_least[:-1] if count)
    conditional = tuple(at_least[k + 1] / count for k, count in enumerate(reached))
    mean = sum(k * count for k, count in enumerate(counts)) / passes
    return PooledAcceptance(
        requests=0,
        verifies=passes,
        histogram=counts,
        tail=tuple(count / passes for count in at_least[1:]),
        conditional=conditional,
        reached=reached,
        lengths={"histogram": AcceptLen(1 + mean, "1 + mean of the acceptance histogram", passes)},
    )
