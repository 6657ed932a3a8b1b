"""From what the readers of benchmarks, answers and metrics return to the rows of a Case."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from specdebug.diagnosis.facts import Fact, Measured, Positions
from specdebug.diagnosis.log_rows import CONDITIONAL
from specdebug.sglang import meta_info
from specdebug.sglang.benches import BenchRun
from specdebug.sglang.key_columns import said
from specdebug.sglang.meta_info import RequestAcceptance
from specdebug.sglang.patterns import regex

if TYPE_CHECKING:
    from specdebug.sglang.metrics import Metrics


def positions(
    requests: Iterable[RequestAcceptance], source: str, *, loops: bool = False
) -> Positions:
    """Per-request answers pooled; the accept length is the first the reader names.

    loops: the text of an answer repeats itself.
    """
    rows = list(requests)
    pooled = meta_info.pool(rows)
    proposed = [r for r in rows if r.proposed and r.verify_ct]
    steps = (
        round(sum(r.proposed or 0 for r in proposed) / sum(r.verify_ct for r in proposed))
        if proposed
        else None
    )
    named = "; ".join(
        f"{name} {value.value:.3f} ({value.formula})" for name, value in pooled.lengths.items()
    )
    lengths = list(pooled.lengths.values())
    conditional = pooled.conditional if steps is None else pooled.conditional[:steps]
    return Positions(
        source,
        None,
        f"{pooled.requests} requests, {pooled.verifies} verifications, histogram "
        f"{list(pooled.histogram)}; {named}"[:400],
        tuple(conditional),
        pooled.verifies,
        f"{CONDITIONAL}, from the summed histograms",
        steps,
        lengths[0].value if lengths else None,
        loops or any(one_token_repeats(r.output_ids or ()) for r in rows),
    )


def one_token_repeats(ids: tuple[int, ...], least: int = 32) -> bool:
    """Whether the last `least` tokens of an output are a loop of at most two tokens."""
    return len(ids) >= least and len(set(ids[-least:])) <= 2


_TEXT = regex(r'"(?:text|generated_text|content)"\s*:\s*"((?:[^"\\]|\\.)*)"')


def looping_text(text: str, least: int = 32) -> bool:
    """Whether an answer's text in raw JSON ends in `least` words of at most two kinds."""
    for match in _TEXT.finditer(text[: 1 << 22]):
        words = match.group(1).split()
        if len(words) >= least and len(set(words[-least:])) <= 2:
            return True
    return False


def measured(run: BenchRun, source: str) -> Measured:
    """One benchmark row. A row without accept length and steps is plain only if it says so."""
    args = run.server_info.args if run.server_info else {}
    speculative: bool | None = None
    if run.is_baseline is not None:
        speculative = not run.is_baseline
    elif args:
        speculative = args.get("speculative_algorithm") is not None
    elif run.accept_len is not None or run.num_steps:
        speculative = True
    running = run.concurrency or run.batch_size or run.max_concurrency
    tok_s = _positive(run.output_tok_s)
    if tok_s is None and run.kind == "table" and (tpot := _positive(run.mean_tpot_ms)):
        # A table of times per output token: so many of them at once, each at that pace.
        tok_s = 1000 * (_positive(running) or 1.0) / tpot

    def arg(name: str, own: int | None) -> int | None:
        value = own if own is not None else args.get(name)
        known = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return value if known else None

    return Measured(
        label=_label(run, source),
        source=source,
        line=run.line,
        text=_row_text(run),
        speculative=speculative,
        num_steps=arg("speculative_num_steps", run.num_steps),
        topk=arg("speculative_eagle_topk", run.topk),
        draft_tokens_asked=arg("", run.requested_draft_tokens),
        draft_tokens=arg("speculative_num_draft_tokens", run.draft_tokens),
        tok_s=() if tok_s is None else (tok_s,),
        accept_len=_positive(run.accept_len),
        accept_rate=run.accept_rate,
        running=_positive(running),
        concurrency=_positive(run.max_concurrency),
        drafts=_drafts(run),
        counted_by="client",
        dataset=run.dataset,
        ignore_eos=run.ignore_eos,
        step_ms=_positive(run.step_ms),
        workload=run.kind,
        keys=run.keys,
    )


def _label(run: BenchRun, source: str) -> str:
    """The run's name, with what it was measured on where its table has several such."""
    name = run.label or f"{PurePath(source).name} line {run.line}"
    keys = said(run.keys, name)
    return f"{name} ({keys})" if keys else name


def _positive(value: float | None) -> float | None:
    """The figure, None for one that no run can have (an empty run writes zeros)."""
    return float(value) if value is not None and 0 < value < 1e12 else None


def _row_text(run: BenchRun) -> str:
    parts = [
        ("num_steps", run.num_steps),
        ("topk", run.topk),
        ("draft tokens", run.requested_draft_tokens or run.draft_tokens),
        ("output tok/s", run.output_tok_s),
        ("accept length", run.accept_len),
        ("max concurrency", run.max_concurrency),
    ]
    said = ", ".join(f"{name} {value:g}" for name, value in parts if value is not None)
    return f"{run.label}: {said}" if run.label else said


def _drafts(run: BenchRun) -> int | None:
    tokens, length = _positive(run.output_tokens), _positive(run.accept_len)
    return round(tokens / length) if tokens and length else None


def positions_of_run(run: BenchRun, source: str) -> Positions | None:
    """Per-position acceptance a benchmark printed (vllm bench serve), unconditional there."""
    rates = run.extra.get("per_position") or run.extra.get("per_position_acceptance")
    if not isinstance(rates, list | tuple) or not rates:
        return None
    from specdebug.sglang import vllm  # late, here and below: few inputs are of vLLM

    values = tuple(float(r) for r in rates)
    # Printed tables are in per cent, also where all of it is below one; JSON holds fractions.
    if run.kind in ("vllm-bench", "bench-serving-table") or max(values) > 1:
        values = tuple(v / 100 for v in values)
    drafts = run.extra.get("drafts", run.extra.get("spec_decode_num_drafts"))
    told = bool(run.extra.get("conditional"))
    return Positions(
        source,
        run.line,
        f"per-position acceptance {list(rates)}",
        values if told else vllm.conditional(values),
        int(drafts) if isinstance(drafts, int | float) else 0,
        f"{CONDITIONAL}, " + ("as written" if told else "from the printed per-position rates"),
        len(values),
        run.accept_len,
    )


def bench_flags(run: BenchRun, source: str) -> dict[str, Fact]:
    """What a benchmark's own command line says about its prompts and concurrency."""
    told: dict[str, Any] = {"dataset_name": run.dataset, "max_concurrency": run.max_concurrency}
    if run.ignore_eos is not None:
        told["ignore_eos"] = run.ignore_eos
    return {
        key: Fact(value, source, run.line, f"{key.replace('_', '-')} {value}")
        for key, value in told.items()
        if value is not None
    }


def scrape(found: Metrics, source: str) -> tuple[Measured | None, Positions | None]:
    """Gauges of SGLang, or counters of vLLM."""
    from specdebug.sglang import vllm

    counts = vllm.counters(found)
    if counts is not None and counts.drafts:
        rates = tuple(p / counts.drafts for p in counts.per_position)
        text = f"{counts.drafts:g} drafts, {counts.accepted:g} of {counts.drafted:g} accepted"
        return None, Positions(
            source,
            None,
            text,
            vllm.conditional(rates),
            int(counts.drafts),
            f"{CONDITIONAL}, from counters since start",
            len(rates) or None,
            counts.accept_len,
        )
    length = found.get("spec_accept_length")
    tok_s = found.get("gen_throughput")
    if not _positive(length):
        return None, None
    return (
        Measured(
            label="/metrics",
            source=source,
            text=f"spec_accept_length {length:g}",
            speculative=True,
            tok_s=(tok_s,) if tok_s is not None and 0 < tok_s < 1e12 else (),
            accept_len=length,
            accept_rate=found.get("spec_accept_rate"),
            running=_positive(found.get("num_running_reqs")),
            counted_by="server",
            workload="gauge",
        ),
        None,
    )
